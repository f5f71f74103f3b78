"""Small problems of a user's own: regression, several tasks, segmentation, variable lengths."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

SETTINGS = {
    "execution": {"device": "cpu", "threads": 1},
    "train": {"epochs": 2, "evaluate_every": 1, "checkpoint_every": 1, "evaluate_batch": 8},
    "order": {"batch_size": 8},
}


def make_regression(count, start=0):
    """Return inputs (n, 6) and targets (n, 1)."""
    inputs = np.sin(np.arange(start * 6, (start + count) * 6).reshape(count, 6) ** 1.5)
    return inputs, inputs[:, :2].sum(axis=1, keepdims=True)


def small_net(outputs=1):
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, outputs))


def squared_error(outputs, targets):
    return F.mse_loss(outputs, targets)


def adamw(model):
    return torch.optim.AdamW(model.parameters(), lr=0.01)


def falling(epoch, step):
    return 0.5**epoch


def absolute_error(outputs, targets):
    """One value for each sample."""
    return (outputs - targets).abs().mean(dim=1)


REGRESSION = {
    "train": make_regression(24),
    "val": make_regression(10, start=24),
    "loss": squared_error,
    "optimizer": adamw,
    "scheduler": falling,
}


class TwoTasks(nn.Module):
    """Takes two named inputs and returns a dict of two outputs."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 8)
        self.number = nn.Linear(8, 1)
        self.kind = nn.Linear(8, 3)

    def forward(self, signal, scale):
        hidden = torch.relu(self.body(signal * scale))
        return {"number": self.number(hidden), "kind": self.kind(hidden)}


def two_losses(outputs, targets):
    """One loss for each sample; targets of class -100 are ignored."""
    kinds = F.cross_entropy(outputs["kind"], targets["kind"], ignore_index=-100, reduction="none")
    return (outputs["number"] - targets["number"]).square().mean(dim=1) + kinds


def make_two_tasks(count, start=0):
    """Return dicts of arrays: inputs of two names, targets of two names."""
    signal, number = make_regression(count, start)
    kind = (np.arange(count) + start) % 4
    inputs = {"signal": signal, "scale": np.full((count, 1), 2.0)}
    return inputs, {"number": number, "kind": np.where(kind == 3, -100, kind)}


class Sentences:
    """A dataset of sentences of different lengths, each a dict."""

    def __init__(self, rows):
        self.rows = list(rows)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        row = self.rows[index]
        return {"words": (np.arange(3 + row % 4) * (row + 1)) % 11, "kind": row % 3}


def pad_sentences(samples):
    """Return padded words and their mask as two inputs, and the classes."""
    words = [torch.from_numpy(sample["words"]) for sample in samples]
    mask = [torch.ones(len(part)) for part in words]
    padded = nn.utils.rnn.pad_sequence(words, batch_first=True)
    kinds = torch.tensor([sample["kind"] for sample in samples])
    return (padded, nn.utils.rnn.pad_sequence(mask, batch_first=True)), kinds


class MeanOfWords(nn.Module):
    """Averages the embeddings of the words that the mask keeps."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(11, 6)
        self.head = nn.Linear(6, 3)

    def forward(self, words, mask):
        kept = self.words(words) * mask[:, :, None]
        return self.head(kept.sum(dim=1) / mask.sum(dim=1, keepdim=True))


def make_masks(count, start=0):
    """Return images (n, 1, 8, 8) and dense class numbers (n, 8, 8), with pixels to ignore."""
    images = np.sin(np.arange(start * 64, (start + count) * 64).reshape(count, 1, 8, 8) ** 1.3)
    masks = (images[:, 0] > 0).astype(np.int64)
    masks[:, 0] = 255
    return images.astype(np.float32), masks


def segmenter():
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 2, 1))


def pixel_loss(outputs, targets):
    return F.cross_entropy(outputs, targets, ignore_index=255)
