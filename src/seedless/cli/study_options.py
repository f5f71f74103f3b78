"""The options that choose the runs of a study, which most commands of `seedless study` share.

They are the parameters of `read_options`, and nothing else: `takes_grid_options` gives them to
every command that needs a grid.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from seedless.studies.engine.options import StudyOptions

GRID_PANEL = "Options that choose the runs"


def _grid_option(flag: str, help_text: str, **more: Any) -> Any:
    return typer.Option(flag, help=help_text, rich_help_panel=GRID_PANEL, **more)


def read_options(
    scale: Annotated[str, _grid_option("--scale", "smoke, small or paper.")] = "smoke",
    data: Annotated[
        str, _grid_option("--data", "simulated, the name of a dataset, or a file or folder.")
    ] = "simulated",
    seeds: Annotated[
        int | None, _grid_option("--seeds", "Seeds of each arm, instead of the scale's.", min=1)
    ] = None,
    device: Annotated[str, _grid_option("--device", "cpu, cuda or auto.")] = "auto",
    folds: Annotated[
        int | None,
        _grid_option("--folds", "Test on so many folds in turn, pool predictions.", min=2, max=10),
    ] = None,
    other: Annotated[
        list[str] | None,
        _grid_option(
            "--other", "A dataset to test trained models on; may be repeated.", metavar="NAME=PATH"
        ),
    ] = None,
    noise_path: Annotated[
        Path | None,
        _grid_option("--noise-path", "Recorded noise, instead of simulated.", metavar="FOLDER"),
    ] = None,
    prove: Annotated[
        bool, _grid_option("--prove", "Execute one run of each arm again, and compare the bits.")
    ] = False,
    arms: Annotated[
        str | None, _grid_option("--arms", "Run only these arms.", metavar="NAME,NAME")
    ] = None,
    settings: Annotated[
        list[str] | None,
        _grid_option("--set", "Change one setting of every run.", metavar="KEY=VALUE"),
    ] = None,
) -> StudyOptions:
    """Return the options that decide which runs a study has."""
    from seedless.studies.engine.options import StudyOptions

    return StudyOptions(
        scale=scale,
        data=data,
        seeds=seeds,
        device=device,
        folds=folds,
        other=tuple(other or ()),
        noise=None if noise_path is None else str(noise_path),
        prove=prove,
        changes=tuple(settings or ()),
        arms=tuple(name.strip() for name in arms.split(",")) if arms else (),
    )


def takes_grid_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the parameters of `read_options`; it receives their result as ``options``."""
    shared = inspect.signature(read_options).parameters
    own = {k: v for k, v in inspect.signature(command).parameters.items() if k != "options"}
    # The annotations are text in this module, and StudyOptions is not imported at run time.
    names = {"StudyOptions": object}
    hints = get_type_hints(read_options, localns=names, include_extras=True)
    hints |= get_type_hints(command, localns=names, include_extras=True)

    @wraps(command)
    def run_command(**values: Any) -> None:
        options = read_options(**{name: values.pop(name) for name in shared})
        command(options=options, **values)

    parameters = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[name])
        for name, parameter in {**own, **shared}.items()
    ]
    # typer reads the options of a command from its signature, which mypy takes for read-only.
    run_command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run_command.__annotations__ = {one.name: one.annotation for one in parameters}
    return run_command
