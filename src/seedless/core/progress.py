"""How far a long task is: a bar on a terminal or in a notebook, elsewhere a line now and then."""

import sys
import threading
import time
from typing import Any, Self

from seedless.core.display import escape_text
from seedless.core.notebook import NotebookBar, is_notebook

SECONDS_BETWEEN_LINES = 5.0  # where standard error is not a terminal
SECONDS_BETWEEN_BARS = 0.5  # in a notebook, where each is a message to the browser


class Progress:
    """Shows on standard error how much of a task is done. Safe to call from several threads.

    In a notebook it shows a bar below the cell, and writes lines to standard output.
    ``shown=False`` shows nothing, as for ``--json``.

    >>> with Progress("training", total=85, unit="epochs", shown=False) as progress:
    ...     progress.update(3, "loss 0.1234")
    """

    def __init__(
        self,
        title: str,
        total: float | None = None,
        unit: str = "",
        *,
        done: float = 0,
        shown: bool = True,
    ) -> None:
        self.total = total
        self._title, self._unit, self._shown = escape_text(title), unit, shown
        self._first, self._done, self._detail = done, done, ""
        self._started = self._last = time.monotonic()
        self._lock = threading.RLock()
        self._bar: Any = None
        self._in_notebook = is_notebook()
        self._cell_bar = NotebookBar(self._title) if shown and self._in_notebook else None
        if shown and not self._in_notebook and sys.stderr.isatty():
            from tqdm import tqdm

            self._bar = tqdm(
                total=total,
                initial=done,
                desc=self._title,
                miniters=0,
                bar_format="{desc} {percentage:3.0f}% |{bar}| [{elapsed}<{remaining}]{postfix}",
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def update(self, done: float, detail: str = "") -> None:
        """Show that ``done`` of the total is done; ``detail`` is further text, such as a loss."""
        with self._lock:
            self._done, self._detail = done, escape_text(detail)
            if self._bar is not None:
                self._bar.n, self._bar.total = done, self.total
                self._bar.set_postfix_str(self._describe(), refresh=False)
                self._bar.update(0)
            elif self._cell_bar is not None:
                if time.monotonic() - self._last >= SECONDS_BETWEEN_BARS:
                    self._last = time.monotonic()
                    self._show_in_cell(self._estimate())
            elif self._shown and time.monotonic() - self._last >= SECONDS_BETWEEN_LINES:
                self._last = time.monotonic()
                self.say(self._describe() + self._estimate())

    def say(self, text: str) -> None:
        """Write a line of text, also where no progress is shown."""
        line = f"{self._title}: {escape_text(text)}"
        with self._lock:
            if self._bar is not None:
                self._bar.write(line, file=sys.stderr)
            else:  # a notebook shows standard error as an error
                stream = sys.stdout if self._in_notebook else sys.stderr
                stream.write(f"{line}\n")
                stream.flush()

    def close(self) -> None:
        """Leave the last state behind, with the time that it took."""
        with self._lock:
            if self._bar is not None:
                self._bar.refresh()
                self._bar.close()
                self._bar = None
            elif self._cell_bar is not None:
                self._show_in_cell(f" in {time.monotonic() - self._started:.0f} s")
                self._cell_bar = None
            elif self._shown and self._done != self._first:
                self.say(f"{self._describe()} in {time.monotonic() - self._started:.0f} s")
            self._shown = False

    def _show_in_cell(self, ending: str) -> None:
        share = self._done / self.total if self.total else None
        if self._cell_bar is not None:
            self._cell_bar.show(share, self._describe() + ending)

    def _describe(self) -> str:
        total = "" if self.total is None else f" of {_write_number(self.total)}"
        amount = f"{_write_number(self._done)}{total} {self._unit}".strip()
        return f"{amount}, {self._detail}" if self._detail else amount

    def _estimate(self) -> str:
        """Return how long the rest will take, at the speed so far."""
        if self.total is None or self._done <= self._first:
            return ""
        speed = (self._done - self._first) / (time.monotonic() - self._started)
        return f", {(self.total - self._done) / speed:.0f} s left"


def _write_number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"
