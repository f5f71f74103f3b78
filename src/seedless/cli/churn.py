"""`seedless churn RUN RUN...`: which records get different labels from different runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seedless.cli.options import AsJson, print_json, print_line

if TYPE_CHECKING:
    from seedless.evaluate.churn import Churn, ClassChurn, Share


def churn(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="The folders of two or more runs.")
    ],
    split: Annotated[str, typer.Option(help="test, validation or train.")] = "test",
    half: Annotated[
        bool, typer.Option("--half", help="Use 0.5, not the thresholds of each run.")
    ] = False,
    ids: Annotated[
        str | None, typer.Option(metavar="CLASS", help="List the records of this class.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the records that get different labels from different runs."""
    from seedless.analysis.run_churn import churn as compare_runs
    from seedless.core.registry import choose

    result = compare_runs(*runs, split=split, thresholds="half" if half else "own")
    if ids is not None:
        choose("class", ids, result.classes)
    if as_json:
        print_json(result.as_dict())
    elif ids is not None:
        _print_records(result, ids)
    else:
        _print(result)


def _print(result: Churn) -> None:
    print_line(f"{len(result.runs)} runs, {result.split}: n = {result.exact.n}")
    wide = max(len("any class"), *(len(name) for name in result.classes))
    heading = f"{'class':<{wide}} {'flips':>6} {'rate':>7}  {'95 % interval':<18}"
    heading += "   only 1   only 2  McNemar p" if result.mcnemar else " mean of two runs"
    print_line(heading)
    for name, row in result.classes.items():
        print_line(f"{name:<{wide}} {_row(row.flips, row)}")
    print_line(f"{'any class':<{wide}} {_row(result.exact, result)}")
    print_line()
    if result.mcnemar:
        print_line("only 1, only 2: records that only this run decides correctly")
    else:
        print_line("flips: records that not all runs decide alike; more runs, more flips")
        print_line("mean of two runs: records that two of the runs decide differently, on average")


def _row(share: Share, result: Churn | ClassChurn) -> str:
    low, high = share.interval.as_list()
    interval = f"{low:.2%} to {high:.2%}"
    text = f"{share.count:>6} {share.rate:>7.2%}  {interval:<18}"
    if (test := result.mcnemar) is None:
        return f"{text} {result.disagreement:>16.2%}"
    return f"{text} {test.first_only:>8} {test.second_only:>8}  {test.p:>9.4f}"


def _print_records(result: Churn, name: str) -> None:
    row = result.classes[name]
    print_line(f"{name}: {row.flips.count} of {row.flips.n} records flip")
    for number, run in enumerate(result.runs, start=1):
        limit = row.thresholds[number - 1]
        if result.task == "multi-class":
            print_line(f"  {number}: {run}")
        else:
            print_line(f"  {number}: {run}, called from {0.5 if limit is None else limit:.4f} on")
    for flip in row.records:
        answers = "  ".join(
            f"{probability:.4f} {'yes' if called else 'no':<3}"
            for probability, called in zip(flip.probabilities, flip.calls, strict=True)
        )
        print_line(f"{flip.id}  {answers}")
