"""What a receipt of schema 2 states of its data contradicts neither itself nor the settings."""

import pytest

import seedless
from seedless.core.config import parse_config
from seedless.data.splits import digest_facts
from seedless.runs.train import train_run
from tests.forgery import forge, read_entries
from tests.runs.test_run_data import SMALL, write_arrays
from tests.tiny import copy_run, flags_restored


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    config = parse_config({**SMALL, "data": {"name": str(write_arrays(folder / "ours.npz"))}})
    with flags_restored():
        return train_run(config, folder / "run").path


FORGED = {
    "another protocol": ({"protocol": {"train": [1], "val": [2], "test": [3, 4]}}, "folds of the"),
    "a fold twice": ({"protocol": {"train": [1, 2], "test": [2]}}, "got fold 2 in test and in tr"),
    "an unknown split": ({"protocol": {"all": [1]}}, "got 'all'"),
    "no protocol": ({"protocol": None}, "does not have the form"),
    "an unknown role": ({"splits": {"train": "a", "other": "b"}}, "for each split"),
    "no training split": ({"splits": {}, "records": {}, "repeated": {}}, "for each split"),
    "no count": ({"repeated": {}}, "does not count"),
    "a count of another type": (
        {"repeated": {"train/val": 0, "train/test": True, "val/test": 0}},
        "does not count",
    ),
    "a count below 0": (
        {"repeated": {"train/val": 3, "train/test": -3, "val/test": 0}},
        "does not count",
    ),
}


@pytest.mark.parametrize("case", FORGED)
def test_splits_that_contradict_themselves_are_invalid(trained, tmp_path, case):
    changes, message = FORGED[case]
    run = copy_run(trained, tmp_path / "run")
    entries = read_entries(run)
    entries[0]["data"].update(changes)
    entries[0]["data"]["digest"] = digest_facts(entries[0]["data"])
    forge(run, entries)
    verdict = seedless.verify(run, validate_only=True)
    assert verdict.outcome == "invalid"
    assert message in " ".join(verdict.details)


def test_a_digest_that_is_not_of_the_splits_is_invalid(trained, tmp_path):
    run = copy_run(trained, tmp_path / "run")
    entries = read_entries(run)
    entries[0]["data"]["splits"]["test"] = f"sha256:{64 * '0'}"
    forge(run, entries)
    details = seedless.verify(run, validate_only=True).details
    assert details == ("the digest of the data is not that of their content and splits",)


def test_scores_of_other_records_than_the_data_have_are_invalid(trained, tmp_path):
    run = copy_run(trained, tmp_path / "run")
    entries = read_entries(run)
    entries[0]["data"]["records"]["test"] = 3
    forge(run, entries)
    details = seedless.verify(run, validate_only=True).details
    assert details == ("the test scores are of 4 records, the data have 3",)
