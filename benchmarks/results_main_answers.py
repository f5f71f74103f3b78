"""The answers of `main` and of the studies around it, each in a sentence or two from its tables:

power, convergence, ablation, variance, folds, noise, attribution maps, and bases on images.
"""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.results_tables import (
    Collected,
    find_named,
    group_curves,
    show_equivalence,
    show_means,
)

PARTS = {"initializationxorder and repeats": "what only both together decide"}


def answer_main(collected: Collected) -> str:
    """Whether arms that differ in their basis alone are equal, and spread alike."""
    table = find_named(collected, "spread over orders")
    spreads = [f"{row[0]}: SDs {row[3]} and {row[4]}, Holm p {row[6]}" for row in table["rows"]]
    count = table["rows"][0][1] if table["rows"] else "0"
    return (
        "Like for like, the basis alone with class weights. "
        f"{show_equivalence(collected, 'like for like, the basis alone')} "
        f"The spread over orders from one start, n = {count}: {'; '.join(spreads)}."
    )


def answer_power(collected: Collected) -> str:
    """The effects found, with intervals."""
    rows = find_named(collected, "Power at the effect found")["rows"]
    found = [f"{row[0]}: d {row[2]} ({row[3]}), n = {row[1]}" for row in rows if row[3]]
    return (
        f"Effects found, with 95 % intervals: {'; '.join(found)}. Where an interval holds 0, no "
        "number of runs is known to be enough. Pairs with plain kaiming differ, as published, in "
        "class weights, residual scale and head too."
    )


def answer_convergence(collected: Collected) -> str:
    """The curve of each arm early and at the end."""
    arms = group_curves(collected)
    shown = [
        f"{arm}: {points[1][3]} at epoch {points[1][1]}, {points[-1][3]} at epoch {points[-1][1]}, "
        f"n = {points[0][2]}"
        for arm, points in arms.items()
        if len(points) > 1
    ]
    return f"Validation macro AUC. {'; '.join(shown)}. Descriptive: nothing is tested."


def answer_ablation(collected: Collected) -> str:
    """All arms, and which differences survive the correction."""
    table = find_named(collected, "each part alone")
    seen = [f"{row[0]} {row[2]} (Holm p {row[4]})" for row in table["rows"] if _below(row[4])]
    tests = f"Of {len(table['rows'])} secondary tests {len(seen)} are below 0.05 after Holm"
    listed = f": {'; '.join(seen)}." if seen else "."
    return f"{show_means(collected, 'Bases, class weights')}. {tests}{listed}"


def _below(cell: str) -> bool:
    return bool(cell) and float(cell) < 0.05


def answer_variance(collected: Collected) -> str:
    """The SD of each source, and the parts of the crossed design."""
    values = find_named(collected, "Spread of test macro AUC by source")["values"]
    shown = [
        f"{row['source']} {row['sd']:.4f} ({row['interval'][0]:.4f} to {row['interval'][1]:.4f}, "
        f"n = {row['n']})"
        for row in values
    ]
    crossed = find_named(collected, "Initialization crossed with order")
    parts = [
        f"{PARTS.get(row[0], row[0])} "
        f"{row[3] if row[3] != 'below 0' else 'not seen (its estimate is below 0)'}"
        for row in crossed["rows"]
    ]
    start = f"SD of the test macro AUC, each source varied alone: {'; '.join(shown)}."
    return f"{start} Kaiming, start crossed with order, SD by part: {'; '.join(parts)}."


def answer_cv(collected: Collected) -> str:
    """The mean over folds of every arm."""
    rows = find_named(collected, "Over folds")["rows"]
    return (
        "Mean over three folds: "
        + "; ".join(f"{row[0]} {row[2]}, n = {row[1]}" for row in rows)
        + ". Descriptive; the tests by fold are secondary."
    )


def answer_noise(collected: Collected) -> str:
    """What each kind of noise costs, and whether bases differ in it."""
    values = find_named(collected, "What noise as strong")["values"]
    tests = find_named(collected, "do bases differ")["rows"]
    drops: dict[str, list[float]] = {}
    for row in values:
        drops.setdefault(row["kind"], []).append(sum(row["drops"]) / max(1, len(row["drops"])))
    shown = [
        f"{row[0]}: the bases lose {min(lost):.3f} to {max(lost):.3f}, Friedman p {row[3]}, n = "
        f"{row[1]}"
        for row, lost in zip(tests, drops.values(), strict=True)
    ]
    differ = sum(bool(row[3]) and float(row[3]) < 0.05 / len(tests) for row in tests)
    return (
        f"Macro AUC lost at 0 dB, mean of each basis. {'; '.join(shown)}. Below 0.05 / "
        f"{len(tests)}: {differ} of {len(tests)} tests."
    )


def answer_attribution(collected: Collected) -> str:
    """How many maps repeat, and how many notice the bit."""
    rows = find_named(collected, "Digests of the maps")["rows"]
    same, other = (sum(row[place] == "yes" for row in rows) for place in (3, 5))
    return (
        f"{same} of {len(rows)} sets of maps have the same digest in another process; {other} of "
        f"{len(rows)} change where one bit of one weight was flipped before training."
    )


def answer_bases(collected: Collected) -> str:
    """All bases on images, and the test over them."""
    tests = find_named(collected, "do the four bases differ")["rows"]
    told = " ".join(f"{row[0]}: {row[6]}" for row in tests)
    return f"{show_means(collected, 'Golden order by basis')}. {told}"


ANSWERS: dict[str, Callable[[Collected], str]] = {
    "main": answer_main,
    "power": answer_power,
    "convergence": answer_convergence,
    "ablation": answer_ablation,
    "variance": answer_variance,
    "cv": answer_cv,
    "noise": answer_noise,
    "attribution": answer_attribution,
    "medmnist_bases": answer_bases,
}
