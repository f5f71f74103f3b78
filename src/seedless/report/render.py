"""Text from templates. In HTML all values are escaped, except drawings that are marked safe."""

import base64
from importlib.resources import files
from typing import Any

from seedless.core.display import escape_lines
from seedless.core.errors import SeedlessError


def render(template: str, **values: Any) -> str:
    """Return a template filled with values; a missing value is an error."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    templates = files("seedless.report") / "templates"
    environment = Environment(
        loader=FunctionLoader(lambda name: templates.joinpath(name).read_text(encoding="utf-8")),
        autoescape=lambda name: name is not None and name.endswith(".html"),
        undefined=StrictUndefined,
        finalize=_show_characters,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(template).render(**values)


def _show_characters(value: Any) -> Any:
    """Return a text with characters that do not print escaped; drawings have none."""
    return escape_lines(value) if type(value) is str else value


def data_uri(picture: str) -> str:
    """Return a picture as the source of an <img>, in which an SVG can run no script."""
    if picture.lstrip().startswith("<"):
        return f"data:image/svg+xml;base64,{base64.b64encode(picture.encode()).decode()}"
    try:
        base64.b64decode(picture, validate=True)
    except ValueError:
        raise SeedlessError("a picture is a PNG in base64 or the text of an SVG") from None
    return f"data:image/png;base64,{picture}"


def mark_safe(drawing: str) -> Any:
    """Return a drawing that templates insert unescaped; the texts in it are escaped already."""
    from markupsafe import Markup

    return Markup(drawing)
