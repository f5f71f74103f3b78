"""Single classes: how far their AUC ranges over seeds."""

from __future__ import annotations

from functools import partial
from math import comb
from pathlib import Path

from benchmarks.published.evidence import (
    BASES,
    GOLDEN,
    KAIMING,
    MIXED,
    Claim,
    Found,
    name_basis,
    read_json,
    read_seeds,
)
from seedless.stats.compare import describe_arm
from seedless.stats.group_tests import levene
from seedless.stats.spread import find_range


def retina_classes(folder: Path) -> Found:
    """How many of five classes have a smaller range, and a smaller SD, with DCT."""
    pattern = "medmnist/retinamnist/{0}/retinamnist_resnet18_{0}_s*_results.json"
    ranges: dict[str, list[float]] = {}
    sds: dict[str, list[float]] = {}
    for arm in ("dct", "kaiming"):
        groups = [
            read_seeds(folder, pattern.format(arm), "per_class_auc", k).values() for k in range(5)
        ]
        ranges[arm] = [find_range(group).range for group in groups]
        sds[arm] = [describe_arm(arm, group).sd for group in groups]
    tighter = sum(a < b for a, b in zip(ranges["dct"], ranges["kaiming"], strict=True))
    value = {
        "tighter": tighter,
        "n": 5,
        "mean_dct": sum(ranges["dct"]) / 5,
        "mean_kaim": sum(ranges["kaiming"]) / 5,
        "tighter_sd": sum(a < b for a, b in zip(sds["dct"], sds["kaiming"], strict=True)),
        "binom_p": sign_test(tighter, 5),
    }
    return Found(value, (20, 20))


def sign_test(hits: int, n: int) -> float:
    """Return the two-sided binomial p of so many of n, were either as likely."""
    far = max(hits, n - hits)
    tail = sum(comb(n, k) for k in range(far, n + 1)) / float(2**n)
    return min(1.0, 2 * tail)


def class_ranges(folder: Path, label: str) -> dict[str, float]:
    """Return the range of one class's AUC in percentage points, Kaiming and mixed."""
    return {
        name: 100 * find_range(read_seeds(folder, pattern, "per_auc", label).values()).range
        for name, pattern in (("kaiming", KAIMING), ("mixed", MIXED))
    }


def range_of_class(folder: Path, label: str) -> Found:
    """Both ranges of a class, with the interval of the first."""
    found = find_range(read_seeds(folder, KAIMING, "per_auc", label).values())
    low, high = (100 * end for end in found.interval)
    remark = f"Kaiming's has a 95 % interval of {low:.1f} to {high:.1f}, were runs normal"
    return Found(list(class_ranges(folder, label).values()), (20, 20), remark)


def trigeminy_ratio(folder: Path) -> Found:
    """How many times wider Kaiming's range of TRIGU is; the remark looks at single bases."""
    found = class_ranges(folder, "TRIGU")
    runs = {name: read_seeds(folder, name_basis(name), "per_auc", "TRIGU") for name in BASES}
    single = ", ".join(
        f"{name} {100 * find_range(group.values()).range:.2f}" for name, group in runs.items()
    )
    arms = {p: read_seeds(folder, p, "per_auc", "TRIGU").values() for p in (KAIMING, MIXED)}
    remark = f"ranges with a single basis: {single}; Levene, Kaiming against mixed: "
    remark += f"p = {levene(arms).p:.3f}"
    return Found(found["kaiming"] / found["mixed"], (20, 20), remark)


def pace_range(folder: Path) -> Found:
    """Kaiming's range of PACE; the remark has that of mixed."""
    found = class_ranges(folder, "PACE")
    return Found(found["kaiming"], (20,), f"mixed: {found['mixed']:.2f}, which is wider")


def count_tighter(folder: Path) -> Found:
    """For how many of the classes mixed has the smaller range."""
    labels = read_json(folder, GOLDEN)["per_auc"]
    found = {label: class_ranges(folder, label) for label in labels}
    wider = [label for label, pair in found.items() if pair["mixed"] >= pair["kaiming"]]
    remark = f"wider with mixed: {', '.join(wider)}"
    return Found([len(found) - len(wider), len(found)], (20, 20), remark)


def place_golden(folder: Path) -> Found:
    """Where the run without a seed lies in the range of the seeded ones, class by class."""
    value = {}
    for label, score in read_json(folder, GOLDEN)["per_auc"].items():
        found = find_range(read_seeds(folder, MIXED, "per_auc", label).values())
        where = "above" if score > found.high else "within" if score >= found.low else "below"
        value[label] = [score, found.low, found.high, where]
    return Found(value, (1, 20))


CLAIMS: dict[str, Claim] = {
    "retina.perclass": retina_classes,
    **{f"perclass.{c}": partial(range_of_class, label=c) for c in ("SARRH", "SVARR", "TRIGU")},
    "perclass.TRIGU_ratio": trigeminy_ratio,
    "perclass.PACE": pace_range,
    "perclass.tighter": count_tighter,
    "perclass.golden_in_range": place_golden,
}
