"""Record where the script's own code takes values that no seed fixes.

There are three sources: clocks, the entropy of the operating system (`os.urandom`, `secrets`,
`uuid4`), and the order in which threads or processes end their work. For experiments, a source can
be fixed: it then gives the same values in every run. What packages read for themselves is neither
recorded nor fixed.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
import sys
import time
from types import FrameType, ModuleType
from typing import Any, Callable, Iterator  # noqa: UP035  # Python 3.9 runs this file too

from .import_hooks import call_after_import, name_wrapper
from .recorder import Recorder
from .user_lines import (
    find_user_frame,
    is_for_itself,
    is_installed,
    is_standard_library,
    show_frame,
)

CLOCK, ENTROPY, COMPLETION = "clock", "entropy", "completion"
CLOCKS = ("time", "perf_counter", "monotonic", "process_time")
FIRST_SECOND = 1_600_000_000.0  # what a fixed clock shows first
SECONDS_PER_READ = 0.01  # how far a fixed clock moves each time it is read
MAX_LINES = 200  # between two steps


class OutsideRecorder:
    """Counts reads of each source by the user's line, since the last step."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.fixed = frozenset(recorder.settings.fixed)
        self._counts: dict[tuple[Any, ...], int] = {}
        self._reads = itertools.count()
        self._blocks = itertools.count()
        recorder.before_line.append(self.write)
        recorder.before_end.append(self.write)
        recorder.after_fork.append(self._counts.clear)

    def watch(self) -> None:
        """Put wrappers around the functions of the standard library."""
        for name in CLOCKS:
            self._wrap_clock(name, 1.0)
            self._wrap_clock(f"{name}_ns", 1e9)
        random_bytes = self._wrap_entropy(os.urandom)
        os.urandom = random_bytes
        for module, watch in (
            # It holds its own name of the function, and may be imported before us.
            ("random", lambda module: setattr(module, "_urandom", random_bytes)),
            ("multiprocessing.pool", self._watch_pools),
            ("concurrent.futures._base", self._watch_futures),
            ("concurrent.futures", self._watch_futures),
        ):
            call_after_import(module, self.recorder.guard(watch, nested=True))

    def write(self) -> None:
        """Write a line for each place that has read a source since the last call."""
        counts = dict(self._counts)
        self._counts.clear()
        for (source, call, code, number), count in list(counts.items())[:MAX_LINES]:
            line = show_frame(code, number)
            values = {"source": source, "call": call, "line": line, "count": count}
            self.recorder.file.write({"kind": "outside", **values})

    def _is_fixed(self, source: str, call: str, frame: FrameType | None) -> bool:
        """Count a read by the user's code; return whether the source is to be fixed there."""
        if frame is None or self.recorder.is_busy:
            return False
        if not self.recorder.ended:
            key = (source, call, frame.f_code, frame.f_lineno)
            self._counts[key] = self._counts.get(key, 0) + 1
        return source in self.fixed

    def _wrap_clock(self, name: str, scale: float) -> None:
        """Record one clock; ``scale`` is 1e9 for one that counts nanoseconds."""
        read = getattr(time, name)

        @functools.wraps(read)
        def recorded() -> Any:
            caller = sys._getframe(1)  # logging and the like read clocks for themselves
            frame = None if is_installed(caller.f_code.co_filename) else caller
            if not self._is_fixed(CLOCK, f"time.{name}", frame):
                return read()
            seconds = FIRST_SECOND + SECONDS_PER_READ * next(self._reads)
            return seconds if scale == 1.0 else int(seconds * scale)

        setattr(time, name, name_wrapper(recorded, "time", name))

    def _wrap_entropy(self, read: Callable[[int], bytes]) -> Any:
        @functools.wraps(read)
        def urandom(size: int) -> bytes:
            frame = _find_user_behind_library(sys._getframe(1))
            if not self._is_fixed(ENTROPY, "os.urandom", frame):
                return read(size)
            return _make_bytes(size, next(self._blocks))

        return name_wrapper(urandom, "os", "urandom")

    def _watch_pools(self, module: ModuleType) -> None:
        """Record `Pool.imap_unordered`; fixed, it gives results in the order of the tasks."""
        pool: Any = module.Pool
        unordered, ordered = pool.imap_unordered, pool.imap

        @functools.wraps(unordered)
        def imap_unordered(self_: Any, *args: Any, **kwargs: Any) -> Any:
            frame = find_user_frame(sys._getframe(1))
            fixed = self._is_fixed(COMPLETION, "Pool.imap_unordered", frame)
            return (ordered if fixed else unordered)(self_, *args, **kwargs)

        pool.imap_unordered = imap_unordered

    def _watch_futures(self, module: ModuleType) -> None:
        """Record `as_completed`; fixed, it gives futures in the order in which it got them."""
        futures: Any = module
        unordered = futures.as_completed
        if hasattr(unordered, "__wrapped__"):  # the other module that has this name
            return

        @functools.wraps(unordered)
        def as_completed(fs: Any, timeout: Any = None) -> Any:
            frame = find_user_frame(sys._getframe(1))
            fixed = self._is_fixed(COMPLETION, "as_completed", frame)
            return _wait_in_order(fs) if fixed else unordered(fs, timeout)

        futures.as_completed = as_completed


def _find_user_behind_library(frame: FrameType | None) -> FrameType | None:
    """Return the user's frame if only the standard library lies between; None otherwise.

    None also for what a module of the library does while it is imported.
    """
    if is_for_itself(frame):
        return None
    while frame is not None and is_standard_library(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None or is_installed(frame.f_code.co_filename):
        return None
    return frame


def _make_bytes(size: int, block: int) -> bytes:
    """Return the bytes of one call of a fixed `os.urandom`: a function of its number alone."""
    parts = (hashlib.blake2b(b"%d %d" % (block, part)).digest() for part in range(size // 64 + 1))
    return b"".join(parts)[:size]


def _wait_in_order(futures: Any) -> Iterator[Any]:
    """Yield each future when it is done, in the given order."""
    for future in list(futures):
        future.exception()
        yield future
