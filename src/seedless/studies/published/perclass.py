"""Class by class: how far apart are the scores of seeds, with random and structured starts?"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from seedless.core.config import Config
from seedless.studies.engine.figures import draw_classes
from seedless.studies.engine.fold_pooling import split_folds
from seedless.studies.engine.grid import Grid, Point, make_grid, seed_points
from seedless.studies.engine.options import StudyOptions
from seedless.studies.engine.results import Results
from seedless.studies.engine.study import Study
from seedless.studies.engine.table import Table
from seedless.studies.shared import medmnist_sets
from seedless.studies.shared.class_ranges import tabulate_ranges
from seedless.studies.shared.headline_arms import EQUAL_KAIMING, START_FACTOR

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FREE = ", seed-free"
ECG, MULTI_LABEL = "ecg", "chestmnist"
# The published pair of each kind of data, and the one that differs in its basis alone.
PAIRS = (("kaiming", "mixed"), (EQUAL_KAIMING["conformer"], "mixed"))
IMAGE_PAIRS = (("kaiming_normal", "dct"), ("kaiming_normal at 0.01", "dct"))


def make(options: StudyOptions) -> Grid:
    """Return random and structured arms on ECGs and on a multi-label image set, and seed-free runs.

    With data of one kind, only this kind is run. The runs on images are those of the study
    `medmnist`; image sets have no folds to pool over.
    """
    points: list[Point] = []
    for block, file in choose_blocks(options).items():
        published, equal = pairs_of(block)
        build, structured = partial(build_run, options, block, file), published[1]
        points += seed_points((*published, equal[0]), options.count, build, block)
        points.append(Point(structured, "seed-free", build(structured, None), f"{block}{FREE}"))
    return split_folds(
        make_grid("perclass", START_FACTOR, points), options.folds, (ECG, f"{ECG}{FREE}")
    )


def pairs_of(block: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return the random and structured starts compared on a block: as published, like for like."""
    return PAIRS if block == ECG else IMAGE_PAIRS


def choose_blocks(options: StudyOptions) -> dict[str, str | None]:
    """Return the blocks and the file of each: ECGs, an image set, or both if simulated.

    Of several image sets it is the one with several labels an image.
    """
    if options.simulated:
        return {ECG: None, MULTI_LABEL: None}
    place = Path(options.data)
    if "mnist" not in place.name and not any(place.glob("*mnist.npz")):
        return {ECG: None}
    sets = medmnist_sets.find_sets(options)
    name = MULTI_LABEL if MULTI_LABEL in sets else next(iter(sets))
    return {name: sets[name]}


def build_run(
    options: StudyOptions, block: str, file: str | None, start: str, seed: int | None
) -> Config:
    """Return a run with this seed, or without any."""
    if block != ECG:
        return medmnist_sets.build_run(options, block, file, start, seed)
    return options.ecg_run(start, seed)


def list_blocks(results: Results) -> list[str]:
    """Return the blocks whose seeds are compared: all but the seed-free runs."""
    return [block for block in results.grid.blocks if not block.endswith(FREE)]


def tabulate(results: Results) -> list[Table]:
    """Return the ranges of each block."""
    tables = []
    for block in list_blocks(results):
        more = () if block == ECG else medmnist_sets.describe_stand_ins(results.options)
        for pair in pairs_of(block):
            table = tabulate_ranges(results, pair, block)
            tables.append(replace(table, notes=(*table.notes, *more)))
    return tables


def draw(results: Results) -> Figure:
    """Return the figure: every run a point, class by class, the seed-free run starred."""
    blocks = list_blocks(results)
    return draw_classes(
        results, {block: (pairs_of(block)[1], f"{block}{FREE}") for block in blocks}
    )


STUDY = Study(
    "perclass",
    "Which classes vary with the seed, by how much, and does structured initialization help?",
    make,
    tabulate,
    draw,
    ("folds",),
)
