"""Progress in a notebook: one bar below the cell that is replaced, and lines that are no errors."""

import sys
import types

import pytest

from seedless.core import progress as module
from seedless.core.notebook import is_notebook
from seedless.core.progress import Progress


@pytest.fixture
def shown(monkeypatch):
    """What a notebook shows: every state of its bar; the module stands for IPython."""
    states = []

    class Handle:
        def update(self, page):
            states.append(page)

    def display(page, display_id):
        assert display_id
        states.append(page)
        return Handle()

    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    pages = types.ModuleType("IPython.display")
    pages.display, pages.HTML = display, str
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", pages)
    monkeypatch.setattr(module, "SECONDS_BETWEEN_BARS", 0.0)
    return states


def test_a_bar_is_replaced_and_lines_go_to_standard_output(shown, capsys):
    with Progress("my <run>", 4, "epochs") as progress:
        progress.update(1, "loss 0.5")
        progress.say("a note")
    assert all("my &lt;run&gt;" in page and "<progress" in page for page in shown)
    assert 'value="0.2500"' in shown[1]
    assert "1 of 4 epochs, loss 0.5" in shown[1]
    assert "in 0 s" in shown[-1]
    assert capsys.readouterr() == ("my <run>: a note\n", "")


def test_bars_are_rare_since_each_is_a_message(shown, monkeypatch):
    monkeypatch.setattr(module, "SECONDS_BETWEEN_BARS", 60.0)
    with Progress("mine", 1000) as progress:
        for done in range(1000):
            progress.update(done)
    assert len(shown) == 2  # the first and the last


def test_nothing_is_shown_on_request(shown):
    with Progress("mine", 4, shown=False) as progress:
        progress.update(1)
    assert shown == []


def test_a_terminal_and_a_script_are_no_notebook(monkeypatch):
    assert not is_notebook()
    terminal = types.ModuleType("IPython")
    terminal.get_ipython = lambda: types.SimpleNamespace()
    monkeypatch.setitem(sys.modules, "IPython", terminal)
    assert not is_notebook()
