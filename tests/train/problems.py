"""Small problems for the loop: real ones, made by the pipeline, that take milliseconds."""

import numpy as np
import torch
from torch import nn

from seedless.core.config import parse_config
from seedless.models import build
from seedless.runs.user_model import UserModel, prepare_user_model
from seedless.train.progress_state import Observer

CLASSES = 3


def make_arrays(count, start=0, leads=2, length=12):
    """Return samples (n, leads, length) and labels (n, 3): class k has a wave of its own."""
    record = np.arange(start, start + count)
    labels = np.eye(CLASSES, dtype=np.uint8)[record % CLASSES]
    labels[record % 5 == 0, 0] = 1
    time = np.arange(length)
    waves = np.stack([np.cos((k + 1) * time) for k in range(CLASSES)])
    noise = np.sin(
        np.arange(record.size * leads * length).reshape(-1, leads, length) ** 1.5 + start
    )
    return (labels @ waves)[:, None] + noise.astype(np.float64), labels


def linear(leads=2, length=12, classes=CLASSES):
    """The smallest model there is."""
    return nn.Sequential(nn.Flatten(), nn.Linear(leads * length, classes))


def make_problem(model=linear, count=24, val=12, **sections):
    """Return a problem over small arrays; sections are those of a configuration."""
    sections["execution"] = {"device": "cpu", "threads": 1}
    sections["train"] = {
        "epochs": 3,
        "evaluate_every": 1,
        "rate": 0.01,
        **sections.get("train", {}),
    }
    sections["init"] = {"basis": "dct", **sections.get("init", {})}
    sections["order"] = {"batch_size": 5, **sections.get("order", {})}
    given = UserModel(
        model, make_arrays(count), make_arrays(val, start=count) if val else None, classes=None
    )
    return prepare_user_model(parse_config(sections), given).problem


def small_conformer():
    """A conformer of 26,000 parameters for two leads and three classes."""
    return build("conformer", leads=2, classes=CLASSES, small=True)


def flat(tensors):
    """Return tensors as one long row, for comparing."""
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


class Recorder(Observer):
    """Records every call of the loop in a list that several observers may share."""

    def __init__(self, name="", heard=None):
        self.name = name
        self.heard = [] if heard is None else heard
        self.states = []

    def _note(self, kind, progress):
        self.heard.append((self.name, kind, progress.position))
        self.states.append((kind, progress))

    def begin(self, progress):
        self._note("begin", progress)

    def step(self, progress):
        self._note("step", progress)

    def epoch(self, progress):
        self._note("epoch", progress)

    def stop(self, progress):
        self._note("stop", progress)

    def epochs(self):
        """Return the states at which an epoch was over."""
        return [progress for kind, progress in self.states if kind == "epoch"]


def images(**sections):
    """Return a configuration of a small resnet18 on simulated images."""
    return parse_config(
        {
            "data": {"name": "simulated-images", "records": 60, "classes": 3},
            "model": {"name": "resnet18", "small": True},
            "order": {"batch_size": 16},
            "execution": {"device": "cpu", "threads": 1},
            **sections,
        }
    )
