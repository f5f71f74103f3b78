"""`seedless compare 'A/*' 'B/*'`: compare the scores of two arms of runs."""

from typing import Annotated

import typer

from seedless.cli.options import AsJson, print_result


def compare(
    a: Annotated[
        str, typer.Argument(metavar="A", help="Runs or JSON files: a pattern, in quotes.")
    ],
    b: Annotated[str, typer.Argument(metavar="B", help="The other arm, in the same way.")],
    metric: Annotated[
        str, typer.Option(help="For run folders: macro_auc, or auc:CLASS.")
    ] = "macro_auc",
    split: Annotated[str, typer.Option(help="For run folders: test or validation.")] = "test",
    field: Annotated[str | None, typer.Option(help="For JSON files: the number's path.")] = None,
    margin: Annotated[
        float | None, typer.Option(help="Test equivalence within this difference (TOST).")
    ] = None,
    published_df: Annotated[
        bool, typer.Option("--published-df", help="TOST with n1 + n2 - 2 degrees of freedom.")
    ] = False,
    converged_above: Annotated[
        float | None, typer.Option(help="Leave out and count runs that score this or less.")
    ] = None,
    factor: Annotated[
        list[str] | None, typer.Option(help="The setting in which the arms should differ.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare the scores of two arms of runs, with warnings.

    Welch's test, Cohen's d, pairs by seed, equivalence and power.
    Exit code 0: compared. 2: the arms cannot be compared.
    """
    from seedless.analysis.comparison import compare as compare_arms
    from seedless.core.errors import StatsError

    if field is not None and (metric, split) != ("macro_auc", "test"):
        raise StatsError("--metric and --split are for run folders; JSON files take only --field")
    if not a.strip() or not b.strip():
        raise StatsError("an arm is empty: give a glob of run folders or files, such as 'runs/a-*'")
    result = compare_arms(
        a,
        b,
        metric=metric,
        split=split,
        field=field,
        margin=margin,
        published_df=published_df,
        converged_above=converged_above,
        factor=factor or (),
    )
    print_result(result.as_values(), result, as_json)
