"""The one record: it refuses to contradict itself, and its digest does not see storage order."""

from dataclasses import replace

import numpy as np
import pytest

from seedless.core.dataset import TEN_FOLDS, THREE_SPLITS, Dataset
from seedless.core.errors import DataError


def make(n=20, **changes):
    values = {
        "name": "toy",
        "X": np.cos(np.arange(n * 2 * 30.0)).reshape(n, 2, 30).astype(np.float32),
        "Y": np.eye(3, dtype=np.uint8)[np.arange(n) % 3],
        "classes": ("a", "b", "c"),
        "folds": np.arange(n) % 10 + 1,
        "ids": np.array([f"r{i}" for i in range(n)]),
        "protocol": TEN_FOLDS,
        "leads": ("I", "II"),
        "fs": 100.0,
        "patients": np.array([f"p{i // 2}" for i in range(n)]),
    }
    return Dataset(**{**values, **changes})


def test_splits_follow_the_protocol():
    data = make()
    assert len(data.rows("train")) == 16
    assert set(data.folds[data.rows("val")]) == {9}
    with pytest.raises(DataError, match="train, val, test; got 'dev'"):
        data.rows("dev")


@pytest.mark.parametrize(
    ("protocol", "message"),
    [
        ({"train": (*range(1, 11),), "test": (10,)}, "got fold 10 in train and in test"),
        ({"train": (1, 2), "val": (3,), "test": (3,)}, "got fold 3 in val and in test"),
        ({"train": (1, 1)}, "got fold 1 in train and in train"),
        ({"train": (1,), "held out": (2,)}, "expected splits among .*, got 'held out'"),
    ],
)
def test_splits_that_overlap_or_are_unknown_are_refused(protocol, message):
    with pytest.raises(DataError, match=message):
        make(protocol=protocol)


def test_the_digest_of_a_split_sees_its_records_and_no_others():
    data = make()
    labels = data.Y.copy()
    labels[8] = [1, 1, 0]  # fold 9, validation
    other = replace(data, Y=labels)
    changed = [s for s in data.protocol if data.digest_split(s) != other.digest_split(s)]
    assert changed == ["val"]
    shuffled = data.take(np.arange(20)[::-1])
    assert all(shuffled.digest_split(s) == data.digest_split(s) for s in data.protocol)


def test_the_digest_does_not_see_the_order_of_storage():
    data = make()
    shuffled = data.take(np.argsort(np.cos(np.arange(20) * 5.0)))
    assert shuffled.ids.tolist() != data.ids.tolist()
    assert shuffled.digest == data.digest


@pytest.mark.parametrize("field", ["X", "Y", "folds", "ids"])
def test_the_digest_sees_every_sample_label_fold_and_id(field):
    data = make()
    value = getattr(data, field).copy()
    if field == "Y":
        value[4] = [1, 1, 0]
    elif field == "ids":
        value[4] = "other"
    else:
        value[4] += 1
    assert replace(data, **{field: value}).digest != data.digest


def test_the_digest_sees_classes_rate_leads_and_task():
    data = make()
    others = [
        replace(data, classes=("a", "b", "d")),
        replace(data, fs=500.0),
        replace(data, leads=("II", "I")),
        replace(data, task="multi-class"),
    ]
    assert len({data.digest, *(other.digest for other in others)}) == 5


def test_swapping_labels_between_samples_shows():
    data = make()
    labels = data.Y.copy()
    labels[[0, 1]] = labels[[1, 0]]
    assert replace(data, Y=labels).digest != data.digest


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"Y": np.zeros((20, 2), np.uint8)}, r"Y of shape \(20, 3\), got \(20, 2\)"),
        ({"folds": np.ones(3, int)}, "folds of shape"),
        ({"patients": np.array(["p"])}, "patients of shape"),
        ({"X": np.zeros((20, 2, 30))}, "float32 or uint8"),
        ({"X": np.zeros((20, 60), np.float32)}, "expected 20 samples"),
        ({"leads": ("I", "II", "III")}, "3 lead names for 2 leads"),
        ({"Y": np.full((20, 3), 2, np.uint8)}, "labels of 0 and 1"),
        ({"ids": np.array(["r1"] * 20)}, "'r1' occurs more than once"),
        ({"task": "regression"}, "task"),
        ({"task": "multi-class", "Y": np.ones((20, 3), np.uint8)}, "exactly one class"),
    ],
)
def test_contradictions_are_refused(changes, message):
    with pytest.raises(DataError, match=message):
        make(**changes)


def test_no_records_are_refused():
    with pytest.raises(DataError, match="no records"):
        make(n=0)


def test_images_fit_too():
    data = make(
        X=np.zeros((20, 3, 28, 28), np.uint8),
        leads=None,
        fs=None,
        folds=np.arange(20) % 3 + 1,
        protocol=THREE_SPLITS,
    )
    assert len(data.rows("test")) == 6
    assert "20 samples of (3, 28, 28)" in repr(data)
