import argparse

import torch

from data import Patterns
from engine import Engine
from model import SmallCNN


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--lr", type=float, default=0.05)
    p.add_argument("--width", type=int, default=8)
    p.add_argument("--seed", type=int, default=1234)
    p.add_argument("--out", default="model.pt")
    return p.parse_args()


def main():
    args = get_args()
    model = SmallCNN(args.width)
    n = sum(p.numel() for p in model.parameters())
    print(f"{n} parameters")
    engine = Engine(model, Patterns(), args)
    engine.fit()
    torch.save(model.state_dict(), args.out)


if __name__ == "__main__":
    main()
