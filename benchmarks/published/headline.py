"""The headline comparison: a conformer with mixed bases against one with Kaiming's weights."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.published.evidence import (
    GOLDEN,
    KAIMING,
    MIXED,
    WEIGHTED,
    Claim,
    Found,
    drop_collapsed,
    pair_up,
    read_json,
    read_seeds,
    summarize,
)
from seedless.stats.compare import describe_arm
from seedless.stats.effect import cohens_d
from seedless.stats.equivalence import tost
from seedless.stats.group_tests import levene
from seedless.stats.power import find_power, find_runs_needed
from seedless.stats.spread import find_range
from seedless.stats.t_tests import paired_t_test, welch_t_test

XRESNET = "ecg/xresnet/xresnet_equiv_s*_metrics.json"
MARGIN = 0.015

Question = Callable[[list[float], list[float]], Any]


def ask(folder: Path, question: Question) -> Found:
    """Ask a question of the two arms, each in the order of its seeds."""
    a, b = list(read_seeds(folder, MIXED).values()), list(read_seeds(folder, KAIMING).values())
    return Found(question(a, b), (len(a), len(b)))


def ask_p(folder: Path) -> Found:
    """Welch's p; the remark gives the paired one."""
    found = ask(folder, lambda a, b: welch_t_test(a, b).p)
    pairs = paired_t_test(*pair_up(read_seeds(folder, MIXED), read_seeds(folder, KAIMING)))
    remark = f"0.0155 rounded a second time gives 0.016; paired by seed p = {pairs.p:.4f}"
    return Found(found.value, found.n, remark)


def effect_intervals(a: list[float], b: list[float]) -> dict[str, Any]:
    """Four intervals of one d."""
    found = cohens_d(a, b)
    return {
        "wald_normal": found.wald,
        "wald_t": found.wald_t,
        "noncentral_t": found.noncentral_t,
        "hedges_g": found.hedges,
    }


def both_tosts(a: list[float], b: list[float]) -> dict[str, float]:
    """TOST with the published degrees of freedom, and with Welch's."""
    published = tost(a, b, MARGIN, degrees="published")
    return {"published_df38": published.p, "welch_df28": tost(a, b, MARGIN).p}


def spread_ratios(a: list[float], b: list[float]) -> dict[str, float]:
    """How much more the second group scatters, as variance and as SD."""
    ratio = describe_arm("b", b).sd / describe_arm("a", a).sd
    return {"variance_ratio": ratio**2, "sd_ratio": ratio}


def both_levenes(a: list[float], b: list[float]) -> list[float]:
    """Levene's p about the median, and about the mean."""
    return [levene({"a": a, "b": b}, centre).p for centre in ("median", "mean")]


def like_for_like(folder: Path) -> Found:
    """Both arms with class weights, converged runs only; d over the pooled SD."""
    mixed, runs = read_seeds(folder, MIXED).values(), read_seeds(folder, WEIGHTED)
    kept = drop_collapsed(runs).values()
    test, effect = welch_t_test(mixed, kept), cohens_d(mixed, kept)
    value = {"diff": test.difference, "welch_t": test.t, "p": test.p, "d": effect.pooled}
    remark = f"{len(runs) - len(kept)} of {len(runs)} runs of Kaiming collapsed and are set aside; "
    remark += f"d over the root mean of the two variances is {effect.d:.6g}; paired by seed "
    remark += f"p = {pair_like_for_like(folder):.4f}"
    return Found(value, test.n, remark)


def pair_like_for_like(folder: Path) -> float:
    """Return the p value of the paired test of the same runs, by seed."""
    kept = drop_collapsed(read_seeds(folder, WEIGHTED))
    return paired_t_test(*pair_up(read_seeds(folder, MIXED), kept)).p


def test_all_weighted(folder: Path) -> float:
    """Return the p value of both arms with class weights, with the runs that collapsed."""
    arms = (read_seeds(folder, pattern).values() for pattern in (MIXED, WEIGHTED))
    return welch_t_test(*arms).p


def kaiming_alone(folder: Path) -> Found:
    """Kaiming's arm; calibration shows that its loss was not that of the other arm."""
    found = summarize(folder, KAIMING)
    errors = {
        name: describe_arm(name, read_seeds(folder, pattern, "ece").values()).mean
        for name, pattern in (("here", KAIMING), ("mixed", MIXED), ("weighted", WEIGHTED))
    }
    remark = "trained without class weights, mixed with them; mean calibration error "
    remark += f"{errors['here']:.4f} against {errors['mixed']:.4f} of mixed and "
    scores = read_seeds(folder, WEIGHTED)
    kept = drop_collapsed(scores)
    ece = read_seeds(folder, WEIGHTED, "ece")
    rest = describe_arm("kept", [ece[seed] for seed in kept]).mean
    remark += (
        f"{errors['weighted']:.4f} of Kaiming with weights, of which {len(scores) - len(kept)} "
    )
    remark += f"runs collapsed; {rest:.4f} over the {len(kept)} others"
    return Found(found.value, found.n, remark)


def find_golden(folder: Path) -> Found:
    """The one run without a seed, and whether its file holds a digest of its weights."""
    run = read_json(folder, GOLDEN)
    digests = [name for name in run if "md5" in name]
    return Found(run["auc"], (1,), "" if digests else "called verified by MD5; no MD5 in the file")


def _kaiming_ends(folder: Path) -> Found:
    found = find_range(read_seeds(folder, KAIMING).values())
    return Found([found.low, found.high], found.n)


def _kaiming_range(folder: Path) -> Found:
    found = find_range(read_seeds(folder, KAIMING).values())
    return Found(100 * found.range, found.n)


def _xresnet_sigma(folder: Path) -> Found:
    runs = read_seeds(folder, XRESNET)
    arm = describe_arm("xresnet", runs.values())
    return Found((arm.mean - runs[1337]) / arm.sd, (arm.n,))


QUESTIONS: dict[str, Question] = {
    "welch_t": lambda a, b: [welch_t_test(a, b).t, welch_t_test(a, b).df],
    "diff_ci": lambda a, b: welch_t_test(a, b).interval,
    "cohen_d": lambda a, b: cohens_d(a, b).d,
    "cohen_d_ci": effect_intervals,
    "tost": both_tosts,
    "var_ratio": spread_ratios,
    "levene": both_levenes,
    "power": lambda a, b: find_power(cohens_d(a, b).d, len(a), len(b)).power,
    "n80": lambda a, b: find_runs_needed(cohens_d(a, b).d).exact,
}

CLAIMS: dict[str, Claim] = {
    "main.conformer_mixed": partial(summarize, pattern=MIXED),
    "main.conformer_kaiming": kaiming_alone,
    "main.conformer_kaiming_minmax": _kaiming_ends,
    "main.macro_range_pp": _kaiming_range,
    "main.xresnet": partial(summarize, pattern=XRESNET),
    "main.xresnet_s1337_sigma": _xresnet_sigma,
    "main.golden": find_golden,
    "conf.welch_p": ask_p,
    "conf.like_for_like": like_for_like,
    **{f"conf.{name}": partial(ask, question=item) for name, item in QUESTIONS.items()},
}
