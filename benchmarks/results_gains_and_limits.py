"""What training without a seed gives and does not give, for readers who know no statistics.

Each sentence is written from the tables of one page, and left out where that page does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.results_fairness import has_single_runs
from benchmarks.results_tables import Collected, find_named, list_curves

Pages = Mapping[str, Collected]


def list_gains(pages: Pages) -> list[str]:
    """Return what it gives."""
    said = []
    repeated = {
        slug: one["executed_again"]
        for slug, one in pages.items()
        if (one.get("executed_again") or {}).get("all")
    }
    if repeated:
        counts = [
            f"{found['identical']} of {found['all']} ([{slug}]({slug}.md))"
            for slug, found in repeated.items()
        ]
        said.append(
            "**The same model again.** Some runs, chosen by a rule and not by their scores, were "
            "trained a second time. One in ten was planned; often there was time for fewer. The "
            f"second training gave exactly the same model in {', '.join(counts)}; pages share "
            "runs. Whoever has the data can train the model again and check that it is the one "
            "that was tested."
        )
    if "attribution" in pages:
        said.append(
            "**The same explanation again.** The maps that show where a model looks in an ECG came "
            "out identical in another process, and changed when one bit of the first weights was "
            "flipped before training ([attribution](attribution.md): two kinds of maps, one model)."
        )
    if "variance" in pages and (device := find_source(pages["variance"], "device operations")):
        said.append(
            "**No spread from the machine.** Trained the usual way on a GPU, the same start and "
            f"the same data gave {device['n']} models whose scores had a standard deviation of "
            f"{device['sd']:.3f}, 95 % interval {_span(device)}. So few models say little about "
            "the size of the spread: one outlier can cause most of it ([variance](variance.md)). "
            "Of our own runs, those that were trained a second time did not differ at all."
        )
    said.append(
        "**No seed to choose**, and so no seed that was chosen because it did well. Luck is still "
        "there: another start or another order of the data gives a different model."
    )
    return said


def list_limits(pages: Pages) -> list[str]:
    """Return what it does not give."""
    said = []
    if "main" in pages:
        said += _compare_accuracy(pages["main"])
    if "cv" in pages:
        said.append(_compare_folds(pages["cv"]))
    if "golden" in pages and not has_single_runs(pages["golden"]):
        said.append(_compare_golden(pages["golden"]))
    if "variance" in pages:
        found = {name: find_source(pages["variance"], name) for name in ("initialization", "order")}
        spreads = [
            f"{row['sd']:.3f} ({name}; n = {row['n']}, 95 % interval {_span(row)})"
            for name, row in found.items()
            if row
        ]
        said.append(
            "**One run is not enough.** Scores differ from start to start and from order to order, "
            f"with standard deviations of {' and '.join(spreads)} ([variance](variance.md)). A "
            "single run that repeats exactly still shows one of many possible models."
        )
    if "convergence" in pages:
        said += _compare_learning(pages["convergence"])
    if "noise" in pages:
        said.append(_describe_noise(pages["noise"]))
    said.append(
        "**Nothing about patients elsewhere.** These are small networks or small data: 1,819 ECGs "
        "from one source and 780 breast ultrasound images. Sex and age are not known for these "
        "ECGs, so nothing is known about differences by sex or age. No model here is fit for "
        "clinical use."
    )
    return said


def find_source(variance: Collected, name: str) -> Mapping[str, Any] | None:
    """Return the spread of a source by its name."""
    values = find_named(variance, "Spread of test macro AUC by source")["values"]
    return next((row for row in values if row["source"] == name), None)


def _span(row: Mapping[str, Any]) -> str:
    low, high = row["interval"]
    return f"{low:.3f} to {high:.3f}"


def _compare_accuracy(main: Collected) -> list[str]:
    """Return what the headline comparison says of accuracy, of the residual scale and of spread."""
    table = find_named(main, "like for like, the basis alone")
    rows = table["rows"]
    rank = table["title"].partition(":")[0].lower()
    equal = [row for row in rows if row[6].startswith("equal")]
    told = "; ".join(f"{row[0].partition(':')[0]} {row[2]} ({row[3]})" for row in rows)
    pairs = find_named(main, "the basis alone, all pairs")["rows"]
    differ = [f"{row[0]} {row[2]} (Holm p {row[4]})" for row in pairs if row[4] and _low(row[4])]
    listed = f", {'; '.join(differ)}" if differ else ""
    scales = "; ".join(
        f"{row[0].partition(':')[0]} {row[2]}, Holm p {row[4]}, n = {row[1]}"
        for row in find_named(main, "minus Kaiming")["rows"]
        if row[2] and row[0].endswith("- kaiming")
    )
    spreads = find_named(main, "spread over orders")["rows"]
    seen = [row for row in spreads if row[6] and _low(row[6])]
    n = rows[0][1]
    return [
        "**Not shown to be more accurate, or equally so.** With the same residual scale and the "
        f"same head, structured minus random, n = {n}, 90 % intervals: {told}; {len(equal)} of "
        f"{len(rows)} are shown to be equal within 0.03 ({rank}). Of {len(pairs)} secondary tests "
        f"of the basis alone, below 0.05 after Holm: {len(differ)}{listed} ([main](main.md)).",
        "**The published comparison gave the residual scale to one arm alone.** It is a single "
        "number, which a random start can have too. A random start with 0.01 minus one with 1: "
        f"{scales} ([main](main.md); secondary tests; in the conformer the head changes with it). "
        "No test compares what the scale does with what the basis does.",
        f"**Not shown to vary less.** From one start over {spreads[0][1].split(',')[0]} orders "
        f"{len(seen)} of {len(spreads)} comparisons show a difference in spread; so few orders "
        "would often miss an SD twice as large ([main](main.md), [protocol](protocol.md)).",
    ]


def _compare_folds(cv: Collected) -> str:
    """Return what the residual scale and the basis change in the baseline, in other folds too."""
    rows = {row[0]: row for row in find_named(cv, "Over folds")["rows"]}
    random, scaled, structured = (
        rows[f"baseline {name}"][2] for name in ("kaiming", "kaiming at 0.01", "mixed")
    )
    tests = find_named(cv, "fold by fold")["rows"]
    of_basis = [row for row in tests if row[0].startswith("baseline") and row[4]]
    seen = sum(_low(row[4]) for row in of_basis)
    return (
        "**Other parts of the data as test set.** The baseline network, mean over three folds, "
        f"n = {rows['baseline kaiming'][1]}: random start with residual scale 1, {random}; random "
        f"with 0.01, {scaled}; structured with 0.01, {structured}. Structured and random with the "
        f"same scale differ in {seen} of {len(of_basis)} folds after Holm (secondary tests; "
        "[cv](cv.md)). What the scale changes was observed here, not tested."
    )


def _compare_golden(golden: Collected) -> str:
    """Return what the residual scale and the basis change where the order has no seed."""
    means = {row[0]: row[5] for row in find_named(golden, "Golden order")["rows"]}
    table = find_named(golden, "like for like, the basis alone")
    margin = table["columns"][4].rpartition(" ")[2]
    told = []
    for name, n, difference, interval, _, holm, so in table["rows"]:
        block, _, pair = name.partition(": ")
        structured, random = pair.split(" - ")
        told.append(
            f"{block}: random start as published {means[f'{block} / kaiming']}, with the residual "
            f"scale and head of the other {means[f'{block} / {random}']}, structured "
            f"{means[f'{block} / {structured}']}; the last two differ by {difference} "
            f"({interval}), n = {n}, Holm p {holm}: {so}"
        )
    return (
        "**A seed-free order and structured start, against a random start in that order.** "
        f"Tests of equality within {margin} ({table['title'].partition(':')[0].lower()}). "
        f"{'. '.join(told)}. The published random start has another residual scale, and its mean "
        "is in no test ([golden](golden.md))."
    )


def _low(cell: str) -> bool:
    return float(cell) < 0.05


def _compare_learning(convergence: Collected) -> list[str]:
    """Return that a structured start was behind, where it was at most epochs shown."""
    curves = list_curves(convergence)
    one, other = (dict(curves.get(arm, [])) for arm in ("mixed", "kaiming at 0.01 etf"))
    shared = [epoch for epoch in one if epoch in other]
    behind = sum(one[epoch] < other[epoch] for epoch in shared)
    if 2 * behind <= len(shared):
        return []
    return [
        "**Not seen to learn faster.** The mean validation AUC of a structured start was below "
        f"that of a random one with the same residual scale and head at {behind} of {len(shared)} "
        "epochs shown ([convergence](convergence.md)). This was observed, not tested."
    ]


def _describe_noise(noise: Collected) -> str:
    """Return what noise costs, and for which kinds of noise bases differ."""
    drops = [
        sum(row["drops"]) / len(row["drops"])
        for row in find_named(noise, "What noise as strong")["values"]
        if row["drops"]
    ]
    tests = find_named(noise, "do bases differ")["rows"]
    seen = [row[0] for row in tests if row[3] and float(row[3]) < 0.05 / len(tests)]
    told = f"bases differ for {', '.join(seen)}" if seen else "bases are not shown to differ"
    told += f" ({len(tests)} tests at 0.05 / {len(tests)})"
    return (
        f"**Noise costs accuracy.** Noise as strong as the signal takes {min(drops):.3f} to "
        f"{max(drops):.3f} from the AUC, by basis and kind of noise; {told}. No random start was "
        "tried, so whether a basis protects against noise is not known ([noise](noise.md))."
    )
