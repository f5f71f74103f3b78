"""Every batch order with the published start; seed-free orders have replicates by their offset."""

from seedless.core.config import Config
from seedless.ordering import ORDERS
from seedless.studies.engine.arm_tables import compare_arms, tabulate_arms
from seedless.studies.engine.figures import make_draw
from seedless.studies.engine.fold_pooling import split_folds
from seedless.studies.engine.grid import Grid, make_grid, offset_points, seed_points
from seedless.studies.engine.options import StudyOptions, choose_init
from seedless.studies.engine.results import Results
from seedless.studies.engine.study import Study
from seedless.studies.engine.table import Published, Table

REFERENCE = "seeded"
STATIC = ("content_static", "herding")  # the same permutation in every epoch
MARGIN = 0.015  # as published: AUCs this close count as equal
ALPHA = 0.05
NOTES = (
    f"TOST: two one-sided tests. Their larger p below {ALPHA:g} means equal within {MARGIN:g}, the "
    "margin that was published. Not shown to be equal is not shown to differ: where scores vary as "
    "much as these, few seeds cannot show either.",
    "All runs begin from the same weights. Replicates of the shuffle have another seed, those of "
    "the other orders another offset: other epochs' permutations.",
    f"{' and '.join(STATIC)} have one permutation for all epochs, and so one run.",
)
PUBLISHED = {
    ("", name): Published(value)
    for name, value in {
        "seeded": 0.955,
        "class_guaranteed": 0.947,
        "golden": 0.941,
        "sobol": 0.939,
        "feature_diverse": 0.883,
        "stratified_quantile": 0.579,
        "class_diverse": 0.559,
        "herding": 0.522,
        "content_static": 0.479,
        "pair_balance": 0.579,
        "loss_ranked": 0.500,
        "interleaved_loss_ranked": 0.579,
    }.items()
}


def make(options: StudyOptions) -> Grid:
    """Return every order with the published start, and replicates of each."""

    def build(name: str, seed: int | None = None) -> Config:
        return options.ecg(init=choose_init("mixed"), order={"name": name, "seed": seed})

    points = seed_points((REFERENCE,), options.count, build)
    for name in (other for other in ORDERS if other != REFERENCE):
        points += offset_points(name, 1 if name in STATIC else options.count, build(name))
    return split_folds(make_grid("order", ("order.name",), points), options.folds)


def tabulate(results: Results) -> list[Table]:
    """Return the orders, and each against the seeded shuffle with a test of equivalence."""
    notes = ("Published orders: one run each. content is not published.",)
    pairs = [("", arm, REFERENCE) for arm in results.grid.arms if arm != REFERENCE]
    return [
        answer_content(results),
        tabulate_arms("Test macro AUC by order", results, PUBLISHED, notes),
        compare_arms("Each order against the seeded shuffle", results, pairs, margin=MARGIN),
    ]


def answer_content(results: Results) -> Table:
    """Return the study's own question in one table: is a seed-free order as good as the shuffle?"""
    rows, values = [], []
    seed_free = [arm for arm in ("content", "golden") if arm in results.grid.arms]
    pairs = [("", arm, REFERENCE) for arm in seed_free]
    compared = compare_arms("", results, pairs, margin=MARGIN)
    for value in compared.values:
        arm, row = value["arms"][0], value["row"]
        known = PUBLISHED.get(("", arm))
        gap = "" if known is None else f"{known.mean - PUBLISHED['', REFERENCE].mean:+.3f}"
        if row is None or row.get("equivalence") is None:
            rows.append((arm, "", "", "", "", gap, "not tested"))
            continue
        same = row["equivalence"]
        low, high = same["interval"]
        rows.append(
            (
                arm,
                f"{row['a']['n']}, {row['b']['n']}",
                f"{row['a']['mean'] - row['b']['mean']:+.4f}",
                f"{low:+.4f} to {high:+.4f}",
                f"{same['p']:.3g}",
                gap,
                "equal within the margin" if same["p"] < ALPHA else "not shown to be equal",
            )
        )
        values.append({"arm": arm, "tost": same["p"], "margin": MARGIN, "n": row["a"]["n"]})
    columns = ("order", "n", f"less {REFERENCE}", "90 % interval", f"TOST p, ± {MARGIN:g}")
    more = ("published, one run", "so")
    title = "Does an order without a seed cost accuracy?"
    return Table(title, (*columns, *more), tuple(rows), NOTES, tuple(values))


STUDY = Study(
    "order",
    "Which batch orders cost accuracy, and does content, which needs no seed, cost any?",
    make,
    tabulate,
    make_draw(PUBLISHED),
    ("folds",),
)
