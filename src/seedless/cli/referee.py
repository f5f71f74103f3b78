"""`seedless referee A B`: which of two parties is right where their portable runs differ."""

from pathlib import Path
from typing import Annotated

import typer

from seedless.cli.argument_checks import check_exists
from seedless.cli.options import AsJson, DataPlace, Entry, print_result

_Command = Annotated[
    str | None,
    typer.Option(metavar="COMMAND", help="Asks this party, instead of executing its folder here."),
]


def referee(
    run_a: Annotated[
        Path,
        typer.Argument(metavar="A", help="The run folder of one party.", callback=check_exists),
    ],
    run_b: Annotated[
        Path | None,
        typer.Argument(metavar="B", help="The run folder of the other.", callback=check_exists),
    ] = None,
    a_command: _Command = None,
    b_command: _Command = None,
    answer: Annotated[
        bool, typer.Option("--answer", help="Be a party: answer a referee's requests about A.")
    ] = False,
    seconds: Annotated[
        float, typer.Option(help="How long a command may take for one answer.")
    ] = 3600.0,
    entry: Entry = None,
    data: DataPlace = None,
    as_json: AsJson = False,
) -> None:
    """Settle a dispute between two runs of one portable configuration.

    It finds the first epoch, step and operation that differ, and executes it.
    Exit code 0: no dispute. 10: A is right. 11: B is right. 12: neither.
    2: not two valid runs of one configuration. 3: it cannot be judged here.
    """
    from seedless.audit.dispute.referee import answer_for
    from seedless.audit.dispute.referee import referee as judge
    from seedless.core.errors import SeedlessError

    if answer:
        if run_b is not None or a_command is not None or b_command is not None:
            raise SeedlessError("expected `seedless referee A --answer`, with one run alone")
        answer_for(run_a, entry=entry, data=data)
        return
    if run_b is None:
        raise SeedlessError("expected `seedless referee A B`, the runs of two parties; got one")
    ruling = judge(
        run_a,
        run_b,
        a_command=a_command,
        b_command=b_command,
        entry=entry,
        data=data,
        seconds=seconds,
    )
    print_result(ruling.as_dict(), ruling.as_text(), as_json)
    raise typer.Exit(ruling.code)
