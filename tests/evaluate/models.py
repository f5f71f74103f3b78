"""Small models with weights that are neither random nor dead, and samples for them."""

import numpy as np
import torch

import seedless

MODELS = ("conformer", "baseline", "xresnet1d101", "resnet18")


def make_model(name, classes=3):
    size = {"channels": 1} if name == "resnet18" else {"leads": 6}
    model = seedless.build(name, classes=classes, small=True, **size)
    seedless.initialize(model, "dct", residual_scale=1.0)
    with torch.no_grad():
        for parameter in model.parameters():  # no gain stays 0 and no bias silent
            wave = torch.cos(torch.arange(parameter.numel()) * 1.3 + 0.4).view(parameter.shape)
            parameter += 0.05 * wave
    return model


def make_samples(name, n):
    shape = (n, 1, 20, 28) if name == "resnet18" else (n, 6, 210)
    grid = np.arange(np.prod(shape), dtype=np.float64)
    return (np.cos(grid * 0.37) + np.sin(grid * grid * 1e-4)).reshape(shape).astype(np.float32)
