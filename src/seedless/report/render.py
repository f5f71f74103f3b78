"""Templates to text: one environment for every page, in which all that is filled in is escaped."""

from __future__ import annotations

from importlib.resources import files
from typing import Any


def render(template: str, **values: Any) -> str:
    """Return a template filled in; a value it asks for and is not given is an error."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    templates = files("seedless.report") / "templates"
    environment = Environment(
        loader=FunctionLoader(lambda name: templates.joinpath(name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(template).render(**values)
