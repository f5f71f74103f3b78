"""Data of a run: bound to its receipt with their splits, and taken from a bundle only knowingly."""

from dataclasses import replace

import numpy as np
import pytest

import seedless
from seedless.core import dataset
from seedless.core.config import Config, parse_config
from seedless.core.errors import ConfigError, DataError, RunError
from seedless.data.dataset_folder import write_packed
from seedless.data.loading import load
from seedless.data.model_inputs import sort_records
from seedless.data.readers.medmnist import read_medmnist
from seedless.data.splits import describe_dataset
from seedless.proof.bundle import write_bundle
from seedless.runs.prepare import prepare
from seedless.runs.run_data import load_run_data, pack_data
from seedless.runs.train import train_run
from seedless.runs.validation import open_validated
from tests.data.readers.test_medmnist import made, write
from tests.forgery import forge, read_entries, read_statement, relabel_as_schema_1
from tests.tiny import SETTINGS, answer_here, fit_run, give

SMALL = {**SETTINGS, "model": {"name": "baseline", "small": True}}


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


def leak(data):
    """Return a dataset that trains on all of its records."""
    return replace(data, protocol={"train": tuple(range(1, 11)), "val": (9,), "test": (10,)})


def make_bundle(folder, config, data):
    """Train on a dataset as given, and bundle the run with that dataset; return the bundle."""
    run = train_run(config, folder / "run", preparer=lambda config: prepare(config, data))
    write_packed(folder / "packed", data)
    write_bundle(run.path, folder / "run.bundle.zip", data=folder / "packed")
    return folder / "run.bundle.zip"


def forge_splits(forger):
    """Let the package make datasets with overlapping splits, and train on them."""
    forger.setattr(dataset, "check_protocol", lambda protocol, where: None)
    forger.setattr("seedless.runs.train.refuse_repeated", lambda *_: None)


@pytest.fixture
def config(tmp_path):
    """A configuration of a small run on an .npz file in the folder of the test."""
    return parse_config({**SMALL, "data": {"name": str(write_arrays(tmp_path / "ours.npz"))}})


@pytest.fixture
def in_this_process(monkeypatch):
    monkeypatch.setattr("seedless.audit.verification.run_worker", answer_here)


pytestmark = pytest.mark.usefixtures("in_this_process")


# Roles come from the configuration


def test_a_bundle_that_trains_on_its_test_records_is_invalid(tmp_path, config, monkeypatch):
    with monkeypatch.context() as forger:
        forge_splits(forger)
        bundle = make_bundle(tmp_path, config, leak(load(config.data)))
    (tmp_path / "ours.npz").unlink()
    assert seedless.verify(bundle).outcome == "invalid"
    verdict = seedless.verify(tmp_path / "run", validate_only=True)
    assert verdict.outcome == "invalid", verdict.sentence
    assert "got fold 10 in test and in train" in " ".join(verdict.details)


def test_a_receipt_that_hides_the_splits_of_packed_data_does_not_help(
    tmp_path, config, monkeypatch
):
    """Receipt and trail state the splits of the configuration, the packed manifest others."""
    data = load(config.data)
    with monkeypatch.context() as forger:
        forge_splits(forger)
        honest = describe_dataset(sort_records(data))
        forger.setattr("seedless.runs.prepare.describe_dataset", lambda records: honest)
        bundle = make_bundle(tmp_path, config, leak(data))
    (tmp_path / "ours.npz").unlink()
    assert seedless.verify(tmp_path / "run", validate_only=True).ok
    verdict = seedless.verify(bundle, validate_only=True)
    assert verdict.outcome == "invalid"
    assert "expected each fold in one split, got fold 9" in verdict.sentence


def test_a_label_of_schema_1_does_not_help(tmp_path, config, monkeypatch):
    """Schema 1 binds no roles, but they come from the configuration all the same."""
    with monkeypatch.context() as forger:
        forge_splits(forger)
        run = make_bundle(tmp_path, config, leak(load(config.data))).with_name("run")
    relabel_as_schema_1(run)
    consistent = seedless.verify(run, validate_only=True)
    assert consistent.ok
    assert "schema 1" in consistent.as_text().splitlines()[0]
    verdict = seedless.verify(run)  # on the file, whose splits are those of its folds
    assert verdict.outcome == "differs"
    (tmp_path / "ours.npz").unlink()
    with pytest.raises(RunError, match="expected each fold in one split, got fold 9"):
        seedless.verify(run, data=str(tmp_path / "packed"))


def test_other_splits_than_those_of_the_configuration_are_refused(tmp_path, config):
    data = replace(load(config.data), protocol={"train": (1, 2), "val": (3,), "test": (4,)})
    write_packed(tmp_path / "packed", data)
    with pytest.raises(DataError, match=r"expected the splits .*train: folds 1, 2, 3, 4"):
        load_run_data(config, str(tmp_path / "packed"))
    chosen = config.change(data={"test_fold": 1})
    write_packed(tmp_path / "other", load(chosen.data))
    assert load_run_data(chosen, str(tmp_path / "other")).data.protocol["test"] == (1,)
    with pytest.raises(DataError, match="got train: folds 2, 3, 4, 5, 6, 7, 8, 10; val: folds 9"):
        load_run_data(config, str(tmp_path / "other"))


# Data that this machine has are not replaced by packed data


def test_packed_data_are_named_in_the_verdict(tmp_path, config):
    bundle = make_bundle(tmp_path, config, load(config.data))
    (tmp_path / "ours.npz").unlink()
    verdict = seedless.verify(bundle)
    assert (verdict.outcome, verdict.remarks) == ("identical", ("on the data packed with it",))


def test_simulated_data_are_computed_and_packed_ones_ignored(tmp_path):
    data = {"name": "simulated", "records": 20}
    config = parse_config({"data": data, "execution": {"device": "cpu", "threads": 1}})
    own = load(config.data)
    write_packed(tmp_path / "packed", replace(own, Y=own.Y[::-1].copy()))
    found = load_run_data(config, str(tmp_path / "packed"))
    assert (found.data.digest, found.source) == (own.digest, "")


def test_a_catalogued_dataset_that_is_here_is_not_replaced(tmp_path, monkeypatch):
    monkeypatch.setenv("SEEDLESS_CACHE", str(tmp_path / "cache"))
    config = parse_config({"data": {"name": "breastmnist"}})
    packed = read_medmnist(write(tmp_path, "breastmnist", made("breastmnist")))
    write_packed(tmp_path / "packed", packed)
    # [Step 1] It is not here: the packed copy is used, and the verdict will say so.
    found = load_run_data(config, str(tmp_path / "packed"))
    assert (found.data.digest, found.source) == (packed.digest, "on the data packed with it")
    # [Step 2] It was fetched: the packed copy is ignored.
    place = tmp_path / "cache" / "downloads" / "breastmnist"
    place.mkdir(parents=True)
    fetched = write(place, "breastmnist", made("breastmnist", sizes=(20, 8, 12)))
    found = load_run_data(config, str(tmp_path / "packed"))
    assert (found.data.digest, found.source) == (read_medmnist(fetched).digest, "")
    # [Step 3] The configuration names a place that is here: the verdict will name it, too.
    other = config.change(data={"path": str(tmp_path / "breastmnist.npz")})
    found = load_run_data(other, str(tmp_path / "packed"))
    assert found.source == f"on the data in {tmp_path / 'breastmnist.npz'}"


def test_a_damaged_cache_is_not_packed(tmp_path, config, monkeypatch):
    run = train_run(config, tmp_path / "run").path
    data = load(config.data)
    samples = data.X.copy()
    samples[7, 0, 0] += 1
    damaged = replace(data, X=samples)  # with the digests of the genuine samples
    assert damaged.digest == data.digest
    monkeypatch.setattr("seedless.runs.run_data.load", lambda settings: damaged)
    with pytest.raises(DataError, match="1 of 40 samples, first in record r7"):
        pack_data(open_validated(run), tmp_path / "packed")
    assert not (tmp_path / "packed").exists()


# Records that are in two splits


@pytest.fixture
def doubled(tmp_path):
    """A file in which the record r9 of the test split is r0 of the training split."""
    with np.load(write_arrays(tmp_path / "ours.npz")) as file:
        samples = file["X"].copy()
    samples[9] = samples[0]
    return write_arrays(tmp_path / "ours.npz", X=samples)


def test_a_record_in_two_splits_is_refused_before_training(tmp_path, doubled):
    config = parse_config({**SMALL, "data": {"name": str(doubled)}})
    with pytest.raises(DataError, match=r"found 1 \(train/test 1\).*r0 \(train\) and r9 \(test\)"):
        train_run(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_accepted_record_is_stated_in_every_verdict(tmp_path, doubled):
    config = parse_config({**SMALL, "data": {"name": str(doubled), "repeated": 1}})
    run = train_run(config, tmp_path / "run").path
    claims = read_statement(run)["predicate"]
    assert claims["data"]["repeated"] == {"train/val": 0, "train/test": 1, "val/test": 0}
    for verdict in (seedless.verify(run), seedless.verify(run, validate_only=True)):
        assert verdict.ok
        assert "; 1 record is in two splits (accepted: 1)" in verdict.as_text().splitlines()[0]


def test_more_than_the_configuration_accepts_is_invalid(tmp_path, doubled, monkeypatch):
    config = parse_config({**SMALL, "data": {"name": str(doubled)}})
    monkeypatch.setattr("seedless.runs.train.refuse_repeated", lambda *_: None)
    run = train_run(config, tmp_path / "run").path
    verdict = seedless.verify(run)
    assert verdict.outcome == "invalid"
    assert verdict.details == (
        "records in two splits: expected at most 0, as catalogued or accepted, got 1",
    )


def test_a_receipt_that_counts_fewer_differs(tmp_path, doubled, monkeypatch):
    config = parse_config({**SMALL, "data": {"name": str(doubled)}})
    monkeypatch.setattr("seedless.runs.train.refuse_repeated", lambda *_: None)
    run = train_run(config, tmp_path / "run").path
    entries = read_entries(run)
    entries[0]["data"]["repeated"]["train/test"] = 0
    forge(run, entries)
    assert seedless.verify(run, validate_only=True).ok
    verdict = seedless.verify(run)
    assert verdict.outcome == "differs"
    assert verdict.details == ("data.repeated.train/test: 0 there, 1 here",)


def test_a_run_of_fit_too(tmp_path):
    given = give()
    samples, labels = given["test"]
    given["test"] = (np.concatenate([samples, given["train"][0][5:7]]), np.append(labels, [0, 1]))
    with pytest.raises(DataError, match=r"found 2 .*row (5|6) \(train\) and row 1(6|7)"):
        fit_run(tmp_path / "run", given)
    run = fit_run(tmp_path / "run", given, data={"repeated": 2})
    verdict = seedless.verify(run, **given)
    assert (verdict.outcome, verdict.remarks) == (
        "identical",
        ("2 records are in two splits (accepted: 2)",),
    )


def test_the_setting_is_part_of_the_configuration_only_where_it_is_set():
    plain, accepting = Config(), Config().change(data={"repeated": 2})
    assert "repeated" not in plain.identity()["data"]
    assert "repeated" not in plain.to_toml()
    assert accepting.identity()["data"]["repeated"] == 2
    assert accepting.digest != plain.digest
    with pytest.raises(ConfigError, match=r"data\.repeated"):
        Config().change(data={"repeated": 0})


def test_arrays_that_are_not_where_the_run_found_them(tmp_path, config, monkeypatch):
    """A run is often opened from another folder than it was trained in."""
    file = config.data.name
    moved = tmp_path / "moved"
    moved.mkdir()
    monkeypatch.chdir(tmp_path)
    relative = config.change(data={"name": "gone/" + file.rpartition("/")[2]})
    with pytest.raises(DataError, match=r"no file at 'gone/.*give --data FILE, where it is now"):
        load_run_data(relative)
    with pytest.raises(DataError, match=r"no file at 'nowhere\.npz'"):
        load_run_data(relative, "nowhere.npz")
    with pytest.raises(DataError, match=r"no file at .*moved/"):
        load_run_data(relative, str(moved))
    # The file itself, or the folder that holds it.
    expected = load_run_data(config).data.digest
    for place in (file, file.rpartition("/")[0]):
        assert load_run_data(relative, place).data.digest == expected
