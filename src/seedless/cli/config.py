"""`seedless config show`: every setting with its value, its choices and what it does; presets."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seedless.cli.completion import complete_presets
from seedless.cli.options import AsJson, Settings, make_group, print_result

if TYPE_CHECKING:
    from seedless.core.config import Config

app = make_group("Show settings and presets.")
_WIDTH = 96  # of a line
_INDENT = 27  # before what a setting does


@app.command("show")
def show(
    config: Annotated[
        str | None,
        typer.Argument(
            help="A preset or a TOML file; without it, the default values.",
            autocompletion=complete_presets,
        ),
    ] = None,
    as_json: AsJson = False,
    settings: Settings = None,
) -> None:
    """Explain every setting, show its value, and list the presets."""
    from seedless.core.config import Config, override
    from seedless.core.config_files import list_presets, open_config
    from seedless.core.setting_choices import check_choices

    chosen = override(open_config(config) if config else Config(), settings or [])
    check_choices(chosen)
    presets = {name: _describe_preset(file) for name, file in list_presets().items()}
    values = {"config": config, "settings": chosen.model_dump(), "presets": presets}
    print_result(values, write_settings(chosen, config, presets), as_json)


def write_settings(config: Config, name: str | None, presets: dict[str, str]) -> str:
    """Return every setting by section, with its value, what it does and what it can be."""
    from seedless.core.display import escape_text
    from seedless.core.setting_choices import list_choices
    from seedless.core.setting_texts import SETTING_TEXTS

    shown = "the defaults" if name is None else escape_text(name)
    lines = [f"Settings, with the values of {shown}. Change one: --set section.key=value"]
    for section, values in config.model_dump().items():
        lines += ["", f"[{section}]"]
        for key, value in values.items():
            setting = f"{section}.{key}"
            text = SETTING_TEXTS[setting]
            if choices := list_choices(setting):
                text += f" One of: {', '.join(choices)}."
            lines += _write_setting(f"{key} = {_write_value(value)}", text)
    lines += ["", "Presets: seedless train NAME --out RUN, or a TOML file with settings as above"]
    for preset, text in presets.items():
        lines += _write_setting(preset, text)
    return "\n".join(map(escape_text, lines))


def _write_setting(head: str, text: str) -> list[str]:
    """Return a setting and what it does, which begins on the same line where there is room."""
    wrapped = textwrap.wrap(text, _WIDTH - _INDENT)
    body = [" " * _INDENT + line for line in wrapped]
    if len(head) + 4 > _INDENT:
        return [f"  {head}", *body]
    return [f"  {head:<{_INDENT - 2}}{wrapped[0]}", *body[1:]]


def _write_value(value: Any) -> str:
    """Return a value as in a TOML file; a setting that has none is left out there."""
    if value is None:
        return "(not set)"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


def _describe_preset(file: Path) -> str:
    """Return the sentence below the first line of a preset's file."""
    comment = []
    for line in file.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        comment.append(line.lstrip("# "))
    text = " ".join(comment[1:])
    return text.partition(". ")[0].rstrip(".") + "."
