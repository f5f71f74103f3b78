import argparse
import os

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="checkpoints")
    parser.add_argument("--checkpointing-steps", type=int, default=4)
    parser.add_argument("--own-generator", action="store_true")
    args = parser.parse_args()

    set_seed(0)
    accelerator = Accelerator(cpu=True)
    data = TensorDataset(torch.randn(80, 8), torch.randint(3, (80,)))
    generator = torch.Generator() if args.own_generator else None
    loader = DataLoader(data, batch_size=8, shuffle=True, generator=generator)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=30)
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)

    completed_steps = 0
    if os.path.isdir(args.out) and os.listdir(args.out):
        last = max(os.listdir(args.out), key=lambda name: int(name.split("_")[1]))
        accelerator.print(f"Resumed from checkpoint: {last}")
        accelerator.load_state(os.path.join(args.out, last))
        completed_steps = int(last.split("_")[1])
    starting_epoch, resume_step = divmod(completed_steps, len(loader))

    for epoch in range(starting_epoch, 3):
        model.train()
        if generator is not None:
            generator.manual_seed(epoch)
        active = loader
        if epoch == starting_epoch and resume_step > 0:
            active = accelerator.skip_first_batches(loader, resume_step)
        for x, y in active:
            loss = F.cross_entropy(model(x), y)
            accelerator.backward(loss)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            completed_steps += 1
            if completed_steps % args.checkpointing_steps == 0:
                accelerator.save_state(os.path.join(args.out, f"step_{completed_steps}"))


if __name__ == "__main__":
    main()
