"""The log: one line an epoch, for people and plots. Times are in it, so it does not repeat."""

from __future__ import annotations

import json
import time
from pathlib import Path

from seedless.core.canonical import canonical_json
from seedless.core.files import write_atomic
from seedless.train.progress_state import Observer, ProgressState

LOG_FILE = "log.jsonl"


class LogWriter(Observer):
    """Writes epoch, step, loss, rate, score and seconds."""

    def __init__(self, run: Path) -> None:
        self.path = run / LOG_FILE
        self._began = time.perf_counter()

    def begin(self, progress: ProgressState) -> None:
        """Keep the lines up to where the run resumes."""
        kept = [line for line in read_log(self.path) if line["epoch"] <= progress.position.epoch]
        write_atomic(self.path, b"".join(canonical_json(line) + b"\n" for line in kept))
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
            "seconds": round(now - self._began, 3),
        }
        self._began = now
        with self.path.open("ab") as file:
            file.write(canonical_json(line) + b"\n")


def read_log(path: Path) -> list[dict[str, float]]:
    """Return the lines of a log; one torn by a kill is left out."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]
