import argparse
import random

import numpy as np
import torch
from torch import nn

from seg.data import cells, estimate_class_weights
from seg.unet import UNet

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("-e", "--epochs", type=int, default=2)
    parser.add_argument("-b", "--batch-size", type=int, default=8)
    parser.add_argument("--seed", type=int, default=55)
    args = parser.parse_args()

    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    torch.backends.cudnn.deterministic = True

    images, masks = cells()
    weights = estimate_class_weights(masks)
    criterion = nn.CrossEntropyLoss(weight=torch.from_numpy(weights))
    x, y = torch.from_numpy(images), torch.from_numpy(masks)
    net = UNet()
    optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        for idx in torch.randperm(len(x)).split(args.batch_size):
            optimizer.zero_grad()
            loss = criterion(net(x[idx]), y[idx])
            loss.backward()
            optimizer.step()
        iou = ((net(x).argmax(1) > 0) & (y > 0)).sum() / ((net(x).argmax(1) > 0) | (y > 0)).sum()
        print(f"epoch {epoch + 1}: loss {loss.item():.4f} iou {iou.item():.3f}")
    torch.save(net.state_dict(), "model.pt")
