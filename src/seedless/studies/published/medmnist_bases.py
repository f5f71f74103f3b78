"""Four structured bases and Kaiming on images, each once in the published golden order."""

from seedless.studies.engine.arm_tables import tabulate_arms
from seedless.studies.engine.figures import make_draw
from seedless.studies.engine.grid import Grid, Point, make_grid
from seedless.studies.engine.options import StudyOptions
from seedless.studies.engine.results import Results
from seedless.studies.engine.study import Study
from seedless.studies.engine.table import Published, Table
from seedless.studies.shared.medmnist_sets import build_run, describe_stand_ins, find_sets

BASES = ("dct", "hadamard", "hartley", "sinusoidal", "kaiming_normal")
EQUAL = "kaiming_normal at 0.01"  # with the residual scale of the bases
_VALUES = {
    "dermamnist": (0.915, 0.914, 0.911, 0.914, 0.912),
    "retinamnist": (0.755, 0.701, 0.711, 0.717, 0.733),
}
PUBLISHED = {
    (name, basis): Published(value)
    for name, values in _VALUES.items()
    for basis, value in zip(BASES, values, strict=True)
}


def make(options: StudyOptions) -> Grid:
    """Return one run per basis in golden order, on the two published sets or on those of --data."""
    sets = find_sets(options)
    points = [
        Point(basis, "golden", build_run(options, name, file, basis, None), name)
        for name, file in ({n: f for n, f in sets.items() if n in _VALUES} or sets).items()
        for basis in (*BASES, EQUAL)
    ]
    return make_grid("medmnist_bases", ("init.basis", "init.residual_scale"), points)


def tabulate(results: Results) -> list[Table]:
    """Return one row per basis, and how far apart the bases of a set are."""
    notes = (
        "One run each, as published: this does not say how large a difference seeds make.",
        f"The bases have residual scale 0.01, kaiming_normal 1; {EQUAL} was not published.",
        *describe_stand_ins(results.options),
    )
    rows = []
    for block in results.grid.blocks:
        scores = {b: s for b in BASES for s in results.scores(b, block).values()}
        known = [PUBLISHED[block, b].mean for b in BASES if (block, b) in PUBLISHED]
        best = max(scores, key=lambda basis: scores[basis]) if scores else "none"
        spread = f"{max(scores.values()) - min(scores.values()):.4f}" if scores else "none"
        published = f"{max(known) - min(known):.4f}" if known else ""
        beyond = ""
        if known and scores and results.options.as_published:
            ours = max(scores.values()) - min(scores.values())
            beyond = f"{ours - (max(known) - min(known)):+.4f}"
        rows.append((block, best, spread, published, beyond))
    columns = ("set", "best", "best less worst", "published", "difference")
    return [
        tabulate_arms("Golden order by basis", results, PUBLISHED, notes),
        Table("How far apart the bases are", columns, tuple(rows)),
    ]


STUDY = Study(
    "medmnist_bases",
    "Does it matter which basis is used for images, in a run without a seed?",
    make,
    tabulate,
    make_draw(PUBLISHED, "Test macro AUC, golden order"),
)
