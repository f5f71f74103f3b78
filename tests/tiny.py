"""Runs so small that a test may have one of its own: a few epochs of a network of 227 weights."""

import importlib
import json
import shutil

import numpy as np
from torch import nn

import seedless
from seedless.audit.worker import ACTIONS
from seedless.core.errors import RunError, SeedlessError
from seedless.numerics.saved_flags import preserve_flags

SETTINGS = {
    "init": {"basis": "dct"},
    "order": {"batch_size": 16},
    "train": {"epochs": 3, "checkpoint_every": 1, "evaluate_every": 1},
    "execution": {"device": "cpu", "threads": 1},
}
ENTRY = "tests.tiny:give"


def make_arrays(n, seed):
    """Return samples (n, 8) around a centre for each of three classes, and class numbers (n,)."""
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, 3, n)
    return draw.normal(size=(n, 8)).astype("f4") + labels[:, None].astype("f4"), labels


def make_model():
    return nn.Sequential(
        nn.Linear(8, 16),
        nn.BatchNorm1d(16),
        nn.ReLU(),
        seedless.Dropout(0.2, layer=0),
        nn.Linear(16, 3),
    )


def give():
    """Return what a run of `fit` is made from, as --entry wants it; 4 steps an epoch."""
    return {
        "model": make_model,
        "train": make_arrays(64, 1),
        "val": make_arrays(32, 2),
        "test": make_arrays(16, 3),
    }


def merge(**sections):
    """Return the settings with some of some sections changed."""
    names = {*SETTINGS, *sections}
    return {name: {**SETTINGS.get(name, {}), **sections.get(name, {})} for name in names}


def fit_run(out, given=None, **sections):
    """Train into ``out`` and return that folder."""
    return seedless.fit(**(given or give()), config=merge(**sections), out=out).path


def copy_run(run, to):
    """Return a copy that a test may ruin."""
    return shutil.copytree(run, to)


def answer_here(action, request, variables, processes=1):
    """Stand for `run_worker` where a process of its own would cost more than it shows."""
    module, function = ACTIONS[action]
    try:
        found = getattr(importlib.import_module(module), function)(json.loads(json.dumps(request)))
    except SeedlessError as error:
        raise RunError(str(error)) from None
    return json.loads(json.dumps(found))


# What a run sets in this process does not outlive a test.
flags_restored = preserve_flags
