"""Tables of a study that `benchmarks.results` collected: found by their titles, and in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seedless.studies.engine.table import mean_and_sd

Collected = Mapping[str, Any]  # a study's file in docs/results/collected

EQUIVALENCE_CELLS = "{0}: {2} ({3}), n = {1}: {6}"


def find_table(collected: Collected, words: str) -> Collected:
    """Return the table whose title begins with these words."""
    for table in collected["tables"]:
        if table["title"].startswith(words):
            return dict(table)
    return {"rows": [], "values": [], "notes": []}


def find_named(collected: Collected, words: str) -> Collected:
    """Return the table whose title holds these words; an empty one where there is none."""
    for table in collected["tables"]:
        if words in table["title"]:
            return dict(table)
    return {"title": "", "rows": [], "values": [], "notes": []}


def show_equivalence(collected: Collected, words: str) -> str:
    """Return the tests of equality in a table, with what they are called; "" without any."""
    table = find_named(collected, words)
    tests = [EQUIVALENCE_CELLS.format(*row) for row in table["rows"] if row[1]]
    rank = table["title"].partition(":")[0]
    return f"{rank} ({table['columns'][4]}): {'; '.join(tests)}." if tests else ""


def show_means(collected: Collected, words: str) -> str:
    """Return the mean, SD and number of scores of every arm of a table that has at least two."""
    shown = []
    for row in find_named(collected, words)["values"]:
        scores = list(row["scores"].values())
        if len(scores) > 1:
            average, sd = mean_and_sd(scores)
            name = " / ".join(part for part in (row["block"], row["arm"]) if part)
            shown.append(f"{name} {average:.3f} ± {sd:.3f}, n = {len(scores)}")
    return "; ".join(shown)


def group_curves(collected: Collected) -> dict[str, list[tuple[str, ...]]]:
    """Return the rows of the learning curves by arm."""
    arms: dict[str, list[tuple[str, ...]]] = {}
    for row in find_named(collected, "Validation macro AUC by epoch")["rows"]:
        arms.setdefault(row[0], []).append(tuple(row))
    return arms


def list_curves(collected: Collected) -> dict[str, list[tuple[str, float]]]:
    """Return (epoch, mean validation AUC) of every arm."""
    return {
        arm: [(row[1], float(row[3].split()[0])) for row in rows if row[3]]
        for arm, rows in group_curves(collected).items()
    }
