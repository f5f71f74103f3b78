import warnings

import pytorch_lightning as pl
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore", ".*does not have many workers.*")


class WaveData(pl.LightningDataModule):
    def __init__(self, batch_size=32):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage=None):
        i = torch.arange(160, dtype=torch.float32).unsqueeze(1)
        k = torch.arange(24, dtype=torch.float32)
        self.ds = TensorDataset(torch.sin(i * 0.21 + k * (1 + i % 4) * 0.3))

    def train_dataloader(self):
        return DataLoader(self.ds, batch_size=self.batch_size, shuffle=True)


class DenoisingAE(pl.LightningModule):
    def __init__(self, d=24, z=5, noise=0.1):
        super().__init__()
        self.save_hyperparameters()
        self.encoder = nn.Sequential(nn.Linear(d, 16), nn.ReLU(), nn.Linear(16, z))
        self.decoder = nn.Sequential(nn.Linear(z, 16), nn.ReLU(), nn.Linear(16, d))

    def training_step(self, batch, batch_idx):
        (x,) = batch
        noisy = x + self.hparams.noise * torch.randn_like(x)
        loss = F.mse_loss(self.decoder(self.encoder(noisy)), x)
        self.log("train_loss", loss)
        return loss

    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters(), lr=2e-3)
        return {"optimizer": opt, "lr_scheduler": torch.optim.lr_scheduler.CosineAnnealingLR(opt, 3)}


if __name__ == "__main__":
    pl.seed_everything(42, workers=True)
    model = DenoisingAE()
    trainer = pl.Trainer(max_epochs=3, accelerator="cpu", devices=1, logger=False, enable_progress_bar=False,
                         enable_model_summary=False, default_root_dir=".")
    trainer.fit(model, datamodule=WaveData())
    torch.save(model.state_dict(), "model.pt")
