"""A callback for Lightning's Trainer."""

from typing import Any

from seedless.core.files import AnyPath
from seedless.integrations.step_writer import StepWriter, explain_missing, unwrap_single

try:
    from lightning.pytorch import Callback, LightningModule, Trainer
except ImportError as error:
    raise ImportError(explain_missing("lightning")) from error


class LightningRecorder(Callback):
    """Records a line for each optimizer step of `Trainer.fit`, as `seedless.record` does.

    A fit that resumes from a checkpoint (`ckpt_path=`) goes on with the trail in the folder. The
    step is Lightning's `global_step`.

    Args:
        folder: where the trail is written.
        config: settings to record with it: anything.

    Example:
        >>> trainer = Trainer(callbacks=[LightningRecorder("runs/a")])
    """

    def __init__(self, folder: AnyPath, config: Any = None) -> None:
        self._writer = StepWriter(folder, config)
        self._step = 0

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Open the trail: the checkpoint has been loaded by now."""
        self._step = trainer.global_step
        self._writer.begin(
            pl_module,
            unwrap_single(trainer.optimizers),
            scheduler=unwrap_single([each.scheduler for each in trainer.lr_scheduler_configs]),
            scaler=getattr(trainer.precision_plugin, "scaler", None),
        )

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Write a line if the optimizer stepped: with accumulated gradients it does not always."""
        self._writer.add(outputs, batch)
        if trainer.global_step != self._step:
            self._step = trainer.global_step
            self._writer.write(self._step, trainer.current_epoch)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Close the trail."""
        self._writer.close()

    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        """Close the trail."""
        self._writer.close()
