"""The store: the folder that holds the runs of studies, each named by its configuration.

    STORE/runs/KEY/           a run folder, as `seedless train` writes it
    STORE/failed/KEY.json     why a run could not be finished
    STORE/locks/KEY.lock      locked by the process that executes the run

Workers of one machine or of many may share a store. A worker executes a run only while it holds the
lock of that run:

    [Step 1] It claims the run: it locks the file without waiting, or leaves the run to the process
             that holds the lock. The operating system releases the lock of a process that dies.
    [Step 2] It looks at the state again, since another worker may have finished the run meanwhile.
    [Step 3] It trains or resumes the run. The receipt is written last, so a folder with a receipt
             is a finished run.
    [Step 4] It records a failure, if there was one, and releases the lock.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout

from seedless.core.bounded_reading import parse_json, read_file
from seedless.core.digests import digest_value
from seedless.core.errors import RunError, SeedlessError, StudyError
from seedless.core.files import write_atomic
from seedless.evaluate.predictions import Predictions
from seedless.proof.receipt import FILE as RECEIPT
from seedless.runs.validation import ValidatedRun, open_validated, validate
from seedless.studies.engine.grid import Point
from seedless.studies.engine.run_identity import compare_with_plan, name_run

MAX_FAILURE_BYTES = 1 << 20
State = Literal["done", "failed", "begun", "waiting"]


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Attributes:
        run: its folder.
        metrics: as in metrics.json; None where it failed.
        weights: the digest of its weights; None where it failed.
        error: why it failed; None where it did not.
        data: the digest of the records that it was trained and tested on; None where it failed.
        predictions: where they are not in the run's folder, because the folder was not kept.
    """

    point: Point
    run: Path
    metrics: dict[str, Any] | None
    weights: str | None
    error: str | None
    data: str | None = None
    predictions: Predictions | None = None

    @property
    def ok(self) -> bool:
        """Whether the run finished."""
        return self.metrics is not None

    @property
    def converged(self) -> bool:
        """Whether the run finished and is better than chance."""
        return bool(self.metrics and self.metrics["converged"])

    @property
    def state(self) -> str:
        """How it ended, in words: converged, at chance or failed."""
        return "failed" if not self.ok else "converged" if self.converged else "at chance"

    def read_predictions(self) -> Predictions:
        """Return the predictions of a finished run; those in its folder are validated with it."""
        if self.predictions is not None:
            return self.predictions
        return open_validated(self.run).read_predictions()


class Store:
    """The runs under one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            for name in ("runs", "failed", "locks"):
                (folder / name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StudyError(f"cannot write the store {folder}: {error.strerror}") from None

    def run_folder(self, point: Point) -> Path:
        """Return the run folder of a point."""
        return self.folder / "runs" / point.key

    def state(self, point: Point) -> State:
        """Return the state of a run by the files that exist; nothing is hashed."""
        if (self.run_folder(point) / RECEIPT).exists():
            return "done"
        if self._failure(point).exists():
            return "failed"
        return "begun" if self.run_folder(point).exists() else "waiting"

    def check(self, point: Point) -> bool:
        """Return whether a run is finished; one that is not what it should be is an error.

        A damaged run is neither used nor replaced without the user's knowledge.
        """
        if not (self.run_folder(point) / RECEIPT).exists():
            return False
        self._open(point)
        return True

    def read(self, point: Point) -> Outcome:
        """Return how a run ended; one that did not end yet is an error.

        The run is validated at every read: its files against its receipt, and its settings against
        those that the point plans.
        """
        run, failure = self.run_folder(point), self._failure(point)
        if (run / RECEIPT).exists():
            claims = self._open(point).claims
            weights, data = claims["weights"]["digest"], claims["data"]
            content = data.get("content", data["digest"])
            return Outcome(point, run, claims["metrics"], weights, None, content)
        if failure.exists():
            return Outcome(point, run, None, None, read_failure(failure))
        raise StudyError(
            f"{point.label} is not finished ({run}): `seedless study run` executes missing runs"
        )

    def _open(self, point: Point) -> ValidatedRun:
        """Return a finished run that matches its receipt and is the one that the point plans."""
        run = self.run_folder(point)
        validated = validate(run)
        if validated.problems:
            raise RunError(
                f"{run} ({point.label}) does not match its receipt: {validated.problems[0]}. "
                "Remove the folder to have the run executed again"
            )
        if changed := compare_with_plan(point.config, validated.config):
            listed = "; ".join(
                f"{one.field} should be {one.recorded} and is {one.here}" for one in changed
            )
            raise RunError(
                f"{run} is another run than {point.label}: {listed}. Was a folder renamed? Remove "
                "it to have the run executed again"
            )
        return validated

    def record_failure(self, point: Point, error: str) -> None:
        """Write down why a run could not be finished, so that every table counts it."""
        content = {"point": point.label, "config": point.config.identity(), "error": error}
        write_atomic(self._failure(point), json.dumps(content, indent=2, sort_keys=True).encode())

    def remove_failure(self, point: Point) -> None:
        """Remove the record of a failure, before the run is tried again."""
        self._failure(point).unlink(missing_ok=True)

    @contextmanager
    def claim(self, point: Point) -> Iterator[bool]:
        """Lock a run for this process; yield False where another process holds the lock."""
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

    def is_claimed(self, point: Point) -> bool:
        """Return whether another process executes a run just now."""
        with self.claim(point) as mine:
            return not mine

    def _failure(self, point: Point) -> Path:
        return self.folder / "failed" / f"{point.key}.json"


def read_failure(file: Path) -> str:
    """Return why a run failed, from the file that `Store.record_failure` wrote.

    The file's name must be the key of the configuration in it.
    """
    text = read_file(file, MAX_FAILURE_BYTES, error=StudyError)
    content = parse_json(text, str(file), error=StudyError)
    is_failure = isinstance(content, dict) and {*content} == {"point", "config", "error"}
    if not is_failure or not isinstance(content["error"], str):
        raise StudyError(f"{file} is not the record of a failed run; remove it")
    if name_run(digest_value(content["config"])) != file.stem:
        raise StudyError(f"{file} is about a run of another configuration; remove it")
    return content["error"]


def explain_error(error: BaseException) -> str:
    """Return an error in one line, with its class unless it is one of this package."""
    text = (str(error).strip().splitlines() or [""])[0]
    return text if isinstance(error, SeedlessError) else f"{type(error).__name__}: {text}"
