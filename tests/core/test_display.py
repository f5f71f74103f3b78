"""Values of others are shown in one line, and every character of them is visible."""

import json

import pytest

from seedless.core.display import (
    escape_lines,
    escape_paragraph,
    escape_plot_text,
    escape_text,
    write_json,
)

INVISIBLE = {
    "escape": "\x1b",
    "carriage return": "\r",
    "line feed": "\n",
    "null": "\0",
    "delete": "\x7f",
    "control sequence in one character": "\x9b",
    "next line": "\x85",
    "line separator": "\u2028",
    "paragraph separator": "\u2029",
    "right to left": "\u202e",
    "isolate": "\u2066",
    "no width": "\u200b",
    "byte order mark": "\ufeff",
    "soft hyphen": "\xad",
    "tag": "\U000e0041",
    "private": "\ue000",
    "half a pair": "\ud800",
    "unusual space": "\u00a0",
}


@pytest.mark.parametrize("char", INVISIBLE.values(), ids=INVISIBLE)
def test_a_character_that_does_not_print_is_escaped(char):
    shown = escape_text(f"a{char}b")
    assert shown.isprintable()
    assert shown.encode().decode("unicode_escape") == f"a{char}b"


@pytest.mark.parametrize("text", ["", "plain", "é ß 心 ± \\n", "a  b"])
def test_visible_text_stays_as_it_is(text):
    assert escape_text(text) == escape_lines(text) == text


def test_any_value_is_shown():
    assert escape_text(3) == "3"
    assert escape_text(None) == "None"


def test_own_line_feeds_survive_where_they_are_meant():
    assert escape_lines("a\x1b\nb") == "a\\x1b\nb"
    assert escape_paragraph("error: a\nIDENTICAL") == "error: a\n  IDENTICAL"


@pytest.mark.parametrize("char", INVISIBLE.values(), ids=INVISIBLE)
def test_json_prints_and_means_the_same(char):
    value = {f"k{char}": [f"v{char}", 1.5, "é"]}
    text = write_json(value)
    assert text.replace("\n", "").isprintable()
    assert json.loads(text) == value
    assert "é" in text


def test_plots_draw_no_formulas():
    from matplotlib.figure import Figure

    for text in ("$\\frac{1$", "a$b", "$x$"):
        figure = Figure(figsize=(1, 1))
        drawn = figure.text(0, 0, escape_plot_text(text))
        figure.canvas.draw()
        assert drawn.get_text().replace("\\$", "$") == text
