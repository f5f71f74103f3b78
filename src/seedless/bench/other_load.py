"""How much of the processor other programs used while something was measured."""

import os
import time
from pathlib import Path

STATISTICS = Path("/proc/stat")
IDLE_COLUMNS = (3, 4)  # idle, and idle while waiting for a disk
OWN_COLUMNS = slice(0, 8)  # what follows, of guests, is counted in the first columns already


class OtherLoad:
    """Counts from its creation on; Linux alone says what all programs used.

    Example: ``load = OtherLoad(); ...; print(load.measure(), "cores")``
    """

    def __init__(self) -> None:
        self._before = self._read()

    def measure(self) -> float | None:
        """Return the cores that other programs kept busy on average since; None where unknown.

        What this process used is not counted, nor what its finished children did.
        """
        after = self._read()
        if self._before is None or after is None or after[0] <= self._before[0]:
            return None
        wall, busy, own = (end - begin for begin, end in zip(self._before, after, strict=True))
        return max(0.0, (busy - own) / wall)

    def _read(self) -> tuple[float, float, float] | None:
        """Return seconds: on the clock, of all processors at work, and of this process."""
        try:
            columns = [int(word) for word in STATISTICS.read_text().split("\n", 1)[0].split()[1:]]
            ticks = os.sysconf("SC_CLK_TCK")
        except (OSError, ValueError, AttributeError):
            return None
        busy = sum(columns[OWN_COLUMNS]) - sum(columns[column] for column in IDLE_COLUMNS)
        own = os.times()
        used = own.user + own.system + own.children_user + own.children_system
        return time.perf_counter(), busy / ticks, used
