"""Tables of equivalence tests that a protocol fixed beforehand, and of how long the runs were."""

from collections.abc import Sequence

from seedless.core.errors import StatsError
from seedless.stats.equivalence import Equivalence, paired_tost, tost
from seedless.stats.holm_correction import holm
from seedless.studies.engine.arm_tables import Pair, keep_present, name_arm
from seedless.studies.engine.results import Results
from seedless.studies.engine.table import Table

ALPHA = 0.05
PAIRED = (
    "Pairs share the seed of their order, and where both are random that of their start. Not shown "
    "to be equal is not shown to differ."
)
UNPAIRED = (
    "Replicates of one arm are seeds, of the other offsets: they are no pairs. Not shown to be "
    "equal is not shown to differ."
)


def tabulate_equivalence(
    title: str, results: Results, pairs: Sequence[Pair], margin: float, planned: int | None = None
) -> Table:
    """Return one row per pair (block, arm, other arm): two one-sided tests, corrected by Holm.

    Replicates of the same name are tested as pairs; where there are none, arms are two samples.

    Args:
        margin: differences below it do not matter.
        planned: how many replicates the protocol asks for. With fewer the tests are secondary.
    """
    present = keep_present(results.grid, pairs)
    shared, tests = False, {}
    for pair in present:
        shared = shared or bool(_list_shared(results, pair))
        tests[pair] = _test(results, pair, margin)
    found = {pair: test for pair, test in tests.items() if isinstance(test, Equivalence)}
    p_values = {"/".join(pair): test.p for pair, test in found.items()}
    adjusted = dict(holm(p_values).adjusted) if p_values else {}
    rows, values = [], []
    for pair, test in tests.items():
        block, one, other = pair
        name = f"{block}: {one} - {other}" if block else f"{one} - {other}"
        if isinstance(test, str):
            rows.append((name, "", "", "", "", "", f"not tested: {test}"))
            continue
        low, high = test.interval
        p = adjusted["/".join(pair)]
        rows.append(
            (
                name,
                ", ".join(map(str, dict.fromkeys(test.n))),
                f"{test.difference:+.4f}",
                f"{low:+.4f} to {high:+.4f}",
                f"{test.p:.3g}",
                f"{p:.3g}",
                "equal within the margin" if p < ALPHA else "not shown to be equal",
            )
        )
        values.append({"pair": list(pair), "n": min(test.n), "p": test.p, "holm": p})
    kind = "paired TOST" if shared else "TOST"
    columns = ("", "n", "difference", "90 % interval", f"{kind} p, ± {margin:g}", "Holm", "so")
    fewest = min((min(test.n) for test in found.values()), default=0)
    rank = rank_tests(fewest, planned)
    notes = (PAIRED if shared else UNPAIRED,)
    return Table(f"{rank}: {title}", columns, tuple(rows), notes, tuple(values))


def rank_tests(replicates: int, planned: int | None) -> str:
    """Return "Primary", or "Secondary" where there are fewer replicates than were planned."""
    if planned is None or replicates >= planned:
        return "Primary"
    return f"Secondary, with {replicates} of {planned} planned replicates"


def _list_shared(results: Results, pair: Pair) -> list[str]:
    block, one, other = pair
    b = results.scores(other, block)
    return [name for name in results.scores(one, block) if name in b]


def _test(results: Results, pair: Pair, margin: float) -> Equivalence | str:
    """Return the test of a pair of arms, or why there is none."""
    block, one, other = pair
    a, b = results.scores(one, block), results.scores(other, block)
    shared = _list_shared(results, pair)
    try:
        if shared:
            return paired_tost([a[n] for n in shared], [b[n] for n in shared], margin)
        return tost(list(a.values()), list(b.values()), margin)
    except StatsError as error:
        return str(error)


def tabulate_last_epochs(results: Results) -> Table:
    """Return how often the last evaluation was selected: such runs might still have improved."""
    rows = []
    for block, arm in results.grid.arms_by_block:
        done = [one for one in results.outcomes_of(arm, block) if one.metrics is not None]
        last = sum(
            one.metrics["selected"]["epoch"] == one.point.config.train.epochs
            for one in done
            if one.metrics is not None and "selected" in one.metrics
        )
        rows.append((name_arm(block, arm), str(len(done)), str(last)))
    columns = ("", "runs", "selected at the last epoch")
    return Table("Were the runs long enough?", columns, tuple(rows))
