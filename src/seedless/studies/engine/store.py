"""Where the runs of studies lie: one folder a run, named by its configuration, never made twice.

    STORE/runs/KEY/           a run folder, as `seedless train` leaves it
    STORE/failed/KEY.json     why a run could not be finished
    STORE/locks/KEY.lock      held by the process that is at it

Workers of one machine or of many may share a store: whoever holds the lock makes the run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout

from seedless.audit.validation import validate
from seedless.core.errors import RunError, SeedlessError, StudyError
from seedless.core.files import write_atomic
from seedless.proof.receipt import FILE as RECEIPT
from seedless.studies.engine.grid import Point

State = Literal["done", "failed", "begun", "waiting"]


@dataclass(frozen=True)
class Outcome:
    """How a run ended: its metrics and weights, or why there are none."""

    point: Point
    run: Path
    metrics: dict[str, Any] | None
    weights: str | None
    error: str | None

    @property
    def ok(self) -> bool:
        """Whether it was finished."""
        return self.metrics is not None

    @property
    def converged(self) -> bool:
        """Whether it was finished and left chance."""
        return bool(self.metrics and self.metrics["converged"])


class Store:
    """The runs under one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            for name in ("runs", "failed", "locks"):
                (folder / name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StudyError(f"cannot write the store {folder}: {error.strerror}") from None

    def place(self, point: Point) -> Path:
        """Return the run folder of a point."""
        return self.folder / "runs" / point.key

    def state(self, point: Point) -> State:
        """Return how far a run is, by what lies there; nothing is hashed."""
        if (self.place(point) / RECEIPT).exists():
            return "done"
        if self._failure(point).exists():
            return "failed"
        return "begun" if self.place(point).exists() else "waiting"

    def check(self, point: Point) -> bool:
        """Say whether a run is there and consistent with its receipt; one that is not is an error.

        A damaged run is neither used nor replaced behind anyone's back.
        """
        run = self.place(point)
        if not (run / RECEIPT).exists():
            return False
        problems = validate(run).problems
        if problems:
            raise RunError(
                f"{run} ({point.label}) is not what its receipt says: {problems[0]}. Remove the "
                "folder to have the run made again"
            )
        return True

    def read(self, point: Point) -> Outcome:
        """Return how a run ended; one that was never made is an error."""
        run, failure = self.place(point), self._failure(point)
        if (run / RECEIPT).exists():
            claims = json.loads((run / RECEIPT).read_bytes())["predicate"]
            return Outcome(point, run, claims["metrics"], claims["weights"]["digest"], None)
        if failure.exists():
            error = json.loads(failure.read_bytes())["error"]
            return Outcome(point, run, None, None, error)
        raise StudyError(
            f"{point.label} is not there yet ({run}): `seedless study run` makes what is missing"
        )

    def record_failure(self, point: Point, error: str) -> None:
        """Keep why a run could not be finished, so that no table passes over it."""
        content = {"point": point.label, "config": point.config.identity(), "error": error}
        write_atomic(self._failure(point), json.dumps(content, indent=2, sort_keys=True).encode())

    def forget_failure(self, point: Point) -> None:
        """Drop it, before a run is tried again."""
        self._failure(point).unlink(missing_ok=True)

    @contextmanager
    def claim(self, point: Point) -> Iterator[bool]:
        """Hold a run for this process; yield False where another process holds it."""
        lock = FileLock(self.folder / "locks" / f"{point.key}.lock")
        try:
            lock.acquire(blocking=False)
        except Timeout:
            yield False
            return
        except OSError as error:
            raise StudyError(
                f"cannot lock a run in {self.folder}: {os.strerror(error.errno or 0)}"
            ) from None
        try:
            yield True
        finally:
            lock.release()

    def held(self, point: Point) -> bool:
        """Say whether a process is at a run just now."""
        with self.claim(point) as mine:
            return not mine

    def _failure(self, point: Point) -> Path:
        return self.folder / "failed" / f"{point.key}.json"


def explain_error(error: BaseException) -> str:
    """Return one line about an error, with its kind where it is none of ours."""
    text = (str(error).strip().splitlines() or [""])[0]
    return text if isinstance(error, SeedlessError) else f"{type(error).__name__}: {text}"
