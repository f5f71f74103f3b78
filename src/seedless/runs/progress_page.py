"""A page in the run folder that shows how far a run is, and loads itself again while it trains.

It is report.html, the page for people, which no digest covers: `seedless report` replaces it.
"""

import time
from contextlib import suppress
from pathlib import Path

from seedless.core.errors import SeedlessError
from seedless.proof.receipt import PAGE
from seedless.report.page import write_page
from seedless.report.progress_page import render_progress
from seedless.train.log import LOG_FILE, read_log
from seedless.train.progress_state import Observer, ProgressState
from seedless.train.user_loss import UserLoss

SECONDS_BETWEEN_PAGES = 2.0


class ProgressPage(Observer):
    """Writes the page after epochs, from the log, at most every few seconds, and at the end."""

    def __init__(self, run: Path) -> None:
        self._run = run
        self._last = float("-inf")

    def epoch(self, progress: ProgressState) -> None:
        """Write the page, if the last one is old or this is the last epoch."""
        done = progress.position.epoch == progress.problem.config.train.epochs
        if done or time.monotonic() - self._last >= SECONDS_BETWEEN_PAGES:
            self._write(progress, "done" if done else "training")

    def stop(self, progress: ProgressState) -> None:
        """Write that the run was stopped, and how it continues."""
        self._write(progress, "stopped")

    def _write(self, progress: ProgressState, state: str) -> None:
        self._last = time.monotonic()
        own_loss = isinstance(progress.problem.loss, UserLoss)
        page = render_progress(
            self._run.name,
            read_log(self._run / LOG_FILE),
            progress.problem.config.train.epochs,
            state,
            own_loss=own_loss,
        )
        with suppress(SeedlessError):  # a run goes on without its page
            write_page(self._run / PAGE, page)
