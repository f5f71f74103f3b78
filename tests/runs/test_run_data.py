"""Data of a run: bound to its receipt with their splits, and taken from a bundle only knowingly."""

from dataclasses import replace

import numpy as np
import pytest

import seedless
from seedless.core import dataset
from seedless.core.config import parse_config
from seedless.data.dataset_folder import write_packed
from seedless.data.loading import load
from seedless.proof.bundle import write_bundle
from seedless.runs.prepare import prepare
from seedless.runs.train import train_run
from tests.tiny import SETTINGS, answer_here

ALL_FOLDS = {"train": tuple(range(1, 11)), "val": (9,), "test": (10,)}
SMALL = {**SETTINGS, "model": {"name": "baseline", "small": True}}


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch):
    monkeypatch.setattr("seedless.audit.verification.run_worker", answer_here)


def write_arrays(path, **changes):
    """Write 40 recordings of two leads with three classes, in ten folds."""
    draw, numbers = np.random.default_rng(0), np.arange(40) % 3
    arrays = {
        "X": draw.normal(size=(40, 2, 250)).astype("f4") + numbers[:, None, None].astype("f4"),
        "Y": np.eye(3, dtype="u1")[numbers],
        "folds": np.arange(40) % 10 + 1,
        "ids": np.array([f"r{row}" for row in range(40)]),
    }
    np.savez(path, **{**arrays, **changes})
    return path


def make_bundle(folder, config, data):
    """Train on a dataset as given, and bundle the run with that dataset; return the bundle."""
    run = train_run(config, folder / "run", preparer=lambda config: prepare(config, data))
    write_packed(folder / "packed", data)
    files = {f"data/{path.name}": path for path in (folder / "packed").iterdir()}
    write_bundle(run.path, folder / "run.bundle.zip", files)
    return folder / "run.bundle.zip"


def test_a_bundle_that_trains_on_its_test_records_is_not_identical(tmp_path, monkeypatch):
    config = parse_config({**SMALL, "data": {"name": str(write_arrays(tmp_path / "ours.npz"))}})
    with monkeypatch.context() as forger:
        forger.setattr(dataset, "check_protocol", lambda protocol, where: None)
        forger.setattr("seedless.runs.train.refuse_repeated", lambda *_: None)
        leaky = replace(load(config.data), protocol=ALL_FOLDS)
        bundle = make_bundle(tmp_path, config, leaky)
        (tmp_path / "ours.npz").unlink()
    verdict = seedless.verify(bundle)
    assert verdict.outcome == "invalid", verdict.sentence
    assert "got fold 10 in test and in train" in " ".join(verdict.details)
