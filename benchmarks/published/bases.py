"""Four bases, twenty seeds each, against each other and against Kaiming's weights."""

from __future__ import annotations

from functools import partial
from itertools import combinations
from pathlib import Path

from benchmarks.published.evidence import (
    BASES,
    COLLAPSED,
    KAIMING,
    WEIGHTED,
    Claim,
    Found,
    Seeded,
    drop_collapsed,
    name_basis,
    pair_up,
    read_json,
    read_seeds,
    summarize,
)
from seedless.stats.compare import describe_arm
from seedless.stats.group_tests import friedman, levene
from seedless.stats.holm_correction import holm
from seedless.stats.t_tests import paired_t_test, welch_t_test


def pair_bases(folder: Path, one: str, two: str) -> Found:
    """The p value of a paired t test by seed."""
    a, b = pair_up(read_seeds(folder, name_basis(one)), read_seeds(folder, name_basis(two)))
    return Found(paired_t_test(a, b).p, (len(a),))


def weighted_against_plain(folder: Path) -> Found:
    """Kaiming with class weights (converged) against Kaiming without."""
    kept, plain = drop_collapsed(read_seeds(folder, WEIGHTED)), read_seeds(folder, KAIMING)
    return Found(welch_t_test(kept.values(), plain.values()).p, (len(kept), len(plain)))


def read_bases(folder: Path, *field: str) -> dict[str, Seeded]:
    """Return the runs of the four bases."""
    return {name: read_seeds(folder, name_basis(name), *field) for name in BASES}


def friedman_bases(folder: Path) -> Found:
    """Friedman over seeds."""
    found = friedman({name: runs.values() for name, runs in read_bases(folder).items()})
    return Found([found.statistic, found.p], found.n)


def holm_bases(folder: Path) -> Found:
    """Paired t for all six pairs, raw and after Holm."""
    runs = read_bases(folder)
    raw = {
        f"{a}-{b}": paired_t_test(*pair_up(runs[a], runs[b])).p for a, b in combinations(BASES, 2)
    }
    found = holm(raw)
    return Found({name: [raw[name], found.adjusted[name]] for name in raw}, (20,) * 4)


def bases_against_kaiming(folder: Path) -> Found:
    """Each basis against Kaiming: paired and Welch, with and without class weights."""
    plain, weighted = read_seeds(folder, KAIMING), read_seeds(folder, WEIGHTED)
    kept = drop_collapsed(weighted)
    value = {
        name: {
            "paired_vs_kaim20": paired_t_test(*pair_up(runs, plain)).p,
            "welch_vs_kaim20": welch_t_test(runs.values(), plain.values()).p,
            "paired_vs_kcw18": paired_t_test(*pair_up(runs, kept)).p,
            "welch_vs_kcw18": welch_t_test(runs.values(), kept.values()).p,
            "paired_vs_kcw20": paired_t_test(*pair_up(runs, weighted)).p,
        }
        for name, runs in read_bases(folder).items()
    }
    adjusted = holm({name: row["paired_vs_kaim20"] for name, row in value.items()}).adjusted
    remark = f"Holm over the four, Hartley: {adjusted['hartley']:.4f}"
    return Found(value, (20, 20, 18), remark)


def levene_bases(folder: Path) -> Found:
    """Levene about the median for all six pairs."""
    runs = read_bases(folder)
    value = {
        f"{a}-{b}": levene({a: runs[a].values(), b: runs[b].values()}).p
        for a, b in combinations(BASES, 2)
    }
    together = levene({name: group.values() for name, group in runs.items()})
    return Found(value, (20,) * 4, f"all four together: p = {together.p:.4f}")


def compare_spreads(folder: Path) -> Found:
    """The SD of DCT beside that of Kaiming."""
    groups = {"dct": read_seeds(folder, name_basis("dct")), "kaiming": read_seeds(folder, KAIMING)}
    arms = {name: describe_arm(name, runs.values()) for name, runs in groups.items()}
    return Found({name: arm.sd for name, arm in arms.items()}, (20, 20))


def flutter(folder: Path) -> Found:
    """Friedman on the AUC of AFLT, and two means; the remark looks at all classes."""
    classes = list(read_json(folder, "ecg/golden/conformer_dct_golden_metrics.json")["per_auc"])
    tests = {
        label: friedman({n: r.values() for n, r in read_bases(folder, "per_auc", label).items()}).p
        for label in classes
    }
    runs = read_bases(folder, "per_auc", "AFLT")
    means = {name: describe_arm(name, group.values()).mean for name, group in runs.items()}
    low = sorted(label for label, p in tests.items() if p < 0.05)
    survivors = sum(holm(tests).survives.values())
    remark = f"p < .05 for {', '.join(low)}; {survivors} of 12 survive Holm"
    return Found([tests["AFLT"], means["hartley"], means["hadamard"]], (20,) * 4, remark)


def best_bases(folder: Path) -> Found:
    """For how many classes each basis has the highest mean."""
    classes = read_json(folder, "ecg/golden/conformer_dct_golden_metrics.json")["per_auc"]
    counts = dict.fromkeys(BASES, 0)
    for label in classes:
        runs = read_bases(folder, "per_auc", label)
        means = {name: describe_arm(name, group.values()).mean for name, group in runs.items()}
        counts[max(means, key=lambda name: means[name])] += 1
    return Found(counts, (20,) * 4)


CLAIMS: dict[str, Claim] = {
    **{f"basis.{name}": partial(summarize, pattern=name_basis(name)) for name in BASES},
    **{
        f"basis.paired_{name}_vs_dct": partial(pair_bases, one=name, two="dct")
        for name in BASES
        if name != "dct"
    },
    "basis.kaiming_cw": partial(summarize, pattern=WEIGHTED, above=COLLAPSED),
    "basis.kaimcw_vs_kaim": weighted_against_plain,
    "basis.friedman": friedman_bases,
    "basis.holm": holm_bases,
    "basis.vs_kaiming": bases_against_kaiming,
    "basis.levene": levene_bases,
    "basis.lower_var": compare_spreads,
    "basis.aflt": flutter,
    "basis.best_counts": best_bases,
}
