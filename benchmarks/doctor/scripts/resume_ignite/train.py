import argparse
import os

import torch
from ignite.engine import DeterministicEngine, Engine, Events, supervised_training_step
from ignite.handlers import Checkpoint, DiskSaver
from ignite.utils import manual_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="checkpoints")
    parser.add_argument("--checkpoint-every", type=int, default=4)
    parser.add_argument("--deterministic", action="store_true")
    args = parser.parse_args()

    manual_seed(0)
    data = TensorDataset(torch.randn(80, 8), torch.randint(3, (80,)))
    loader = DataLoader(data, batch_size=8, shuffle=True)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=30)
    update = supervised_training_step(model, optimizer, nn.CrossEntropyLoss())
    trainer = DeterministicEngine(update) if args.deterministic else Engine(update)
    trainer.add_event_handler(Events.ITERATION_COMPLETED, lambda: scheduler.step())

    to_save = {"trainer": trainer, "model": model, "optimizer": optimizer, "scheduler": scheduler}
    handler = Checkpoint(
        to_save,
        DiskSaver(args.out, create_dir=True, require_empty=False),
        n_saved=1,
        filename_pattern="last.pt",
    )
    trainer.add_event_handler(Events.ITERATION_COMPLETED(every=args.checkpoint_every), handler)

    last = os.path.join(args.out, "last.pt")
    if os.path.exists(last):
        Checkpoint.load_objects(to_save, torch.load(last, weights_only=False))
    trainer.run(loader, max_epochs=3)


if __name__ == "__main__":
    main()
