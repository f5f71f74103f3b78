"""`seedless init show MODEL`: the initial values of every parameter of a model."""

from typing import Annotated

import typer

from seedless.cli.completion import complete_models
from seedless.cli.options import AsJson, ConfigFile, Settings, make_group, print_result, read_config
from seedless.core.errors import ConfigError

app = make_group("Show how a model is initialized.")


@app.command("show")
def show(
    model: Annotated[
        str,
        typer.Argument(
            help="conformer, baseline, xresnet1d101 or resnet18.", autocompletion=complete_models
        ),
    ],
    basis: Annotated[
        str | None, typer.Option(help="mixed, dct, ...; a wrong name lists all.")
    ] = None,
    leads: Annotated[int | None, typer.Option(help="Leads of an ECG model.")] = None,
    channels: Annotated[int | None, typer.Option(help="Channels of an image model.")] = None,
    classes: Annotated[int | None, typer.Option(help="Number of classes.")] = None,
    small: Annotated[bool | None, typer.Option("--small", help="The small variant.")] = None,
    as_json: AsJson = False,
    config: ConfigFile = None,
    settings: Settings = None,
) -> None:
    """Print the initialization plan of a model, with digests.

    The plan is the same on every machine.
    """
    from seedless.core.setting_choices import check_choices

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
    check_choices(resolved)
    if resolved.init.weights is not None or resolved.init.reinitialize is not None:
        raise ConfigError(
            "init show prints what a start fills, and init.weights takes tensors from a file: "
            "leave init.weights and init.reinitialize out"
        )
    from seedless.core.digests import digest, md5
    from seedless.init import initialize
    from seedless.models import build

    chosen = resolved.model
    network = build(**chosen.model_dump())
    plan = initialize(network, **resolved.init.start())
    identity = {"model": chosen.name, "weights": digest(network), "md5": md5(network)}
    text = f"{plan}\nweights {identity['weights']}\nmd5 {identity['md5']}"
    print_result({**identity, **plan.as_dict()}, text, as_json)
