"""The record of a measurement, written after every row: a command cut short loses nothing."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from seedless.bench.measure import describe_error


class Record:
    """Rows by phase, a time limit, and the file they are written to."""

    def __init__(self, path: Path, limit: float, facts: dict[str, Any]) -> None:
        self.path, self.limit, self.began = path, limit, time.perf_counter()
        self.is_whole = True
        self.content: dict[str, Any] = {**facts, "complete": False, "phases": {}}
        self.write()

    @property
    def seconds_left(self) -> float:
        """Return the seconds until no new row is begun."""
        return self.limit - (time.perf_counter() - self.began)

    def add(self, phase: str, row: dict[str, Any]) -> None:
        """Add a row and write the file."""
        self.content["phases"].setdefault(phase, []).append(row)
        print(f"{phase}: {json.dumps(row, default=str)}", flush=True)
        self.write()

    def measure(self, phase: str, key: dict[str, Any], work: Callable[[], dict[str, Any]]) -> None:
        """Add a row of what ``work`` returns, of its error, or of the lack of time."""
        if self.seconds_left <= 0:
            self.leave_out(phase, key)
            return
        began = time.perf_counter()
        try:
            found = work()
        except Exception as error:  # a kernel that does not compile, memory, a refused launch
            found = {"error": f"{type(error).__name__}: {describe_error(error)}"}
        took = round(time.perf_counter() - began, 2)
        self.add(phase, {**key, **found, "row_seconds": took})

    def leave_out(self, phase: str, key: dict[str, Any]) -> None:
        """Add a row that says that there was no time for it; the record is not complete then."""
        self.is_whole = False
        self.add(phase, {**key, "error": f"left out: too little of {self.limit:g} s was left"})

    @contextmanager
    def finish(self) -> Iterator[None]:
        """Mark the record as complete after a block in which no phase failed or was left out."""
        yield
        self.content["complete"] = self.is_whole and "failed" not in self.content["phases"]
        self.write()

    def write(self) -> None:
        """Write the file as a whole, then put it in the place of the last one."""
        self.content["seconds"] = round(time.perf_counter() - self.began, 1)
        draft = self.path.with_suffix(".part")
        draft.write_text(json.dumps(self.content, indent=2, sort_keys=True, default=str) + "\n")
        draft.replace(self.path)
