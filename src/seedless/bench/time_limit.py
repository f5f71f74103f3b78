"""A limit on the wall time of a block, such as a compilation that does not end."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TimeLimitExceeded(BaseException):
    """The block took too long.

    Not an Exception: torch's compiler catches those and goes on in another way.
    """


@contextmanager
def limit_time(seconds: float) -> Iterator[None]:
    """Raise `TimeLimitExceeded` inside the block once it has taken so many seconds.

    The signal that ends the block is delivered between two Python instructions of the main thread:
    a call into a library is not interrupted. In another thread, and on systems without that signal,
    there is no limit.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGALRM"):
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeLimitExceeded

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3))  # 0 would switch the timer off
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
