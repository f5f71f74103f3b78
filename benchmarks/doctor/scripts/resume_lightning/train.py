import argparse
import os

import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, Sampler, TensorDataset


class Net(L.LightningModule):
    def __init__(self, dropout):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(8, 32), nn.ReLU(), nn.Dropout(dropout), nn.Linear(32, 3)
        )

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self.layers(x), y)
        self.log("train_loss", loss)
        return loss

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=1e-2)
        sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=30)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": sched, "interval": "step"}}


class EpochSampler(Sampler):
    """Shuffles by epoch; Lightning calls set_epoch."""

    def __init__(self, n):
        self.n, self.epoch = n, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        g = torch.Generator().manual_seed(self.epoch)
        return iter(torch.randperm(self.n, generator=g).tolist())

    def __len__(self):
        return self.n


class KeepGenerator(L.Callback):
    """Saves the state of torch's generator with each checkpoint."""

    state = None

    def on_save_checkpoint(self, trainer, pl_module, checkpoint):
        checkpoint["torch_rng"] = torch.get_rng_state()

    def on_load_checkpoint(self, trainer, pl_module, checkpoint):
        self.state = checkpoint["torch_rng"]

    def on_train_start(self, trainer, pl_module):
        if self.state is not None:
            torch.set_rng_state(self.state)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="checkpoints")
    parser.add_argument("--save-every", type=int, default=4)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--no-shuffle", action="store_true")
    parser.add_argument("--keep-generator", action="store_true")
    args = parser.parse_args()

    L.seed_everything(0)
    data = TensorDataset(torch.randn(80, 8), torch.randint(3, (80,)))
    loader = DataLoader(data, batch_size=8, shuffle=not args.no_shuffle)
    callbacks = [
        ModelCheckpoint(
            args.out, every_n_train_steps=args.save_every, save_last=True, enable_version_counter=False
        )
    ]
    if args.keep_generator:
        callbacks.append(KeepGenerator())
        own = torch.Generator().manual_seed(0)
        loader = DataLoader(data, batch_size=8, sampler=EpochSampler(len(data)), generator=own)

    model = Net(args.dropout)
    trainer = L.Trainer(
        max_epochs=3,
        accelerator="cpu",
        callbacks=callbacks,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    last = os.path.join(args.out, "last.ckpt")
    trainer.fit(model, loader, ckpt_path=last if os.path.exists(last) else None)


if __name__ == "__main__":
    main()
