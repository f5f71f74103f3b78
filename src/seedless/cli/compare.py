"""`seedless compare 'A/*' 'B/*'`: two arms of runs in one row, and whether that is fair."""

from __future__ import annotations

from typing import Annotated

import typer

from seedless.cli.options import AsJson, print_json


def compare(
    a: Annotated[str, typer.Argument(help="A quoted glob of run folders, or of JSON files.")],
    b: Annotated[str, typer.Argument(help="The other arm.")],
    metric: Annotated[
        str, typer.Option(help="Of run folders: macro_auc, or auc:AFIB for one class.")
    ] = "macro_auc",
    split: Annotated[str, typer.Option(help="Of run folders: test or validation.")] = "test",
    field: Annotated[
        str | None, typer.Option(help="Read JSON files: the number at this dotted path.")
    ] = None,
    margin: Annotated[
        float | None, typer.Option(help="Test equivalence within this difference (TOST).")
    ] = None,
    published_df: Annotated[
        bool, typer.Option("--published-df", help="TOST with n1 + n2 - 2 degrees of freedom.")
    ] = False,
    converged_above: Annotated[
        float | None, typer.Option(help="Set runs aside that score this or less; count them.")
    ] = None,
    factor: Annotated[
        list[str] | None, typer.Option(help="The setting the arms are meant to differ in.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare two arms: means, SDs, Welch, Cohen's d, pairs, equivalence, power; and warn.

    Exit code 0: compared. 2: cannot be compared.
    """
    from seedless.analysis.comparison import compare as compare_arms
    from seedless.core.errors import StatsError

    if field is not None and (metric, split) != ("macro_auc", "test"):
        raise StatsError("--metric and --split are of run folders; JSON files have --field alone")
    if not a.strip() or not b.strip():
        raise StatsError("an arm is empty: give a glob of run folders or files, such as 'runs/a-*'")
    found = compare_arms(
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
    if as_json:
        print_json(found.as_values())
    else:
        typer.echo(str(found))
