"""How far a run is: its epochs, loss and validation score."""

from pathlib import Path

from seedless.core.progress import Progress
from seedless.train.progress_state import Observer, ProgressState
from seedless.train.user_loss import UserLoss


class TrainingProgress(Observer):
    """Shows epochs, loss, validation score and time left, on standard error.

    ``page``: where a page about the run is written, to name it at the beginning. ``notes``:
    whether to say what a user should know of the data also where no progress is shown.
    """

    def __init__(
        self, title: str, *, shown: bool = True, page: Path | None = None, notes: bool = False
    ) -> None:
        self._title, self._shown, self._page = title, shown, page
        self._notes_shown = shown or notes
        self._display = Progress(title, shown=False)
        self._score: float | None = None
        self._loss: float | None = None
        self._score_name = ("val AUC", 1)

    def begin(self, progress: ProgressState) -> None:
        """Start the clock."""
        done, epochs = progress.position.epoch, progress.problem.config.train.epochs
        self._display = Progress(self._title, epochs, "epochs", done=float(done), shown=self._shown)
        if isinstance(progress.problem.loss, UserLoss):
            self._score_name = ("val loss", -1)  # the score is the negative loss
        if self._shown:
            resumed = f", resumed after epoch {done}" if done else ""
            samples = len(progress.problem.train)
            length = f"{epochs} epoch{'s' if epochs > 1 else ''}"
            self._display.say(f"{samples:,} training samples, {length}{resumed}")
            if self._page is not None:
                self._display.say(f"its curves while it trains: {self._page}")
        if self._notes_shown:
            for note in progress.problem.notes:
                self._display.say(f"note: {note}")

    def step(self, progress: ProgressState) -> None:
        """Show one batch more."""
        if not self._shown:
            return
        if progress.problem.device.type == "cpu":  # on a GPU, reading the loss would stop it
            self._loss = float(progress.losses[: progress.seen].mean())
        self._update(progress.position.epoch + progress.position.batch / progress.batches)

    def epoch(self, progress: ProgressState) -> None:
        """Show the epoch's loss and score."""
        self._loss = progress.loss
        if progress.score is not None:
            self._score = progress.score
        self._update(float(progress.position.epoch))

    def stop(self, progress: ProgressState) -> None:
        """Close the display."""
        self.close()

    def close(self) -> None:
        """Leave the last state behind."""
        self._display.close()

    def say(self, text: str) -> None:
        """Write a line of text, also where no progress is shown."""
        self._display.say(text)

    def _update(self, done: float) -> None:
        loss = [] if self._loss is None else [f"loss {self._loss:.4f}"]
        name, sign = self._score_name
        score = [] if self._score is None else [f"{name} {sign * self._score:.4f}"]
        self._display.update(done, ", ".join(loss + score))
