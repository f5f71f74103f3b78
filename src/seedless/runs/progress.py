"""How far a run is: a bar on a terminal, a plain line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any

from seedless.train.progress_state import Observer, ProgressState

EVERY = 5.0  # seconds between lines where there is no terminal


class Progress(Observer):
    """Shows epochs, loss, validation score and time left, on standard error."""

    def __init__(self, title: str, *, shown: bool = True) -> None:
        self._title, self._shown = title, shown
        self._bar: Any = None
        self._score: float | None = None
        self._loss: float | None = None
        self._began = self._last = time.monotonic()
        self._done = 0.0  # epochs done when the clock started

    def begin(self, progress: ProgressState) -> None:
        """Start the clock."""
        self._began = self._last = time.monotonic()
        self._done = progress.position.epoch
        epochs = progress.problem.config.train.epochs
        if self._shown and sys.stderr.isatty():
            from tqdm import tqdm

            self._bar = tqdm(
                total=epochs,
                initial=progress.position.epoch,
                desc=self._title,
                unit="epoch",
                bar_format="{desc} {percentage:3.0f}% |{bar}| epoch {n:.0f}/{total_fmt} "
                "[{elapsed}<{remaining}]{postfix}",
            )
        elif self._shown:
            split = progress.problem.train
            where = f", resuming after epoch {self._done}" if self._done else ""
            self._say(f"{len(split):,} training samples, {epochs} epochs{where}")

    def step(self, progress: ProgressState) -> None:
        """Move the bar by one batch, or say a line when it is time."""
        if not self._shown:
            return
        if progress.problem.device.type == "cpu":  # on a GPU, looking would stop it
            self._loss = float(progress.losses[: progress.seen].mean())
        if self._bar is not None:
            self._bar.update(1 / progress.batches)
            self._bar.set_postfix_str(self._describe(), refresh=False)
        elif time.monotonic() - self._last >= EVERY:
            self._line(progress)

    def epoch(self, progress: ProgressState) -> None:
        """Take the epoch's loss and score."""
        self._loss = progress.loss
        if progress.score is not None:
            self._score = progress.score
        if self._bar is not None:
            self._bar.n = progress.position.epoch
            self._bar.set_postfix_str(self._describe())
        elif self._shown and progress.position.epoch == progress.problem.config.train.epochs:
            self._line(progress)

    def stop(self, progress: ProgressState) -> None:
        """Leave the terminal as it was."""
        self.close()

    def close(self) -> None:
        """Take the bar away, leaving its last state behind."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def say(self, text: str) -> None:
        """Write a line of text beside what is shown."""
        if self._bar is not None:
            self._bar.write(text, file=sys.stderr)
        else:
            self._say(text)

    def _describe(self) -> str:
        parts = []
        if self._loss is not None:
            parts.append(f"loss {self._loss:.4f}")
        if self._score is not None:
            parts.append(f"val AUC {self._score:.4f}")
        return ", ".join(parts)

    def _line(self, progress: ProgressState) -> None:
        now, position = time.monotonic(), progress.position
        self._last = now
        epochs = progress.problem.config.train.epochs
        done = position.epoch + (position.batch / progress.batches if progress.batches else 0)
        left = ""
        if done > self._done:
            seconds = (now - self._began) / (done - self._done) * (epochs - done)
            left = f", {seconds:.0f} s left" if seconds >= 0.5 else ""
        self._say(f"epoch {done:.1f} of {epochs}, {self._describe()}{left}")

    def _say(self, text: str) -> None:
        sys.stderr.write(f"{self._title}: {text}\n")
        sys.stderr.flush()
