"""`seedless diff RUN_A RUN_B`: where two runs begin to differ, and in which settings."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from seedless.cli.argument_checks import check_exists
from seedless.cli.options import AsJson, DataPlace, Entry, print_json, print_line, spell_numbers
from seedless.core.display import escape_text
from seedless.core.errors import ConfigError


def diff(
    run_a: Annotated[
        Path, typer.Argument(help="The folder of a run or of a trail.", callback=check_exists)
    ],
    run_b: Annotated[Path, typer.Argument(help="The other run.", callback=check_exists)],
    locate: Annotated[
        bool, typer.Option("--locate", help="Execute both to find the first op that differs.")
    ] = False,
    execute: Annotated[
        bool,
        typer.Option(
            "--execute",
            help="With --locate: run the commands of two recorded loops, with your rights.",
        ),
    ] = False,
    no_replay: Annotated[
        bool, typer.Option("--no-replay", help="Compare the trails only; find no step.")
    ] = False,
    entry: Entry = None,
    entry_b: Annotated[
        str | None, typer.Option("--entry-b", help="--entry for the second run, if different.")
    ] = None,
    data: DataPlace = None,
    as_json: AsJson = False,
) -> None:
    """Find the first epoch, step and tensor in which two runs differ.

    With --locate also the first operation; recorded loops need --execute for it.
    Exit code 0: identical. 1: they differ. 2: they cannot be compared.
    """
    from seedless.audit.difference_text import describe_difference
    from seedless.audit.run_diff import diff as compare

    if execute and not locate:
        raise ConfigError("--execute needs --locate: nothing else is executed by it")
    result = compare(
        run_a,
        run_b,
        replay=not no_replay,
        locate=locate,
        execute=execute,
        report=lambda line: typer.echo(escape_text(line), err=True),
        entry=entry,
        entry_b=entry_b,
        data=data,
    )
    if as_json:
        print_json(spell_numbers(asdict(result)))
    else:
        for line in describe_difference(result, str(run_a), str(run_b)):
            print_line(line)
    raise typer.Exit(0 if result.identical else 1)
