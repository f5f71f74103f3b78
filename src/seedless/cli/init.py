"""`seedless init show MODEL`: how every parameter of a model would begin."""

from __future__ import annotations

from typing import Annotated

import typer

from seedless.cli.options import AsJson, ConfigFile, Settings, print_json, read_config

app = typer.Typer(help="Seed-free initialization.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass


@app.command("show")
def show(
    model: Annotated[str, typer.Argument(help="conformer, baseline, xresnet1d101 or resnet18.")],
    basis: Annotated[
        str | None,
        typer.Option(
            help="mixed (the default), dct, hadamard, hartley, sinusoidal, walsh, kaiming or "
            "kaiming_normal."
        ),
    ] = None,
    leads: Annotated[int | None, typer.Option(help="Leads of an ECG model.")] = None,
    channels: Annotated[int | None, typer.Option(help="Channels of an image model.")] = None,
    classes: Annotated[int | None, typer.Option(help="Number of classes.")] = None,
    small: Annotated[bool | None, typer.Option("--small", help="The small variant.")] = None,
    as_json: AsJson = False,
    config: ConfigFile = None,
    settings: Settings = None,
) -> None:
    """Print the initialization plan of MODEL with its digests; no machine shows in it."""
    from seedless.core.digests import digest, md5
    from seedless.init import initialize
    from seedless.models import build

    resolved = read_config(
        config,
        settings,
        model__name=model,
        model__leads=leads,
        model__channels=channels,
        model__classes=classes,
        model__small=small,
        init__basis=basis,
    )
    chosen = resolved.model
    network = build(**chosen.model_dump())
    plan = initialize(network, **resolved.init.model_dump())
    if as_json:
        identity = {"model": chosen.name, "weights": digest(network), "md5": md5(network)}
        print_json({**identity, **plan.as_dict()})
        return
    typer.echo(str(plan))
    typer.echo(f"weights {digest(network)}")
    typer.echo(f"md5 {md5(network)}")
