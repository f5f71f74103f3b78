"""A training of Lightning that can be ended, resumed and disturbed."""

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

from tests.integrations.parts import EPOCHS, make_data, make_network, make_optimizer

lightning = pytest.importorskip("lightning.pytorch", reason="needs the extra `integrations`")
from lightning.pytorch.callbacks import ModelCheckpoint  # noqa: E402

from seedless.integrations import LightningRecorder  # noqa: E402


class Classifier(lightning.LightningModule):
    def __init__(self, dropout, reseed_at):
        super().__init__()
        self.network = make_network(dropout)
        self.reseed_at = reseed_at

    def training_step(self, batch, index):
        if self.global_step + 1 == self.reseed_at:
            torch.manual_seed(99)
        inputs, labels = batch
        return nn.functional.cross_entropy(self.network(inputs), labels)

    def configure_optimizers(self):
        optimizer, schedule = make_optimizer(self)
        return [optimizer], [{"scheduler": schedule, "interval": "step"}]


def train(folder, *, dropout=0.5, shuffle=True, reseed_at=0, stop=-1, save=6, resume=False, **more):
    """Train three epochs of six batches, or as far as `stop`; save after every `save` steps."""
    lightning.seed_everything(0, verbose=False)
    trainer = lightning.Trainer(
        max_epochs=EPOCHS,
        max_steps=stop,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[
            LightningRecorder(folder),
            ModelCheckpoint(folder, filename="{step}", every_n_train_steps=save, save_top_k=-1),
        ],
        **more,
    )
    checkpoint = folder / f"step={save}.ckpt" if resume else None
    model = Classifier(dropout, reseed_at)
    trainer.fit(model, DataLoader(make_data(), 4, shuffle=shuffle), ckpt_path=checkpoint)
    return folder
