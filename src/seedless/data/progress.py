"""How far a long task is: a bar on a terminal, plain lines a few seconds apart elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import Any

EVERY = 5.0  # seconds between lines


class Progress:
    """Files done of files wanted, and bytes. Safe to call from several threads.

    One file is shown by its bytes, several by their number. ``shown=False`` shows nothing.
    """

    def __init__(self, title: str, files: int, *, shown: bool = True) -> None:
        self._title, self._files, self._shown = title, files, shown
        self._done = self._bytes = 0
        self._length: int | None = None
        self._started = self._last = time.monotonic()
        self._lock = threading.Lock()
        self._bar: Any = None
        if shown and sys.stderr.isatty():
            from tqdm import tqdm

            unit: dict[str, Any] = (
                {"unit": "B", "unit_scale": True} if files == 1 else {"unit": "file"}
            )
            self._bar = tqdm(total=files if files > 1 else None, desc=title, **unit)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._shown and self._bytes:
            self._say(f" in {time.monotonic() - self._started:.0f} s")

    def expect(self, length: int | None) -> None:
        """Take note of how long the file in transfer is; of use where there is one."""
        self._length = length
        if self._bar is not None and self._files == 1:
            self._bar.total = length

    def add(self, count: int) -> None:
        """Count bytes; below zero where a transfer begins anew."""
        with self._lock:
            self._bytes += count
            if self._bar is not None:
                if self._files == 1:
                    self._bar.update(count)
                else:
                    self._bar.set_postfix_str(f"{self._bytes / 1e6:.1f} MB", refresh=False)
            elif self._shown and time.monotonic() - self._last >= EVERY:
                self._say()

    def finish_file(self) -> None:
        """Count one file as done."""
        with self._lock:
            self._done += 1
            if self._bar is not None and self._files > 1:
                self._bar.update(1)

    def say(self, text: str) -> None:
        """Write one line of text, whatever is shown besides."""
        if self._bar is not None:
            self._bar.write(text, file=sys.stderr)
        elif self._shown:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()

    def _say(self, ending: str = "") -> None:
        """Write where things stand."""
        self._last = time.monotonic()
        amount = f"{self._bytes / 1e6:.1f} MB"
        if self._files > 1:
            self.say(f"{self._title}: {self._done:,} of {self._files:,} files, {amount}{ending}")
        elif self._length is not None:
            self.say(f"{self._title}: {amount} of {self._length / 1e6:.1f} MB{ending}")
        else:
            self.say(f"{self._title}: {amount}{ending}")
