"""What a page must not claim: published values beside other arms, and arms that differ in more.

Runs that were collected before basis, residual scale and head became separate settings compare
starts that differ in all of them. Their pages say so until they are made again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seedless.studies.engine.table import PUBLISHED_COLUMNS, Table

Collected = Mapping[str, Any]

LEVEL = 0.05
PAIRS_ALONE, NOT_EQUAL = " by pairs alone", "not shown to be equal"
EARLIER = (
    "These runs were made before the [protocol](protocol.md) was written, by an earlier version of "
    "the study: no test on this page was fixed beforehand, and the command below makes other runs "
    "today."
)
CONFOUNDED = (
    "The structured arms multiply residual exits by 0.01 and the random arm does not; in the "
    "conformer they also have an equiangular head. A difference between them is one of all of "
    "these together, not of the bases. How they are told apart: [protocol](protocol.md)."
)
UNPAIRED = "Equality by pairs alone was not a test fixed beforehand, so it is not counted as shown."
OTHER_START = (
    "The published orders were tried with a structured start, these with Kaiming's. Seeds of the "
    "shuffle vary start and order, those of the other orders the start alone."
)
ONE_RUN = (
    "The seed-free arms are one run each: they are shown, and compared with nothing. A difference "
    "to them would be one of single runs."
)
OVER_SEEDS = (
    "Replicates vary seeds or orders on the same test records: every SD, interval and test is over "
    "these, not over patients."
)
FOUND_EFFECTS = (
    "The rows called found, of the power by runs an arm, are the published pairs, whose arms "
    "differ in class weights, residual scale and head as well."
)
CURVES_VARY = (
    "Runs of mixed vary in their order alone, those of kaiming in start and order: the widths of "
    "the curves do not compare the starts."
)
TWO_DESIGNS = (
    "The two tables vary the order from different starts, mixed and Kaiming's, and both have few "
    "runs: where they differ, neither is shown to be right."
)
ONE_OF_THREE = "Of three tests one counts below 0.05 / 3."
EACH_OF_THREE = "There are three tests, so each counts below 0.05 / 3 alone."
COUNTS_GROW = (
    "Such counts grow with the number of runs, and more varies in one arm than in the other: they "
    "do not compare the starts."
)
BY_STUDY = {
    "power": (FOUND_EFFECTS,),
    "convergence": (CURVES_VARY,),
    "variance": (TWO_DESIGNS,),
}


def is_earlier(collected: Collected) -> bool:
    """Return whether runs were collected before the protocol: second executions are not counted."""
    return bool(collected["runs"]["all"]) and "executed_again" not in collected


def has_single_runs(collected: Collected) -> bool:
    """Return whether an arm of the study `golden` has one run, beside others with several."""
    if collected["study"] != "golden":
        return False
    counts = [
        len(value["scores"])
        for table in collected["tables"]
        for value in table["values"]
        if table["title"].startswith("Golden order") and value.get("scores")
    ]
    return 1 in counts


def has_equal_arms(collected: Collected) -> bool:
    """Return whether a random arm has the residual scale of the structured ones."""
    arms = {
        value.get("arm", "")
        for table in collected["tables"]
        for value in table["values"]
        if isinstance(value, Mapping)
    }
    return any(" at " in arm for arm in arms)


def compares_starts(collected: Collected) -> bool:
    """Return whether a study sets structured starts beside random ones."""
    return collected["study"] in ("basis", "golden", "perclass", "medmnist")


def list_caveats(collected: Collected) -> list[str]:
    """Return what must be said of how arms differ, and of what the tests are about."""
    caveats = [EARLIER] if is_earlier(collected) else []
    if compares_starts(collected) and not has_equal_arms(collected):
        caveats.append(CONFOUNDED)
    if has_single_runs(collected):
        caveats.append(ONE_RUN)
    if collected["study"] == "order" and was_with_kaiming(collected):
        caveats += [OTHER_START, UNPAIRED]
    caveats += BY_STUDY.get(collected["study"], ())
    if collected["runs"]["all"] and collected["study"] != "attribution":
        caveats.append(OVER_SEEDS)
    return caveats


def was_with_kaiming(collected: Collected) -> bool:
    """Return whether the orders were tried with Kaiming starts, paired by their seeds."""
    return any("paired TOST p" in table["columns"] for table in collected["tables"])


def is_published_arm(collected: Collected, name: str) -> bool:
    """Return whether an arm is the one that the published value of its row belongs to."""
    if collected["study"] == "order":
        return not was_with_kaiming(collected)
    if collected["study"] == "medmnist":  # the published control of images is kaiming_normal
        return name.rpartition(" / ")[2] != "kaiming"
    return True


def clean_table(collected: Collected, table: Table, *, comparable: bool) -> Table:
    """Return a table as it may be shown: nothing compared that is not comparable."""
    rows = [_clean_row(collected, table, row, comparable=comparable) for row in table.rows]
    tested = any(name == "p" or name.endswith(" p") or " p, " in name for name in table.columns)
    named = table.title.startswith(("Primary", "Secondary"))
    early = is_earlier(collected) and tested and not named
    title = f"Not fixed beforehand: {table.title}" if early else table.title
    notes = _clean_notes(table)
    return Table(title, table.columns, tuple(rows), notes, table.values)


def _clean_row(
    collected: Collected, table: Table, row: tuple[str, ...], *, comparable: bool
) -> tuple[str, ...]:
    cells = list(row)
    first = table.columns.index("published") if "published" in table.columns else len(row)
    for place, name in enumerate(table.columns):
        if place >= first and name in PUBLISHED_COLUMNS:
            # A published value of another arm, or a difference to one of other data.
            if not is_published_arm(collected, row[0]) or (place > first and not comparable):
                cells[place] = ""
        elif name == "so" and cells[place].endswith(PAIRS_ALONE):
            cells[place] = NOT_EQUAL
        elif name == "in words" and table.title.startswith("Primary: do bases differ in what"):
            p = row[table.columns.index("p")]
            if p and float(p) >= LEVEL / len(table.rows):
                cells[place] = f"not counted as a difference: p is above 0.05 / {len(table.rows)}"
    return tuple(cells)


def _clean_notes(table: Table) -> tuple[str, ...]:
    """Return notes that say of counts what they are worth, where earlier ones did not."""
    notes = [note.replace(ONE_OF_THREE, EACH_OF_THREE) for note in table.notes]
    if table.title.startswith("Test records whose answer"):
        notes.append(COUNTS_GROW)
    if table.title.startswith("Range over seeds") and table.values and "sign test" not in notes[0]:
        notes[0] = notes[0].replace(" is tighter in ", " has the smaller range in ")
        test = test_signs(table.values)
        notes.insert(1, f"{test} More varies in one arm: the ranges do not compare the starts.")
    return tuple(notes)


def test_signs(values: Sequence[Mapping[str, Any]]) -> str:
    """Return the sign test of the classes in which the structured arm has the smaller range."""
    from scipy.stats import binomtest

    smaller = sum(value["ranges"][1] < value["ranges"][0] for value in values)
    p = binomtest(smaller, len(values)).pvalue
    return f"Sign test of the classes, which share their runs: p {p:.2g}."
