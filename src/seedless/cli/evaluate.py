"""`seedless evaluate RUN`: the scores of a finished run, or of its weights on other data."""

from typing import Annotated

import typer

from seedless.cli.argument_checks import one_of
from seedless.cli.options import AsJson, RunFolder, Settings, print_result


def evaluate(
    run: RunFolder,
    data: Annotated[
        str | None, typer.Option(help="Another dataset; default: the run's own predictions.")
    ] = None,
    split: Annotated[
        str,
        typer.Option(
            help="test, validation or train; for other data also all.",
            callback=one_of("split", "test", "validation", "train", "all"),
        ),
    ] = "test",
    by: Annotated[
        str | None,
        typer.Option(
            help="Score groups separately: sex or age.", callback=one_of("group", "sex", "age")
        ),
    ] = None,
    resamples: Annotated[int, typer.Option(help="Resamples for the macro AUC's interval.")] = 400,
    as_json: AsJson = False,
    settings: Settings = None,
) -> None:
    """Print the scores of a run by class, with intervals.

    With --data the weights of the run predict on other records, with the
    normalization and the thresholds of the run.
    """
    if data is not None:
        from seedless.core.config import Config, override
        from seedless.data.loading import check_data_exists

        check_data_exists(override(Config().change(data={"name": data}), settings or []).data)
    from seedless.analysis.evaluation import evaluate as evaluate_run

    result = evaluate_run(
        run, data=data, settings=settings or [], split=split, by=by, resamples=resamples
    )
    print_result(result.as_dict(), result, as_json)
