"""`seedless churn RUN RUN...`: which records get different labels from different runs."""

from pathlib import Path
from typing import Annotated

import typer

from seedless.cli.argument_checks import check_matches, one_of
from seedless.cli.options import AsJson, print_result


def churn(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...", help="Two or more run folders, or patterns.", callback=check_matches
        ),
    ],
    split: Annotated[
        str,
        typer.Option(
            help="test, validation or train.",
            callback=one_of("split", "test", "validation", "train"),
        ),
    ] = "test",
    half: Annotated[
        bool, typer.Option("--half", help="Use 0.5, not the thresholds of each run.")
    ] = False,
    ids: Annotated[
        str | None, typer.Option(metavar="CLASS", help="List the records of this class.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the records that get different labels from different runs."""
    from seedless.core.errors import DataError
    from seedless.core.files import match_paths

    if (count := sum(len(match_paths(run)) for run in runs)) < 2:
        raise DataError(f"expected two runs or more to compare, got {count}")
    from seedless.analysis.run_churn import churn as compare_runs
    from seedless.core.registry import choose
    from seedless.evaluate.churn_text import write_flips

    result = compare_runs(*runs, split=split, thresholds="half" if half else "own")
    if ids is not None:
        choose("class", ids, result.classes)
    text = result if ids is None else write_flips(result, ids)
    print_result(result.as_dict(), text, as_json)
