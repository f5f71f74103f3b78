"""Seven sets of medical images: structured against random starts, and what a seed decides.

Epochs are chosen on the validation split; the published ones were chosen on the test split.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seedless.core.config import Config
from seedless.evaluate.churn import compare_calls
from seedless.evaluate.predictions import read_predictions
from seedless.pipeline.verify import verify
from seedless.studies.figures import draw_arms
from seedless.studies.grid import Grid, Point, make_grid
from seedless.studies.imaging import build_run, describe_stand_ins, find_sets
from seedless.studies.perclass import tabulate_ranges
from seedless.studies.results import Results
from seedless.studies.sizes import Setting
from seedless.studies.study import Study, compare_arms, seed_points, tabulate_arms
from seedless.studies.table import Published, Table, format_mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ARMS = ("dct", "kaiming")
FREE = ", golden"
_VALUES = {
    "bloodmnist": (0.9986, 0.9987),
    "organcmnist": (0.9943, 0.9945),
    "dermamnist": (0.9186, 0.9192),
    "breastmnist": (0.878, 0.877),
    "retinamnist": (0.729, 0.734),
    "chestmnist": (0.756, 0.752),
    "pathmnist": (0.9903, 0.9899),
}
PUBLISHED = {
    (name, arm): Published(value)
    for name, values in _VALUES.items()
    for arm, value in zip(ARMS, values, strict=True)
}


def make(setting: Setting) -> Grid:
    """For each set both starts with the same order seeds, and both once in golden order."""
    points: list[Point] = []
    for name, file in find_sets(setting).items():
        for basis in ARMS:

            def build(
                seed: int, name: str = name, file: str | None = file, basis: str = basis
            ) -> Config:
                return build_run(setting, name, file, basis, seed)

            points += seed_points(basis, setting.count, build, name)
        for basis in ARMS:
            golden = build_run(setting, name, file, basis, None)
            points.append(Point(basis, "golden", golden, f"{name}{FREE}"))
    return make_grid("medmnist", ("init",), points)


def tabulate(results: Results) -> list[Table]:
    """Return the arms, each set's comparison, selection, what seeds decide, ranges by class."""
    sets = [block for block in results.grid.blocks if not block.endswith(FREE)]
    notes = (
        "Published epochs were chosen on the test split, ours on the validation split.",
        "In golden order dct needs no seed; kaiming begins from seed 0.",
        *describe_stand_ins(results.setting),
    )
    tables = [
        tabulate_arms("Test macro AUC by set", results, PUBLISHED, notes),
        compare_arms("dct against kaiming, set by set", results, [(name, *ARMS) for name in sets]),
        tabulate_selection(results),
        tabulate_churn(results, sets),
        *(tabulate_ranges(results, ((ARMS[1], ARMS[0]),), name) for name in sets),
    ]
    return [*tables, prove_arms(results)] if results.setting.prove else tables


def tabulate_selection(results: Results) -> Table:
    """Return which epochs were chosen, and the scores of both splits there."""
    rows = []
    for block in results.grid.blocks:
        for arm in ARMS:
            done = [one.metrics for one in results.of(arm, block) if one.metrics is not None]
            epochs = sorted(metrics["selected"]["epoch"] for metrics in done)
            found = [metrics["validation"]["macro_auc"] for metrics in done]
            chosen = f"{epochs[0]} to {epochs[-1]}" if epochs else "none"
            test = list(results.scores(arm, block).values())
            validation = [score for score in found if score is not None]
            rows.append((f"{block} / {arm}", chosen, format_mean(validation), format_mean(test)))
    columns = ("", "epochs chosen", "macro AUC, validation", "macro AUC, test")
    note = "The test split was looked at once a run, after its epoch had been chosen."
    return Table("Epochs, chosen on the validation split", columns, tuple(rows), (note,))


def tabulate_churn(results: Results, blocks: list[str]) -> Table:
    """Return the share of test records whose call depends on the seed."""
    rows, values = [], []
    for block in blocks:
        for arm in ARMS:
            runs = {
                one.point.replicate: read_predictions(one.run)
                for one in results.of(arm, block)
                if one.ok
            }
            name = f"{block} / {arm}"
            if len(runs) < 2:
                rows.append((name, str(len(runs)), "", "not defined: fewer than two runs", "", ""))
                continue
            found = compare_calls(runs)
            low, high = found.exact.interval.as_list()
            worst = max(found.classes, key=lambda k: found.classes[k].flips.count)
            flips = found.classes[worst].flips.count
            rows.append(
                (
                    name,
                    str(len(runs)),
                    f"{found.exact.count} of {found.exact.n}",
                    f"{found.exact.rate:.2%}",
                    f"{low:.2%} to {high:.2%}",
                    f"{worst}: {flips}",
                )
            )
            values.append(
                {"block": block, "arm": arm, "flips": found.exact.count, "n": found.exact.n}
            )
    columns = ("", "runs", "records that change", "share", "95 % interval", "most in class")
    note = "A record changes where not every seed's run gives it the same answer."
    title = "Test records whose answer depends on the seed"
    return Table(title, columns, tuple(rows), (note,), tuple(values))


def prove_arms(results: Results) -> Table:
    """Execute one run of each arm again, and say whether every bit came back."""
    rows = []
    for block in results.grid.blocks:
        for arm in ARMS:
            done = [one for one in results.of(arm, block) if one.ok]
            if done:
                verdict = verify(done[0].run)
                rows.append((done[0].point.label, done[0].point.key, verdict.outcome))
            else:
                rows.append((f"{block} / {arm}", "", "no run was finished"))
    return Table("The same bits twice", ("run", "key", "executed again"), tuple(rows))


def draw(results: Results) -> Figure:
    """Return every run as a point, set by set."""
    return draw_arms(results, "Test macro AUC", PUBLISHED)


STUDY = Study(
    "medmnist",
    "Do structured starts match Kaiming on images, and whose answer depends on the seed?",
    make,
    tabulate,
    draw,
    ("prove",),
)
