"""`seedless compare 'A/*' 'B/*'` or `A/* vs B/*`: compare the scores of two arms of runs."""

from typing import Annotated

import typer

from seedless.cli.argument_checks import one_of
from seedless.cli.options import AsJson, print_result

SEPARATOR = "vs"  # between the arms, where a shell has written out the patterns


def compare(
    arms: Annotated[
        list[str],
        typer.Argument(
            metavar="A B",
            help="Two arms of runs or JSON files: two patterns in quotes, or paths vs paths.",
        ),
    ],
    metric: Annotated[
        str, typer.Option(help="For run folders: macro_auc, or auc:CLASS.")
    ] = "macro_auc",
    split: Annotated[
        str,
        typer.Option(
            help="For run folders: test, validation or train.",
            callback=one_of("split", "test", "validation", "train"),
        ),
    ] = "test",
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
    from seedless.core.errors import StatsError
    from seedless.core.files import match_paths

    if field is not None and (metric, split) != ("macro_auc", "test"):
        raise StatsError("--metric and --split are for run folders; JSON files take only --field")
    a, b = split_arms(arms)
    for name, places in (("A", a), ("B", b)):
        if unmatched := [place for place in places if not match_paths(place)]:
            raise StatsError(f"arm {name}: nothing matches {unmatched[0]!r}")
    from seedless.analysis.comparison import compare as compare_arms

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


def split_arms(words: list[str]) -> tuple[list[str], list[str]]:
    """Return the patterns or paths of each arm: two words, or those before and after "vs".

    >>> split_arms(["a-1", "a-2", "vs", "b-1", "b-2"])
    (['a-1', 'a-2'], ['b-1', 'b-2'])
    """
    from seedless.core.errors import StatsError

    if words.count(SEPARATOR) == 1:
        place = words.index(SEPARATOR)
        a, b = words[:place], words[place + 1 :]
    else:
        a, b = words[:1], words[1:]
        if len(words) != 2:
            raise StatsError(
                f"expected two arms, got {len(words)} arguments: put each pattern in quotes, "
                "seedless compare 'runs/a-*' 'runs/b-*', or the word vs between them, "
                "seedless compare runs/a-* vs runs/b-*"
            )
    if not all(arm and all(word.strip() for word in arm) for arm in (a, b)):
        raise StatsError("an arm is empty: give a glob of run folders or files, such as 'runs/a-*'")
    return a, b
