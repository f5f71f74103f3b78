"""One process of a group: trains several small runs with `fit` and writes what came of each.

python -m tests.runs.group_member FOLDER      with RANK and WORLD_SIZE, as torchrun starts it
"""

import json
import os
import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import seedless
from seedless.core.rendezvous import find_place
from seedless.runs.fit_settings import read_settings
from seedless.runs.group import join_group
from seedless.runs.shared_digests import digest_together
from tests.runs.user_problems import (
    MeanOfWords,
    Sentences,
    adamw,
    make_regression,
    make_two_tasks,
    pad_sentences,
)

SETTINGS = {
    "execution": {"device": "cpu", "threads": 1, "arithmetic": "portable", "timeout": 60},
    "train": {"epochs": 2, "evaluate_every": 1, "checkpoint_every": 1, "evaluate_batch": 4},
    "order": {"batch_size": 8},
}


class TwoTasks(nn.Module):
    """Has two inputs by name, statistics of the batch, dropout, and two outputs."""

    def __init__(self):
        super().__init__()
        self.body, self.norm = nn.Linear(6, 8), nn.BatchNorm1d(8)
        self.number, self.kind = nn.Linear(8, 1), nn.Linear(8, 3)
        self.dropout = seedless.Dropout(0.2, layer=0)

    def forward(self, signal, scale):
        hidden = self.dropout(torch.relu(self.norm(self.body(signal * scale))))
        return {"number": self.number(hidden), "kind": self.kind(hidden)}


def loss_over_the_batch(outputs, targets):
    """A loss that needs all samples at once: each output is compared with all the others."""
    kinds = outputs["kind"]
    likeness = kinds @ kinds.T
    same = (targets["kind"][:, None] == targets["kind"][None, :]).float()
    pairs = F.binary_cross_entropy_with_logits(likeness, same)
    return pairs + (outputs["number"] - targets["number"]).square().mean()


def mixing_collate(samples):
    """Add the mean of the batch to every sample, as no collate function of a group may."""
    inputs = torch.stack([torch.as_tensor(one).float() for one, _ in samples])
    targets = torch.stack([torch.as_tensor(two).float() for _, two in samples])
    return inputs + inputs.mean(dim=0), targets


def squared_error(outputs, targets):
    return F.mse_loss(outputs, targets)


def make_loss(scale):
    def squared_error(outputs, targets):
        return F.mse_loss(outputs, targets) * scale

    return squared_error


def classify(outputs, kinds):
    return F.cross_entropy(outputs, kinds)


def make_images():
    images = np.sin(np.arange(26 * 64).reshape(26, 1, 8, 8) ** 1.3).astype(np.float32)
    return images, np.arange(26) % 3


def small_images():
    """BatchNorm and the configuration's own loss; batches of 8, 8, 8 and 2 samples."""
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(256, 3)
    )


class Watched:
    """A dataset of 200 samples that remembers which of them were read."""

    def __init__(self):
        self.read = set()

    def __len__(self):
        return 200

    def __getitem__(self, index):
        self.read.add(int(index))
        return np.float32([index, index + 0.5]), index % 3


def hash_together():
    """Return the digest of all samples, and which of them this process read for it."""
    place, watched = find_place(os.environ), Watched()
    group = join_group(place, read_settings(SETTINGS).execution)
    digests = digest_together(watched, group)
    return digests.tobytes().hex(), sorted(watched.read)


PROBLEMS = {
    "two-tasks": {
        "model": TwoTasks,
        "train": make_two_tasks(26),
        "val": make_two_tasks(9, start=26),
        "loss": loss_over_the_batch,
        "optimizer": adamw,
    },
    "images": {"model": small_images, "train": make_images()},
}


def fit_problem(name, folder, **changes):
    settings = {**SETTINGS, "train": {**SETTINGS["train"], "clip_norm": 0.5}}
    return seedless.fit(**{**PROBLEMS[name], "config": settings, "out": folder / name, **changes})


def refuse(function, *arguments, **changes):
    """Return the message of the error that a call raises."""
    try:
        function(*arguments, **changes)
    except seedless.core.errors.SeedlessError as error:
        return str(error)
    return "not refused"


def main(folder):
    rank = int(os.environ["RANK"])
    native = {**SETTINGS, "execution": {"device": "cpu", "threads": 1}}
    parts = {**SETTINGS, "train": {"epochs": 2, "microbatch": 4}}
    other = {**SETTINGS, "train": {"epochs": 2 + (rank == 1)}}
    inputs, targets = make_regression(24)
    changed = (inputs, targets + (rank == 2))
    plain = {"model": nn.Linear(6, 1), "loss": squared_error, "optimizer": adamw}
    found = {name: fit_problem(name, folder).digest for name in PROBLEMS}
    refused = {
        "native": refuse(fit_problem, "images", folder / "no", config=native),
        "micro-batches": refuse(fit_problem, "images", folder / "no", config=parts),
        "there already": refuse(fit_problem, "images", folder),
        "other settings": refuse(fit_problem, "images", folder / "no", config=other),
        "other function": refuse(
            seedless.fit,
            **{**plain, "loss": make_loss(scale=1 + (rank == 1))},
            train=(inputs, targets),
            config=SETTINGS,
            out=folder / "no",
        ),
        "other data": refuse(
            seedless.fit, **plain, train=changed, config=SETTINGS, out=folder / "no"
        ),
        "mixing collate": refuse(
            seedless.fit,
            **plain,
            train=(inputs, targets),
            collate=mixing_collate,
            config=SETTINGS,
            out=folder / "mixed",
        ),
        "padding": refuse(
            seedless.fit,
            MeanOfWords,
            train=Sentences(range(24)),
            collate=pad_sentences,
            loss=classify,
            optimizer=adamw,
            config=SETTINGS,
            out=folder / "padded",
        ),
    }
    again = fit_problem("images", folder, resume=True).digest
    hashed, read = hash_together()
    written = {"runs": found, "again": again, "refused": refused, "hashed": hashed, "read": read}
    (folder / f"rank-{rank}.json").write_text(json.dumps(written))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
