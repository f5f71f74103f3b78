"""Observers that write in a thread of their own, while the GPU computes the next epoch."""

import sys
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from seedless.train.progress_state import Observer, ProgressState

# Seconds a thread may hold Python's interpreter lock. The loop needs the lock several times a step;
# with Python's default of 5 ms it could not launch steps as fast as a GPU computes them.
SWITCH_INTERVAL = 1e-4


class BackgroundObserver(Observer):
    """Calls other observers after each epoch, in a thread, so that the loop does not wait.

    The state is copied on the GPU before the loop continues, so the observers see the epoch's own
    state. An error in the thread ends the run at the next epoch. Only for runs on a GPU: the state
    of a CPU is not copied and would change while it is written.
    """

    def __init__(self, observers: Sequence[Observer]) -> None:
        self.observers = tuple(observers)
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._last: Future[None] | None = None

    def begin(self, progress: ProgressState) -> None:
        """Call them now."""
        for observer in self.observers:
            observer.begin(progress)

    def epoch(self, progress: ProgressState) -> None:
        """Copy the state on its device, and let the thread call them."""
        self.wait()
        _ = progress.snapshot
        self._last = self._thread.submit(self._call_epoch, progress)

    def stop(self, progress: ProgressState) -> None:
        """Call them now, after the thread has finished."""
        self.wait()
        for observer in self.observers:
            observer.stop(progress)

    def wait(self) -> None:
        """Wait for the thread; an error in it is raised here."""
        last, self._last = self._last, None
        if last is not None:
            last.result()

    def _call_epoch(self, progress: ProgressState) -> None:
        interval = sys.getswitchinterval()
        sys.setswitchinterval(min(interval, SWITCH_INTERVAL))
        try:
            for observer in self.observers:
                observer.epoch(progress)
        finally:
            sys.setswitchinterval(interval)
