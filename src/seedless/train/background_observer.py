"""Observers that write while the device computes: they get their turn in a thread of their own."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from seedless.train.progress_state import Observer, ProgressState

# Seconds a thread may keep the interpreter. With Python's own 5 ms the loop, which asks for it
# several times a step, could not launch steps as fast as a GPU makes them.
SWITCH = 1e-4


class BackgroundObserver(Observer):
    """Tells observers of epochs one after another, without keeping the loop waiting.

    The state is copied before the loop goes on, so what is written is what was. An error there
    ends the run at the next epoch. Of use where the state lies on a GPU: a CPU's is not copied.
    """

    def __init__(self, observers: Sequence[Observer]) -> None:
        self.observers = tuple(observers)
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._last: Future[None] | None = None

    def begin(self, progress: ProgressState) -> None:
        """Tell them at once."""
        for observer in self.observers:
            observer.begin(progress)

    def epoch(self, progress: ProgressState) -> None:
        """Copy the state where it is, and leave the rest to the thread."""
        self.wait()
        _ = progress.snapshot
        self._last = self._thread.submit(self._tell, progress)

    def stop(self, progress: ProgressState) -> None:
        """Tell them at once, after what they were told before."""
        self.wait()
        for observer in self.observers:
            observer.stop(progress)

    def wait(self) -> None:
        """Wait until all that was told is written; an error there is raised here."""
        last, self._last = self._last, None
        if last is not None:
            last.result()

    def _tell(self, progress: ProgressState) -> None:
        interval = sys.getswitchinterval()
        sys.setswitchinterval(min(interval, SWITCH))
        try:
            for observer in self.observers:
                observer.epoch(progress)
        finally:
            sys.setswitchinterval(interval)
