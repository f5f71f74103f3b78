"""Class by class: how far apart do seeds land, with random and with structured initialization?

Rare classes rest on few positives, so their number stands beside every range.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from seedless.core.config import Config
from seedless.core.errors import StatsError
from seedless.stats.spread import Range, find_range
from seedless.studies.figures import draw_classes
from seedless.studies.grid import Grid, Point, make_grid
from seedless.studies.pooled import split_folds
from seedless.studies.results import Results
from seedless.studies.sizes import Setting, start_from
from seedless.studies.study import FEW, Study, seed_points
from seedless.studies.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Range over 20 seeds in percentage points, Kaiming and mixed, as published.
PUBLISHED = {"TRIGU": (30.9, 4.1), "SVARR": (20.2, 11.5), "SARRH": (4.2, 2.5)}
FREE = ", seed-free"
PAIRS = {"ecg": ("kaiming", "mixed"), "images": ("kaiming", "dct")}


def make(setting: Setting) -> Grid:
    """Random and structured arms on ECGs and on a multi-label image set, and seed-free runs.

    On data of one's own only the kind they are of is run. Image sets have no folds to pool over.
    """
    points: list[Point] = []
    for block in choose_blocks(setting):
        for basis in PAIRS[block]:

            def build(seed: int, basis: str = basis, block: str = block) -> Config:
                return build_run(setting, block, basis, seed)

            points += seed_points(basis, setting.count, build, block)
        free = build_run(setting, block, PAIRS[block][1], None)
        points.append(Point(PAIRS[block][1], "seed-free", free, f"{block}{FREE}"))
    return split_folds(
        make_grid("perclass", ("init",), points), setting.folds, ("ecg", f"ecg{FREE}")
    )


def choose_blocks(setting: Setting) -> tuple[str, ...]:
    """Return the kinds of data there are: both simulated, or the one that was named."""
    if setting.simulated:
        return ("ecg", "images")
    return ("images",) if "mnist" in Path(setting.data).name else ("ecg",)


def build_run(setting: Setting, block: str, basis: str, seed: int | None) -> Config:
    """Return a run: seeded order and, where the basis is random, a seeded start; or no seed."""
    order = {"name": "content"} if seed is None else {"name": "seeded", "seed": seed}
    start = start_from(basis, seed or 0)
    if block == "ecg":
        return setting.ecg(init=start, order=order)
    data = {"task": "multi-label", "classes": 5} if setting.simulated else {}
    return setting.images(init={**start, "residual_scale": None}, order=order, data=data)


def tabulate(results: Results) -> list[Table]:
    """Return the ranges of each block."""
    blocks = [block for block in results.grid.blocks if not block.endswith(FREE)]
    return [tabulate_ranges(results, (PAIRS[block],), block) for block in blocks]


def tabulate_ranges(
    results: Results, pairs: Sequence[tuple[str, str]], block: str | None = None
) -> Table:
    """Return a row a class: positives, range of each arm with its interval, their ratio."""
    rows, values, tighter, judged = [], [], 0, 0
    for random, structured in pairs:
        for name, positives in results.classes(block).items():
            found = [
                list(results.scores(arm, block, of=name).values()) for arm in (random, structured)
            ]
            try:
                wide, narrow = (find_range(scores) for scores in found)
            except StatsError as error:
                rows.append((name, str(positives), f"not defined: {error}", "", "", ""))
                continue
            judged += 1
            tighter += narrow.range < wide.range
            ratio = f"{wide.range / narrow.range:.2f}" if narrow.range else "-"
            known = PUBLISHED.get(name) if block != "images" else None
            rows.append(
                (
                    name + (" (few)" if positives < FEW else ""),
                    str(positives),
                    _show(wide),
                    _show(narrow),
                    ratio,
                    "" if known is None else f"{known[0]} -> {known[1]}",
                )
            )
            values.append(
                {"class": name, "positives": positives, "ranges": [wide.range, narrow.range]}
            )
    random, structured = pairs[0]
    notes = (
        f"{structured} is tighter in {tighter} of {judged} classes.",
        f"Ranges in percentage points with their 95 % interval; (few): under {FEW} positives.",
    )
    columns = (
        "class",
        "positives",
        f"range, {random}",
        f"range, {structured}",
        "ratio",
        "published",
    )
    title = f"Range over seeds by class{f', {block}' if block else ''}"
    return Table(title, columns, tuple(rows), notes, tuple(values))


def _show(found: Range) -> str:
    low, high = found.interval
    return f"{100 * found.range:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def draw(results: Results) -> Figure:
    """Return the figure: every run a point, class by class, the seed-free run starred."""
    block = results.grid.blocks[0]
    return draw_classes(results, block, PAIRS[block], f"{block}{FREE}")


STUDY = Study(
    "perclass",
    "Which classes vary with the seed, by how much, and does structured initialization help?",
    make,
    tabulate,
    draw,
    ("folds",),
)
