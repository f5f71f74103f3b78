"""Show values that someone else may have chosen: names of classes, settings, paths, messages.

Printed as it is, such a value could move the cursor, hide text, reverse its direction, or begin a
line that looks like a verdict. Here it becomes one line of visible characters.
"""

import json
from typing import Any


def escape_text(value: object) -> str:
    r"""Return a value as text of one line, with every character that does not print escaped.

    Escaped are control characters (line feeds too), marks that change the direction of text,
    characters without width, unusual spaces and halves of surrogate pairs.

    >>> escape_text("two\nlines \x1b[31m")
    'two\\nlines \\x1b[31m'
    """
    text = str(value)
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def escape_lines(text: object) -> str:
    r"""Return a text of several lines, each of them escaped as `escape_text` does.

    For a text whose line feeds are this package's own: values in it must be escaped before.

    >>> escape_lines("a\x07\nb")
    'a\\x07\nb'
    """
    return "\n".join(map(escape_text, str(text).split("\n")))


def escape_paragraph(text: object) -> str:
    """Return a text of several lines with all but the first indented, each of them escaped.

    A line feed in a value can then not begin a line that looks like a result.
    """
    return escape_lines(text).replace("\n", "\n  ")


def count_things(count: int, name: str) -> str:
    """Return a number of things in words.

    >>> count_things(1, "step"), count_things(2_000, "step")
    ('1 step', '2,000 steps')
    """
    return f"{count:,} {name}{'s' * (count != 1)}"


def escape_plot_text(value: object) -> str:
    r"""Return a value as matplotlib draws it: escaped, and without formulas between dollar signs.

    >>> escape_plot_text("$x$")
    '\\$x\\$'
    """
    return escape_text(value).replace("$", r"\$")


def write_json(value: Any, *, indent: int | None = 2) -> str:
    r"""Return a value as JSON with sorted keys, in which every character prints.

    >>> write_json({"name": "a\u202eb"}, indent=None)
    '{"name": "a\\u202eb"}'
    """
    return escape_json(json.dumps(value, indent=indent, sort_keys=True, ensure_ascii=False))


def escape_json(text: str) -> str:
    """Return the text of JSON with each character that does not print written as an escape."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(
        char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text
    )
