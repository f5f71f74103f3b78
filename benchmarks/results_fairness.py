"""What a page must not claim: published values beside other arms, and arms that differ in more.

Runs that were collected before basis, residual scale and head became separate settings compare
starts that differ in all of them. Their pages say so until they are made again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seedless.studies.engine.table import PUBLISHED_COLUMNS, Table

Collected = Mapping[str, Any]

CONFOUNDED = (
    "The structured arms multiply residual exits by 0.01 and the random arm does not; in the "
    "conformer they also have an equiangular head. A difference between them is one of all of "
    "these together, not of the bases. How they are told apart: [protocol](protocol.md)."
)
UNPAIRED = "Equality by pairs alone was not a test fixed beforehand, so it is not counted as shown."
OTHER_START = "The published orders were tried with a structured start, these with Kaiming's."


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
    """Return what must be said of arms that are not equal."""
    caveats = []
    if compares_starts(collected) and not has_equal_arms(collected):
        caveats.append(CONFOUNDED)
    if collected["study"] == "order" and was_with_kaiming(collected):
        caveats += [OTHER_START, UNPAIRED]
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
    """Return a table without published values of other arms, or differences to other data."""
    if "published" not in table.columns:
        return table
    first = table.columns.index("published")
    rows = []
    for row in table.rows:
        cells = list(row)
        for place, name in enumerate(table.columns):
            if place < first or name not in PUBLISHED_COLUMNS:
                continue
            if not is_published_arm(collected, row[0]) or (place > first and not comparable):
                cells[place] = ""
        rows.append(tuple(cells))
    return Table(table.title, table.columns, tuple(rows), table.notes, table.values)
