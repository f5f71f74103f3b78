"""Options and output that several verbs share."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from seedless.core.config import Config

STOPPED = 130  # what a shell gives a program that Ctrl-C ended

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", help="A TOML file to take settings from.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change one setting: section.key=value."),
]

Entry = Annotated[
    str | None,
    typer.Option(
        "--entry",
        metavar="package.module:function",
        help="For a run of fit(): a function that returns its model and arrays.",
    ),
]
DataPlace = Annotated[
    str | None,
    typer.Option("--data", help="Where the data lie now, if not where they lay then."),
]


def read_config(file: Path | None, settings: list[str] | None, **flags: Any) -> Config:
    """Return defaults, then the file, then the verb's own flags, then --set: the last one wins.

    Flags are named section__key; one that is None was not given.
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


def spell_numbers(value: Any) -> Any:
    """Return a value with NaN and infinities as text, which JSON has no numbers for."""
    if isinstance(value, dict):
        return {key: spell_numbers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [spell_numbers(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def print_json(value: Any) -> None:
    """Print a value as JSON with sorted keys."""
    typer.echo(json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False))
