"""One line for each optimizer step, from what the hooks of a framework give for each batch."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from seedless.core.files import AnyPath
from seedless.core.plain_values import digest_structure
from seedless.proof.loop_state import Models, Optimizers, describe_loss
from seedless.proof.recorded_loop import RecordedLoop, record


class StepWriter:
    """Gathers the batches of a step, and writes its line when the optimizer has stepped.

    Attributes:
        trail: the trail that is being written; None before training, and after it was closed.
    """

    def __init__(self, folder: AnyPath, config: Any) -> None:
        self.trail: RecordedLoop | None = None
        self._folder = folder
        self._config = config
        self._losses: list[Any] = []
        self._batches: list[str] = []

    def begin(self, model: Models, optimizer: Optimizers, **parts: Any) -> None:
        """Open the trail, or go on with the one that is there; `parts` are those of `record`."""
        self.close()  # that of a run which ended with an exception
        self.trail = record(self._folder, model, optimizer, config=self._config, **parts)

    def add(self, output: Any, batch: Any) -> None:
        """Add a batch of the step, and the loss in what the framework gave for it."""
        self._losses.append(describe_loss(find_loss(output)))
        self._batches.append(digest_structure(batch))

    def write(self, step: int, epoch: int) -> None:
        """Write the line of a step, with the batches that were added since the last one."""
        if self.trail is not None:
            loss = self._losses[0] if len(self._losses) == 1 else self._losses
            self.trail.step(step=step, epoch=epoch, loss=loss, batch=self._batches)
        self._losses, self._batches = [], []

    def close(self) -> None:
        """Close the trail; another recorder may then write it."""
        if self.trail is not None:
            self.trail.close()
        self.trail = None
        self._losses, self._batches = [], []


def find_loss(output: Any) -> Any:
    """Return the loss in what a training step or a model returned, or None if it has none.

    >>> find_loss({"loss": 0.5, "logits": [1, 2]}), find_loss([{"loss": 0.5}]), find_loss("text")
    (0.5, 0.5, None)
    """
    if isinstance(output, list) and output and isinstance(output[0], Mapping):
        output = output[0]  # MONAI gives a dict for each sample, with the loss of the batch in each
    if isinstance(output, Mapping):
        output = output.get("loss")
    is_number = isinstance(output, Tensor) and output.numel() == 1
    return output if is_number or isinstance(output, int | float) else None


def unwrap_single(parts: Sequence[Any]) -> Any:
    """Return the only part of a list of one, so that it needs no number; any other list as it is.

    >>> unwrap_single(["a"]), unwrap_single(["a", "b"])
    ('a', ['a', 'b'])
    """
    return parts[0] if len(parts) == 1 else parts


def explain_missing(package: str) -> str:
    """Return what the error says where a framework is not installed."""
    return f"this recorder needs the package {package}: pip install 'seedless[integrations]'"
