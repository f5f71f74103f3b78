"""The log, log.jsonl: one JSON line for each epoch. It holds times, so it differs between runs."""

import time
from pathlib import Path

from seedless.core.bounded_reading import read_json_lines
from seedless.core.digests import canonical_json
from seedless.core.errors import RunError
from seedless.core.files import write_atomic
from seedless.train.progress_state import Observer, ProgressState

LOG_FILE = "log.jsonl"
_FIELDS = {"epoch", "step", "loss", "rate", "score", "seconds"}

# Enough for 280,000 epochs, which is more than a trail can have.
MAX_LOG_BYTES = 2**26
MAX_LOG_VALUES = 2_000_000


class LogWriter(Observer):
    """Writes epoch, step, mean loss, learning rate, validation score and seconds of each epoch."""

    def __init__(self, run: Path) -> None:
        self.path = run / LOG_FILE
        self._began = time.perf_counter()

    def begin(self, progress: ProgressState) -> None:
        """Remove lines after the position from which the run resumes."""
        lines = [line for line in read_log(self.path) if line["epoch"] <= progress.position.epoch]
        write_atomic(self.path, b"".join(canonical_json(line) + b"\n" for line in lines))
        self._began = time.perf_counter()

    def epoch(self, progress: ProgressState) -> None:
        """Add a line."""
        now = time.perf_counter()
        line = {
            "epoch": progress.position.epoch,
            "step": progress.position.step,
            "loss": progress.loss,
            "rate": progress.rate,
            "score": progress.score,
            # A clock that somebody sets or fakes can run backwards; no epoch took less than 0 s.
            "seconds": max(0.0, round(now - self._began, 3)),
        }
        self._began = now
        with self.path.open("ab") as file:
            file.write(canonical_json(line) + b"\n")


def read_log(path: Path, *, allow_incomplete: bool = True) -> list[dict[str, float]]:
    """Return the lines of a log.

    ``allow_incomplete``: ignore an incomplete last line, as a killed process leaves it.
    """
    if not path.exists():
        return []
    logged = []
    lines = read_json_lines(path, max_bytes=MAX_LOG_BYTES, max_values=MAX_LOG_VALUES)
    for number, (line, value) in enumerate(lines, start=1):
        if not line.endswith(b"\n") and not allow_incomplete:
            raise RunError(f"{path}: line {number} is incomplete, and the run is finished")
        if line.endswith(b"\n"):
            if not isinstance(value, dict) or not value.keys() >= _FIELDS:
                raise RunError(f"{path}: line {number} is not a line of a log")
            if type(value["seconds"]) not in (int, float):
                raise RunError(f"{path}: the seconds of line {number} are not a number")
            logged.append(value)
    return logged
