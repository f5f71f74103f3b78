"""`seedless portable check`: does portable arithmetic here agree with other machines?"""

from typing import Annotated

import typer

from seedless.cli.options import AsJson, print_result

app = typer.Typer(help="Check portable arithmetic on this machine.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Without this, typer would drop the word `check`, because it is the only command."""


@app.command("check")
def check(
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    full: Annotated[
        bool, typer.Option("--full", help="Also models in published size (slow on a CPU).")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare digests of portable arithmetic with the committed ones.

    The digest of an op covers its result and its gradients.
    The digest of a model covers 20 steps of training.
    Exit code 0: all agree, so portable runs have the same bits here.
    1: some differ, and the output says which.
    """
    from seedless.audit.portable_check import check as run
    from seedless.audit.portable_check import pack
    from seedless.portable.check.compute import read_committed

    found = run(device, full, None if as_json else typer.echo)
    values = {
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
    print_result(values, "\n".join([*found.differences, found.sentence]), as_json)
    raise typer.Exit(0 if found.same else 1)
