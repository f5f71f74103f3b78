import argparse

import lightning as L
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Waves(Dataset):
    def __init__(self, n=96, noise=0.1):
        rng = np.random.RandomState(3)
        self.freq = rng.randint(1, 5, n)
        self.phase = rng.rand(n)
        self.noise = noise

    def __len__(self):
        return len(self.freq)

    def __getitem__(self, i):
        t = np.linspace(0, 1, 40)
        x = np.sin(2 * np.pi * (self.freq[i] * t + self.phase[i]))
        x = x + np.random.randn(40) * self.noise
        return x.astype(np.float32), int(self.freq[i]) - 1


class WaveData(L.LightningDataModule):
    def __init__(self, batch_size=16):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage=None):
        self.train = Waves()
        self.val = Waves(32, noise=0.0)

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=self.batch_size)


class LitClassifier(L.LightningModule):
    def __init__(self, hidden=32, lr=1e-2):
        super().__init__()
        self.save_hyperparameters()
        self.l1 = nn.Linear(40, hidden)
        self.drop = nn.Dropout(0.1)
        self.l2 = nn.Linear(hidden, 4)

    def forward(self, x):
        return self.l2(self.drop(F.relu(self.l1(x))))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_acc", (self(x).argmax(1) == y).float().mean())

    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
        return {"optimizer": opt, "lr_scheduler": torch.optim.lr_scheduler.StepLR(opt, 1, 0.7)}


def cli_main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max_epochs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1234)
    args = parser.parse_args()
    L.seed_everything(args.seed)
    dm = WaveData()
    model = LitClassifier()
    trainer = L.Trainer(
        max_epochs=args.max_epochs,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
    )
    trainer.fit(model, datamodule=dm)
    trainer.save_checkpoint("model.ckpt")
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    cli_main()
