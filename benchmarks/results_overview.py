"""Each study's answer in at most 40 words, for the overview; its page has the details."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.results_answers import find_people, list_orders
from benchmarks.results_fairness import has_single_runs, test_signs
from benchmarks.results_main_answers import answer_attribution
from benchmarks.results_tables import Collected, find_named, find_table, list_curves

MAX_WORDS = 40
LEVEL = 0.05


def summarize(collected: Collected) -> str:
    """Return the short answer of a study."""
    return SHORT_ANSWERS[collected["study"]](collected)


def _count_equal(collected: Collected, words: str) -> str:
    """Return the differences of a table of tests of equality, and how many are shown equal."""
    table = find_named(collected, words)
    rows = [row for row in table["rows"] if row[1]]
    if not rows:
        return ""
    told = ", ".join(f"{row[0].partition(' - ')[0]} {row[2]}" for row in rows)
    equal = sum(row[6].startswith("equal") for row in rows)
    margin = table["columns"][4].rpartition(" ")[2]
    rank = table["title"].partition(":")[0]
    return f"{told}: {equal} of {len(rows)} shown equal within {margin}, n = {rows[0][1]}. {rank}."


def _main(collected: Collected) -> str:
    spreads = find_named(collected, "spread over orders")["rows"]
    seen = sum(bool(row[6]) and float(row[6]) < LEVEL for row in spreads)
    return (
        f"Basis alone: {_count_equal(collected, 'like for like, the basis alone')} Spread differs "
        f"in {seen} of {len(spreads)}."
    )


def _power(collected: Collected) -> str:
    rows = find_named(collected, "Power at the effect found")["rows"]
    alike = [row for row in rows if row[3] and not row[0].endswith("- kaiming")]
    open_ended = sum("without end" in row[6] for row in alike)
    return (
        f"Of {len(alike)} pairs that differ in the basis alone, {open_ended} have an interval of d "
        f"that holds 0: no number of runs is known to be enough. n = {rows[0][1]}."
    )


def _convergence(collected: Collected) -> str:
    curves = list_curves(collected)
    one, other = (dict(curves.get(arm, [])) for arm in ("mixed", "kaiming at 0.01 etf"))
    shared = [epoch for epoch in one if epoch in other]
    below = sum(one[epoch] < other[epoch] for epoch in shared)
    return (
        f"Validation AUC of mixed is below that of kaiming at 0.01 etf at {below} of {len(shared)} "
        "epochs shown. Observed, not tested."
    )


def _ablation(collected: Collected) -> str:
    table = find_named(collected, "each part alone")
    seen = sum(bool(row[4]) and float(row[4]) < LEVEL for row in table["rows"])
    return (
        f"Of {len(table['rows'])} secondary tests {seen} are below 0.05 after Holm, n = "
        f"{table['rows'][0][1]}: so few runs show large differences alone."
    )


def _variance(collected: Collected) -> str:
    values = find_named(collected, "Spread of test macro AUC by source")["values"]
    told = ", ".join(f"{row['source']} {row['sd']:.3f} (n = {row['n']})" for row in values)
    return f"SD of the AUC, each source varied alone: {told}. The intervals are wide."


def _cv(collected: Collected) -> str:
    rows = find_named(collected, "Over folds")["rows"]
    told = "; ".join(f"{row[0]} {row[2]}" for row in rows)
    return f"Mean over folds: {told}; n = {rows[0][1]}. Descriptive."


def _noise(collected: Collected) -> str:
    values = find_named(collected, "What noise as strong")["values"]
    drops = [sum(row["drops"]) / len(row["drops"]) for row in values if row["drops"]]
    tests = find_named(collected, "do bases differ")["rows"]
    seen = [row[0] for row in tests if row[3] and float(row[3]) < LEVEL / len(tests)]
    told = f"differ for {', '.join(seen)}" if seen else "are not shown to differ"
    return (
        f"At 0 dB noise takes {min(drops):.3f} to {max(drops):.3f} of AUC. Four bases {told} "
        f"({len(tests)} tests at 0.05 / {len(tests)}, n = {tests[0][1]}). No random start was "
        "tried."
    )


def _medmnist(collected: Collected) -> str:
    if equality := _count_equal(collected, "dct minus kaiming_normal, like for like"):
        return f"Like for like: {equality}"
    told = [
        f"{row[0]} {row[2]}, n = {row[1]}, Welch p {row[3]}: "
        f"{'they differ' if float(row[3]) < LEVEL else 'no difference is shown'}"
        for row in find_table(collected, "dct against kaiming")["rows"]
        if row[3]
    ]
    return f"{'; '.join(told)}. The arms differ in residual scale, too."


def _basis(collected: Collected) -> str:
    rows = find_table(collected, "All bases at once")["rows"]
    if not rows:
        return "Not tested."
    told = "not shown to differ" if float(rows[0][2]) >= LEVEL else "shown to differ"
    runs = find_table(collected, "Test macro AUC by basis")["values"][0]["scores"]
    return f"Structured bases are {told}: Friedman p {rows[0][2]}, n = {len(runs)}."


def _golden(collected: Collected) -> str:
    if has_single_runs(collected):
        return "Nothing is compared: the seed-free arm has one run."
    return f"Basis alone: {_count_equal(collected, 'like for like, the basis alone')}"


def _perclass(collected: Collected) -> str:
    table = find_table(collected, "Range over seeds")
    wider = sum(value["ranges"][1] < value["ranges"][0] for value in table["values"])
    unequal = next((note for note in table["notes"] if note.startswith("Seeds vary")), "")
    return (
        "Not shown to vary less: kaiming's range is wider in "
        f"{wider} of {len(table['values'])} classes. {test_signs(table['values'])} {unequal}"
    )


def _order(collected: Collected) -> str:
    if equality := _count_equal(collected, "an order without a seed, less"):
        return f"Difference from the shuffle: {equality}"
    told = "; ".join(
        f"{one['order']} {one['minus seeded']}, n = {one['n']}, {one['so']}"
        for one in list_orders(collected)
    )
    return f"Difference from the shuffle: {told}."


def _crossdataset(collected: Collected) -> str:
    table = find_table(collected, "AFIB without training")
    people = find_people(table)
    told: dict[str, list[str]] = {}
    for row in table["rows"]:
        name, _, model = row[0].partition(" / ")
        told.setdefault(name, []).append(f"{model} {row[4].split()[0]}")
    listed = "; ".join(
        f"{name}{f' ({people[name]} people)' if name in people else ''}: {', '.join(found)}"
        for name, found in told.items()
    )
    return f"AFIB AUC. {listed}. n = {table['rows'][0][3]} seeds."


def _theory(collected: Collected) -> str:
    energy = {
        row["basis"]: row["value"]
        for row in find_table(collected, "Energy in the first")["values"]
        if row["rho"] == 0.95
    }
    pairs = find_table(collected, "Mutual coherence")["values"]
    shared = sum(row["shared"] > 0 for row in pairs)
    coherence = f" Coherence is 1 for {shared} of {len(pairs)} pairs of bases." if pairs else ""
    return (
        f"AR(1), rho 0.95: a quarter of the rows keeps {energy['dct']:.3f} of the energy (dct), at "
        f"best {energy['KLT (bound)']:.3f}, at random {energy['random orthonormal']:.3f}."
        f"{coherence}"
    )


def _factorial(collected: Collected) -> str:
    told = []
    for question in ("beyond the residual scale", "beyond orthogonality"):
        rows = find_table(collected, f"Primary: {question}")["rows"]
        equal = sum(row[6].startswith("equal") for row in rows)
        told.append(f"{question}, {equal} of {len(rows)} shown equal")
    rows = find_table(collected, "Primary: what the residual scale")["rows"]
    told.append("residual scale: " + ", ".join(f"{row[0].split(':')[0]} {row[2]}" for row in rows))
    return f"Structure {'; '.join(told)}."


def _bases(collected: Collected) -> str:
    tests = find_named(collected, "do the four bases differ")["rows"]
    return "; ".join(f"{row[0]}: Friedman p {row[5]}, n = {row[1]}" for row in tests) + "."


SHORT_ANSWERS: dict[str, Callable[[Collected], str]] = {
    "main": _main,
    "power": _power,
    "convergence": _convergence,
    "ablation": _ablation,
    "variance": _variance,
    "cv": _cv,
    "noise": _noise,
    "attribution": answer_attribution,
    "medmnist": _medmnist,
    "medmnist_bases": _bases,
    "basis": _basis,
    "golden": _golden,
    "perclass": _perclass,
    "order": _order,
    "crossdataset": _crossdataset,
    "theory": _theory,
    "factorial": _factorial,
}
