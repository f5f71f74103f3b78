"""A progress bar in the output of a Jupyter cell: one element that is updated in place."""

import html
import sys
from importlib import import_module
from typing import Any


def is_notebook() -> bool:
    """Whether this code runs in a kernel of Jupyter, which shows HTML below a cell.

    IPython itself is never imported here: in a notebook it is loaded already.
    """
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return hasattr(shell, "kernel")


class NotebookBar:
    """A bar below the cell that runs; it needs no widgets."""

    def __init__(self, title: str) -> None:
        self._display = import_module("IPython.display")
        self._title = title
        self._handle = self._display.display(self._draw(None, ""), display_id=True)

    def show(self, share: float | None, text: str) -> None:
        """Replace the bar; ``share`` is done, from 0 to 1, or None where the end is not known."""
        self._handle.update(self._draw(share, text))

    def _draw(self, share: float | None, text: str) -> Any:
        value = "" if share is None else f' value="{share:.4f}"'
        return self._display.HTML(
            f"<div>{html.escape(self._title)} <progress max='1'{value}></progress> "
            f"{html.escape(text)}</div>"
        )
