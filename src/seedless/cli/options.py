"""Options and output that several commands share."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from seedless.cli.argument_checks import check_finished, check_place
from seedless.cli.completion import complete_settings
from seedless.core.display import escape_lines, escape_text, write_json
from seedless.core.errors import RunError

if TYPE_CHECKING:
    from seedless.core.config import Config

STOPPED = 130  # the exit code of a program that Ctrl-C ended


RunFolder = Annotated[
    Path,
    typer.Argument(metavar="RUN", help="The folder of a finished run.", callback=check_finished),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")]
ConfigFile = Annotated[Path | None, typer.Option("--config", help="A TOML file with settings.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change one setting: section.key=value.",
        autocompletion=complete_settings,
    ),
]

Entry = Annotated[
    str | None,
    typer.Option(
        "--entry",
        metavar="package.module:function",
        help="For a run of fit(): the function that returns its model and arrays.",
    ),
]
DataPlace = Annotated[
    str | None,
    typer.Option(
        "--data", help="Where the data are now, if they were moved.", callback=check_place
    ),
]
WeightsPlace = Annotated[
    Path | None,
    typer.Option(
        "--weights",
        metavar="FILE",
        help="Where the weights file it began with is now, if it was moved.",
    ),
]


class Command(TyperCommand):
    """A command whose help names no type for an option that takes no value."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options and arguments, with the option of the help text."""
        return hide_flag_types(super().get_params(ctx))


class CommandGroup(TyperGroup):
    """A group of commands; the same holds for its own options."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options and arguments, with the option of the help text."""
        return hide_flag_types(super().get_params(ctx))


class Program(typer.Typer):
    """A program or a group whose commands are of this class."""

    def command(self, name: str | None = None, **options: Any) -> Any:
        """Return a decorator that adds a command."""
        return super().command(name, **{"cls": Command, **options})


def hide_flag_types(params: list[Any]) -> list[Any]:
    """Return options and arguments; typer would show <bool> beside each that takes no value."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return params


def make_group(help_text: str) -> typer.Typer:
    """Return a group of commands, such as `seedless data`."""
    group = Program(help=help_text, no_args_is_help=True, cls=CommandGroup)
    # Without a callback, typer would drop the word `show` of a group with that one command.
    group.callback()(lambda: None)
    return group


def read_config(file: Path | None, settings: list[str] | None, **flags: Any) -> Config:
    """Return the configuration: defaults, then the file, then the flags, then --set; the last wins.

    Flags are named section__key; a flag that is None was not set.
    """
    from seedless.core.config import Config, override, parse_config
    from seedless.core.config_files import load_config

    config = load_config(file) if file is not None else Config()
    values = config.model_dump()
    for name, value in flags.items():
        if value is not None:
            section, key = name.split("__")
            values[section][key] = value
    return override(parse_config(values), settings or [])


def write_output(path: Path, content: bytes) -> None:
    """Write a file that a command was asked for, completely or not at all."""
    from seedless.core.files import write_atomic

    try:
        write_atomic(path, content)
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror}") from None


def spell_numbers(value: Any) -> Any:
    """Return a value with NaN and infinities as text, because JSON has no such numbers."""
    if isinstance(value, dict):
        return {key: spell_numbers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [spell_numbers(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def print_line(text: object = "", *, err: bool = False) -> None:
    """Print one line, in which values of someone else's can neither move the cursor nor end it."""
    typer.echo(escape_text(text), err=err)


def print_text(text: object) -> None:
    """Print a text whose line feeds are this program's own; values in it were escaped before."""
    typer.echo(escape_lines(text))


def print_json(value: Any) -> None:
    """Print a value as JSON with sorted keys."""
    typer.echo(write_json(value))


def print_result(value: Any, text: object, as_json: bool) -> None:
    """Print a command's result: a value as JSON, or a text for people."""
    if as_json:
        print_json(value)
    else:
        print_text(text)
