"""A run opened again gives the predictions it wrote down; other weights or data are refused."""

import io

import numpy as np
import pytest
import torch
from safetensors.torch import load, save

from seedless.core.config import override
from seedless.core.errors import ConfigError, RunError
from seedless.runs.folder import read_config
from seedless.runs.opened_run import check_output_file, describe_run, open_run
from seedless.runs.user_model import UserModel
from tests.forgery import reconfigure
from tests.small import ECG, IMAGES, train_small
from tests.tiny import ENTRY, copy_run, fit_run, flags_restored, give


@pytest.fixture(scope="module")
def ecg(tmp_path_factory):
    with flags_restored():
        return train_small(tmp_path_factory.mktemp("ecg") / "run", *ECG)


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    with flags_restored():
        return train_small(tmp_path_factory.mktemp("images") / "run", *IMAGES)


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    with flags_restored():
        return fit_run(tmp_path_factory.mktemp("fit") / "run")


def read_predictions(run):
    with np.load(io.BytesIO((run / "predictions.npz").read_bytes())) as file:
        return dict(file)


@pytest.mark.parametrize("name", ["ecg", "images", "given"])
def test_predictions_are_those_the_run_wrote_down_bit_for_bit(request, name):
    run = request.getfixturevalue(name)
    found = open_run(run, entry=ENTRY if name == "given" else None)
    written = read_predictions(run)
    np.testing.assert_array_equal(found.predict(found.records), written["test_probabilities"])
    np.testing.assert_array_equal(found.labels, written["test_labels"])
    np.testing.assert_array_equal(found.ids, written["test_ids"])
    assert list(found.classes) == written["classes"].tolist()
    assert not found.run.model.training
    assert describe_run(found)["split"] == "test"


def test_recordings_keep_their_leads_and_rate(ecg, images):
    found = open_run(ecg)
    assert (found.leads[:2], found.fs, found.task) == (("I", "II"), 100.0, "multi-label")
    assert found.records.dtype == np.float32
    assert open_run(images).leads is None


def test_a_run_without_test_records_is_opened_on_validation(tmp_path, monkeypatch):
    arrays = give()
    del arrays["test"]
    run = fit_run(tmp_path / "run", arrays)
    with pytest.raises(RunError, match="other arrays than"):
        open_run(run, entry=ENTRY)  # which gives a test split
    monkeypatch.setattr("seedless.runs.opened_run.load_entry", lambda _: UserModel(**arrays))
    found = open_run(run, entry=ENTRY)
    assert found.split == "validation"
    written = read_predictions(run)["validation_probabilities"]
    np.testing.assert_array_equal(found.predict(found.records), written)


def test_changed_weights_and_other_data_are_refused(ecg, tmp_path):
    run = copy_run(ecg, tmp_path / "run")
    weights = load((run / "weights.safetensors").read_bytes())
    weights["head.bias"] = weights["head.bias"] + 1
    (run / "weights.safetensors").write_bytes(save(weights))
    with pytest.raises(RunError, match=r"weights\.safetensors was changed"):
        open_run(run)
    run = copy_run(ecg, tmp_path / "other")
    reconfigure(run, override(read_config(run), ["data.preset=small"]))
    with pytest.raises(RunError, match="other data than simulated holds now"):
        open_run(run)


def test_a_run_of_fit_needs_its_entry_and_others_refuse_one(ecg, given):
    with pytest.raises(ConfigError, match="is a run of fit"):
        open_run(given)
    with pytest.raises(ConfigError, match="leave --entry out"):
        open_run(ecg, entry=ENTRY)
    with pytest.raises(RunError, match="no run at"):
        open_run(ecg.parent / "absent")


def test_a_run_of_a_gpu_opens_on_the_cpu_where_there_is_none(ecg, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    run = copy_run(ecg, tmp_path / "run")
    made = read_config(run).change(execution={"device": "cuda", "mode": "graph"})
    reconfigure(run, made)
    assert describe_run(open_run(run))["device"] == "cpu"


def test_files_are_not_written_into_a_run_or_over_another(ecg, tmp_path):
    there = tmp_path / "there"
    there.write_text("mine")
    with pytest.raises(RunError, match="--force"):
        check_output_file(ecg, there, force=False)
    check_output_file(ecg, there, force=True)
    with pytest.raises(RunError, match="is there already"):
        check_output_file(ecg, tmp_path, force=True)
    with pytest.raises(RunError, match="there is no folder"):
        check_output_file(ecg, tmp_path / "no" / "file", force=False)
    for inside in (ecg / "maps.npz", ecg / "checkpoints" / ".." / "maps.npz"):
        with pytest.raises(RunError, match="receipt covers every file"):
            check_output_file(ecg, inside, force=False)
    link = tmp_path / "link"
    link.symlink_to(ecg)
    with pytest.raises(RunError, match="receipt covers every file"):
        check_output_file(ecg, link / "maps.npz", force=False)
