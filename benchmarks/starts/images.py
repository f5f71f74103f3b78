"""Two data sets as images: breast ultrasound, and spectrograms of ECGs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

BREAST, ECG = "breastmnist", "ecg-spectrograms"
BREAST_FILE, ECG_FILE = "breastmnist.npz", "ptb-xl-derived100.npz"
MIN_POSITIVES = 5  # in the test images: a class with fewer is not scored
WINDOW, HOP, PADDED = 128, 14, 1010  # samples: 64 frequencies below 50 Hz, 64 windows
TRAIN_FOLDS, TEST_FOLDS = range(1, 9), (9, 10)


@dataclass(frozen=True, eq=False)
class Images:
    """Images (n, channels, height, width) in float32 and labels (n, classes) in float32."""

    name: str
    train: tuple[Tensor, Tensor]
    test: tuple[Tensor, Tensor]

    @property
    def channels(self) -> int:
        """Channels of an image."""
        return int(self.train[0].shape[1])

    @property
    def classes(self) -> int:
        """Labels of an image."""
        return int(self.train[1].shape[1])


def read_breast(file: Path, size: int) -> Images:
    """Return BreastMNIST's training and test images, enlarged to ``size`` pixels a side."""
    with np.load(file) as arrays:
        parts = {
            part: (arrays[f"{part}_images"], arrays[f"{part}_labels"]) for part in ("train", "test")
        }

    def prepare(images: NDArray[np.uint8], labels: NDArray[np.uint8]) -> tuple[Tensor, Tensor]:
        pixels = torch.from_numpy(images.astype(np.float64) / 127.5 - 1.0)[:, None]
        larger = torch.nn.functional.interpolate(
            pixels, (size, size), mode="bilinear", align_corners=False
        )
        return larger.float(), torch.from_numpy(labels.astype(np.float32)).view(-1, 1)

    return Images(BREAST, prepare(*parts["train"]), prepare(*parts["test"]))


def read_spectrograms(file: Path) -> Images:
    """Return labelled ECGs as images of 64 frequencies x 64 windows, one channel for each lead.

    Folds 1 to 8 are trained on, 9 and 10 are the test images. Values are log(1 + power), minus the
    mean of the training images and divided by their standard deviation.
    """
    with np.load(file) as arrays:
        signals = arrays["X"].astype(np.float64) * float(arrays["scale"])
        labels, folds = arrays["Y"], arrays["folds"]
    is_labelled = labels.any(axis=1)
    rows = {
        "train": np.isin(folds, TRAIN_FOLDS) & is_labelled,
        "test": np.isin(folds, TEST_FOLDS) & is_labelled,
    }
    power = {part: compute_spectrograms(signals[chosen]) for part, chosen in rows.items()}
    mean, deviation = power["train"].mean(), power["train"].std()

    def prepare(part: str) -> tuple[Tensor, Tensor]:
        images = ((power[part] - mean) / deviation).astype(np.float32)
        return torch.from_numpy(images), torch.from_numpy(labels[rows[part]].astype(np.float32))

    return Images(ECG, prepare("train"), prepare("test"))


def compute_spectrograms(signals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log(1 + power) of signals (n, leads, 1000) in windows: (n, leads, 64, 64)."""
    n, leads, length = signals.shape
    padded = np.zeros((n, leads, max(PADDED, length)))
    padded[:, :, :length] = signals
    starts = range(0, padded.shape[2] - WINDOW + 1, HOP)
    shape = np.hanning(WINDOW)
    columns = [
        np.abs(np.fft.rfft(padded[:, :, start : start + WINDOW] * shape)[..., : WINDOW // 2]) ** 2
        for start in starts
    ]
    power: NDArray[np.float64] = np.log1p(np.stack(columns, axis=-1))
    return power
