"""A context for loops that use Accelerate."""

from typing import Any

from seedless.core.errors import RunError
from seedless.core.files import AnyPath
from seedless.integrations.step_writer import explain_missing, unwrap_single
from seedless.proof.recorded_loop import RecordedLoop, record

try:
    from accelerate import Accelerator
except ImportError as error:
    raise ImportError(explain_missing("accelerate")) from error


def record_accelerator(
    folder: AnyPath, accelerator: Accelerator, *, config: Any = None
) -> RecordedLoop:
    """Record a loop with all that `accelerator.prepare` was given, as `seedless.record` does.

    Models, optimizers, schedulers and the gradient scaler are recorded. A loop that resumes
    (`accelerator.load_state`) goes on with the trail in the folder.

    Args:
        folder: where the trail is written.
        accelerator: after `prepare` was called.
        config: settings to record with it: anything.

    Example:
        >>> with record_accelerator("runs/a", accelerator) as trail:
        ...     for batch in loader:
        ...         with accelerator.accumulate(model):
        ...             loss = train_step(batch)
        ...         if accelerator.sync_gradients:  # the optimizer stepped
        ...             step += 1
        ...             trail.step(step=step, epoch=epoch, loss=loss, batch=batch)
    """
    # Accelerate has no public way to list what it prepared.
    models, optimizers = accelerator._models, accelerator._optimizers
    if not models or not optimizers:
        raise RunError(
            "expected an accelerator that has prepared a model and an optimizer, got one with "
            f"{len(models)} models and {len(optimizers)} optimizers: call accelerator.prepare first"
        )
    return record(
        folder,
        unwrap_single(models),
        unwrap_single(optimizers),
        scheduler=unwrap_single(accelerator._schedulers),
        scaler=accelerator.scaler,
        config=config,
        rank=accelerator.process_index,
    )
