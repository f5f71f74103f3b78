"""Class by class: how far apart do seeds land, with random and with structured initialization?

Rare classes rest on few positives, so their number stands beside every range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from seedless.core.config import Config
from seedless.core.errors import StatsError
from seedless.evaluate.ranking import FEW_POSITIVES
from seedless.stats.spread import Range, find_range
from seedless.studies.engine.figures import draw_classes
from seedless.studies.engine.fold_pooling import split_folds
from seedless.studies.engine.grid import Grid, Point, make_grid
from seedless.studies.engine.options import StudyOptions, choose_init
from seedless.studies.engine.results import Results, describe_varying_seeds
from seedless.studies.engine.study import Study, seed_points
from seedless.studies.engine.table import Table
from seedless.studies.protocols import medmnist_sets
from seedless.studies.protocols.medmnist_sets import find_sets

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Range over 20 seeds in percentage points, Kaiming and mixed, as published; for images, in how many
# classes the structured start is tighter, of how many.
PUBLISHED = {"TRIGU": (30.9, 4.1), "SVARR": (20.2, 11.5), "SARRH": (4.2, 2.5)}
PUBLISHED_TIGHTER = {"chestmnist": (11, 14)}
FREE = ", seed-free"
ECG, MULTI_LABEL = "ecg", "chestmnist"
PAIR, IMAGE_PAIR = ("kaiming", "mixed"), ("kaiming", "dct")


def make(options: StudyOptions) -> Grid:
    """Random and structured arms on ECGs and on a multi-label image set, and seed-free runs.

    On data of one's own only the kind they are of is run. Images are those of the study
    `medmnist`, whose runs are taken; their sets have no folds to pool over.
    """
    points: list[Point] = []
    for block, file in choose_blocks(options).items():
        for basis in pair_of(block):

            def build(
                seed: int, basis: str = basis, block: str = block, file: str | None = file
            ) -> Config:
                return build_run(options, block, file, basis, seed)

            points += seed_points(basis, options.count, build, block)
        structured = pair_of(block)[1]
        free = build_run(options, block, file, structured, None)
        points.append(Point(structured, "seed-free", free, f"{block}{FREE}"))
    return split_folds(
        make_grid("perclass", ("init",), points), options.folds, (ECG, f"{ECG}{FREE}")
    )


def pair_of(block: str) -> tuple[str, str]:
    """Return the random and the structured start that are compared on a block."""
    return PAIR if block == ECG else IMAGE_PAIR


def choose_blocks(options: StudyOptions) -> dict[str, str | None]:
    """Return ECGs, an image set, or both where they are simulated, with the set's file.

    Of several sets the one with several labels an image is taken.
    """
    if options.simulated:
        return {ECG: None, MULTI_LABEL: None}
    place = Path(options.data)
    if "mnist" not in place.name and not any(place.glob("*mnist.npz")):
        return {ECG: None}
    sets = find_sets(options)
    name = MULTI_LABEL if MULTI_LABEL in sets else next(iter(sets))
    return {name: sets[name]}


def build_run(
    options: StudyOptions, block: str, file: str | None, basis: str, seed: int | None
) -> Config:
    """Return a run: seeded order and, where the basis is random, a seeded start; or no seed."""
    if block != ECG:
        return medmnist_sets.build_run(options, block, file, basis, seed)
    order = {"name": "content"} if seed is None else {"name": "seeded", "seed": seed}
    return options.ecg(init=choose_init(basis, seed or 0), order=order)


def list_blocks(results: Results) -> list[str]:
    """Return the blocks whose seeds are compared: all but the seed-free runs."""
    return [block for block in results.grid.blocks if not block.endswith(FREE)]


def tabulate(results: Results) -> list[Table]:
    """Return the ranges of each block."""
    tables = []
    for block in list_blocks(results):
        table = tabulate_ranges(results, (pair_of(block),), block)
        more = () if block == ECG else medmnist_sets.describe_stand_ins(results.options)
        tables.append(replace(table, notes=(*table.notes, *more)))
    return tables


def tabulate_ranges(
    results: Results, pairs: Sequence[tuple[str, str]], block: str | None = None
) -> Table:
    """Return a row a class: positives, range of each arm with its interval, their ratio."""
    rows, values, tighter, judged = [], [], 0, 0
    classes, twin = results.classes(block), ""
    if len(classes) == 2 and _are_one(results, pairs[0], block):
        twin = f" {list(classes)[1]} has the same AUCs, being the only other class."
        classes = dict(list(classes.items())[:1])
    for random, structured in pairs:
        for name, positives in classes.items():
            found = [
                list(results.scores(arm, block, of=name).values()) for arm in (random, structured)
            ]
            if not any(found):
                why = "too few positives to score" if positives else "no positives"
                rows.append((name, str(positives), f"not defined: {why}", "", "", "", ""))
                continue
            try:
                wide, narrow = (find_range(scores) for scores in found)
            except StatsError as error:
                rows.append((name, str(positives), f"not defined: {error}", "", "", "", ""))
                continue
            judged += 1
            tighter += narrow.range < wide.range
            ratio = f"{wide.range / narrow.range:.2f}" if narrow.range else "-"
            known = PUBLISHED.get(name)
            rows.append(
                (
                    name + (" (few)" if positives < FEW_POSITIVES else ""),
                    str(positives),
                    _show(wide),
                    _show(narrow),
                    ratio,
                    "" if known is None else f"{known[0]} -> {known[1]}",
                    "" if known is None else _subtract((wide, narrow), known),
                )
            )
            values.append(
                {"class": name, "positives": positives, "ranges": [wide.range, narrow.range]}
            )
    random, structured = pairs[0]
    told = PUBLISHED_TIGHTER.get(block or "")
    beside = "" if told is None else f" Published: {told[0]} of {told[1]}."
    free = [describe_varying_seeds(results.grid.of(arm, block)) for arm in (random, structured)]
    share = f"{tighter} of {judged} class{'es' * (judged != 1)}"
    notes = (
        f"{structured} is tighter in {share}.{twin}{beside}",
        f"Seeds vary in {free[0]} ({random}), in {free[1]} ({structured}).",
        f"Ranges in percentage points with their 95 % interval; (few): under "
        f"{FEW_POSITIVES} positives. No interval was published.",
    )
    columns = (
        "class",
        "positives",
        f"range, {random}",
        f"range, {structured}",
        "ratio",
        "published",
        "difference",
    )
    title = f"Range over seeds by class{f', {block}' if block else ''}"
    return Table(title, columns, tuple(rows), notes, tuple(values))


def _are_one(results: Results, arms: Sequence[str], block: str | None) -> bool:
    """Return whether two classes have the same AUCs: an image is of the one or of the other."""
    scores = [
        [results.scores(arm, block, of=name) for arm in arms] for name in results.classes(block)
    ]
    return scores[0] == scores[1]


def _show(found: Range) -> str:
    # Of normal runs: with few of them it ends beyond what an AUC can range over.
    low, high = (min(end, 1.0) for end in found.interval)
    return f"{100 * found.range:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def _subtract(found: tuple[Range, Range], known: tuple[float, float]) -> str:
    """Return both ranges less the published ones, in percentage points."""
    gaps = (100 * one.range - value for one, value in zip(found, known, strict=True))
    return " -> ".join(f"{gap:+.1f}" for gap in gaps)


def draw(results: Results) -> Figure:
    """Return the figure: every run a point, class by class, the seed-free run starred."""
    blocks = list_blocks(results)
    return draw_classes(results, {block: (pair_of(block), f"{block}{FREE}") for block in blocks})


STUDY = Study(
    "perclass",
    "Which classes vary with the seed, by how much, and does structured initialization help?",
    make,
    tabulate,
    draw,
    ("folds",),
)
