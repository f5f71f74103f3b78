"""`seedless portable check`: does portable arithmetic here agree with other machines?"""

from typing import Annotated

import typer

from seedless.cli.argument_checks import one_of
from seedless.cli.options import AsJson, make_group, print_result

app = make_group("Check portable arithmetic on this machine.")


@app.command("check")
def check(
    device: Annotated[
        str, typer.Option(help="cpu or cuda.", callback=one_of("device", "cpu", "cuda"))
    ] = "cpu",
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

    result = run(device, full, None if as_json else typer.echo)
    values = {
        "device": result.device,
        "differences": list(result.differences),
        "engine": result.engine,
        "engine_reason": result.engine_reason,
        "full": pack(result.full),
        "fused": result.fused,
        "models": pack(result.models),
        "ops": dict(result.ops),
        "same": result.same,
        "sentence": result.sentence,
        "shipped": read_committed(),
    }
    print_result(values, "\n".join([*result.differences, result.sentence]), as_json)
    raise typer.Exit(0 if result.same else 1)
