"""`seedless portable check`: is portable arithmetic on this machine what it is on the others?"""

from __future__ import annotations

from typing import Annotated

import typer

from seedless.cli.options import AsJson, print_json

app = typer.Typer(help="Arithmetic whose bits no processor changes.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Keep `check` a word of its own while it is the only one."""


@app.command("check")
def check(
    device: Annotated[str, typer.Option("--device", help="cpu or cuda.")] = "cpu",
    full: Annotated[
        bool, typer.Option("--full", help="Also models of published size: minutes on a CPU.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compute the digests of portable arithmetic here, beside those that ship with the package.

    Each op's digest covers its result and its gradients, each model's 20 steps of training. Exit
    code 0: all are the same, so portable runs made here and elsewhere have the same bits. 1: some
    differ, and the lines say which.
    """
    from seedless.audit.portable_check import check as run
    from seedless.audit.portable_check import pack
    from seedless.portable.check.compute import read_committed

    found = run(device, full, None if as_json else typer.echo)
    if as_json:
        print_json(
            {
                "device": found.device,
                "differences": list(found.differences),
                "full": pack(found.full),
                "fused": found.fused,
                "models": pack(found.models),
                "ops": dict(found.ops),
                "same": found.same,
                "sentence": found.sentence,
                "shipped": read_committed(),
            }
        )
    else:
        for line in found.differences:
            typer.echo(line)
        typer.echo(found.sentence)
    raise typer.Exit(0 if found.same else 1)
