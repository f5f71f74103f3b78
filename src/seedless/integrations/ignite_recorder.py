"""A handler for the engines of Ignite, and of MONAI, whose engines are Ignite's."""

from typing import Any

from seedless.core.files import AnyPath
from seedless.integrations.step_writer import StepWriter, explain_missing
from seedless.proof.loop_state import Models, Optimizers, name_parts

try:
    from ignite.engine import Engine, Events
except ImportError as error:
    raise ImportError(explain_missing("pytorch-ignite")) from error


class IgniteRecorder:
    """Records a line for each iteration in which the optimizer steps, as `seedless.record` does.

    An engine that resumes (`load_state_dict`) goes on with the trail in the folder. The step is the
    engine's iteration. The loss is taken from the engine's output if that is a number, or a dict
    with "loss", as MONAI's is.

    Args:
        folder: where the trail is written.
        model: a model, or a dict or list of them.
        optimizer: an optimizer, or a dict or list of them.
        parts: `scheduler`, `scaler`, `sampler`, `generators`, as `seedless.record` takes them.
        config: settings to record with it: anything.

    Example:
        >>> IgniteRecorder("runs/a", model, optimizer).attach(engine)
    """

    def __init__(
        self,
        folder: AnyPath,
        model: Models,
        optimizer: Optimizers,
        *,
        config: Any = None,
        **parts: Any,
    ) -> None:
        self._writer = StepWriter(folder, config)
        self._model = model
        self._optimizer = optimizer
        self._parts = parts
        self._hooks: list[Any] = []
        self._stepped = False

    def attach(self, engine: Engine) -> None:
        """Record the runs of this engine; MONAI calls it for each of its handlers."""
        engine.add_event_handler(Events.STARTED, self._begin)
        engine.add_event_handler(Events.ITERATION_COMPLETED, self._write)
        engine.add_event_handler(Events.COMPLETED, self.close)
        engine.add_event_handler(Events.TERMINATE, self.close)

    def close(self) -> None:
        """Close the trail. Call it if a run raised and another recorder shall use the folder."""
        # An engine with a handler of EXCEPTION_RAISED would no longer raise the user's exceptions,
        # so that this is not called then.
        self._writer.close()
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def _begin(self) -> None:
        self.close()
        self._writer.begin(self._model, self._optimizer, **self._parts)
        optimizers = name_parts("optimizer", self._optimizer).values()
        self._hooks = [one.register_step_post_hook(self._mark_step) for one in optimizers]

    def _mark_step(self, *_: Any) -> None:
        self._stepped = True

    def _write(self, engine: Engine) -> None:
        self._writer.add(engine.state.output, engine.state.batch)
        if self._stepped:
            self._stepped = False
            self._writer.write(engine.state.iteration, engine.state.epoch)
