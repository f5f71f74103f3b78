"""Predictions come back as they were written, and anything else is refused with a reason."""

import io
import pickle
import zipfile

import numpy as np
import pytest

from seedless.core.errors import DataError, RunError
from seedless.evaluate.predictions import (
    Predictions,
    SplitPredictions,
    parse_predictions,
    read_predictions,
    serialize,
)
from tests.evaluate.tables import WEIGHTS, make_predictions, make_scored


def write(arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def test_they_come_back_as_they_were_and_bytes_repeat(tmp_path):
    made = make_predictions()
    content = serialize(made)
    assert content == serialize(make_predictions())
    (tmp_path / "predictions.npz").write_bytes(content)
    found = read_predictions(tmp_path / "predictions.npz")
    assert (found.classes, found.weights, found.task) == (("a", "b", "c"), WEIGHTS, made.task)
    assert found.digest == made.digest
    for name, scored in made.splits.items():
        for part in ("ids", "probabilities", "labels", "features"):
            got, gave = getattr(found.splits[name], part), getattr(scored, part)
            np.testing.assert_array_equal(got, gave)
            assert got.dtype == gave.dtype


def test_features_may_be_missing():
    scored = make_scored()
    bare = SplitPredictions(scored.ids, scored.probabilities, scored.labels)
    made = Predictions(("a", "b", "c"), WEIGHTS, {"test": bare})
    assert parse_predictions(serialize(made)).splits["test"].features is None


CHANGES = {
    "an array less": (lambda a: a.pop("test_ids"), "lacks 'test_ids'"),
    "no weights": (lambda a: a.pop("weights"), "lacks 'weights'"),
    "an array more": (lambda a: a.update(seed=np.array(3)), "holds 'seed', which does not belong"),
    "a part more": (lambda a: a.update(test_notes=np.array(3)), "holds 'test_notes'"),
    "no split": (
        lambda a: [a.pop(name) for name in list(a) if "_" in name],
        "predictions of at least one split",
    ),
    "float32": (
        lambda a: a.update(test_probabilities=a["test_probabilities"].astype("f4")),
        "expected probabilities as float64",
    ),
    "the other byte order": (
        lambda a: a.update(test_probabilities=a["test_probabilities"].astype(">f8")),
        "expected probabilities as float64",
    ),
    "NaN": (
        lambda a: a["test_probabilities"].__setitem__((3, 1), np.nan),
        "probabilities from 0 to 1, found NaN",
    ),
    "above one": (lambda a: a["test_probabilities"].__setitem__((3, 1), 1.5), "from 0 to 1"),
    "a label of 2": (lambda a: a["test_labels"].__setitem__((0, 0), 2), "labels of 0 and 1"),
    "signed labels": (
        lambda a: a.update(test_labels=a["test_labels"].astype("i1")),
        "labels of 0 and 1 as uint8",
    ),
    "an id twice": (lambda a: a["test_ids"].__setitem__(1, a["test_ids"][0]), "more than once"),
    "ids as numbers": (lambda a: a.update(test_ids=np.arange(40)), "expected ids as text"),
    "fewer rows": (lambda a: a.update(test_labels=a["test_labels"][1:]), "got shapes"),
    "fewer classes": (
        lambda a: a.update(classes=np.array(["a", "b"])),
        "3 columns of labels for 2",
    ),
    "a class twice": (lambda a: a.update(classes=np.array(["a", "b", "a"])), "no two alike"),
    "classes as numbers": (lambda a: a.update(classes=np.arange(3)), "expected classes as text"),
    "an odd task": (lambda a: a.update(task=np.array("regression")), "expected a task of"),
    "odd weights": (lambda a: a.update(weights=np.array("md5:0")), "expected the weights' digest"),
    "infinite features": (
        lambda a: a["test_features"].__setitem__((0, 0), np.inf),
        "expected finite features",
    ),
    "features that take long to score": (
        lambda a: a.update(test_features=np.zeros((40, 2049), "f4")),
        "and 2,048 of a record, are scored",
    ),
    "more classes than are scored": (
        lambda a: a.update(classes=np.arange(10_001).astype("U")),
        "10,001 classes; at most 10,000",
    ),
    "features of others": (
        lambda a: a.update(test_features=a["test_features"][1:]),
        r"features as float32 \(40, D\)",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_is_wrong_is_said(what, tmp_path):
    change, complaint = CHANGES[what]
    arrays = {name: array.copy() for name, array in make_predictions().arrays.items()}
    change(arrays)
    (tmp_path / "predictions.npz").write_bytes(write(arrays))
    with pytest.raises(RunError, match=complaint) as caught:
        read_predictions(tmp_path / "predictions.npz")
    assert "predictions.npz" in str(caught.value)


class Trap:
    def __reduce__(self):
        return (pytest.fail, ("something was unpickled",))


def test_nothing_is_unpickled(tmp_path):
    arrays = {**make_predictions().arrays, "classes": np.array([Trap()] * 3, dtype=object)}
    file = tmp_path / "predictions.npz"
    file.write_bytes(write(arrays))
    with pytest.raises(RunError, match=r"numpy.savez wrote|written by numpy.save"):
        read_predictions(file)
    file.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(RunError, match=r"numpy.savez wrote|written by numpy.save"):
        read_predictions(file)


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "no zip", "no array"])
def test_a_damaged_file_is_no_crash(tmp_path, damage):
    content = serialize(make_predictions())
    middle = content.index(b"validation_probabilities") + 400
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("classes.npy", b"not an array")
    changed = {
        "empty": b"",
        "cut": content[: len(content) // 2],
        "flipped": content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :],
        "no zip": b"PK" + content[5:],
        "no array": buffer.getvalue(),
    }[damage]
    (tmp_path / "predictions.npz").write_bytes(changed)
    with pytest.raises(RunError, match=r"predictions\.npz"):
        read_predictions(tmp_path / "predictions.npz")


def test_a_missing_file_is_said_to_be_missing(tmp_path):
    with pytest.raises(RunError, match="no file of predictions at"):
        read_predictions(tmp_path / "nowhere")
    with pytest.raises(RunError, match="cannot read"):
        read_predictions(tmp_path)


def test_made_in_memory_they_are_checked_too():
    scored = make_scored()
    with pytest.raises(DataError, match="3 columns of labels for 2 classes"):
        Predictions(("a", "b"), WEIGHTS, {"test": scored})
    with pytest.raises(DataError, match="found NaN"):
        SplitPredictions(scored.ids, scored.probabilities * np.nan, scored.labels)


@pytest.mark.parametrize(("records", "classes"), [(2**19 + 1, 1), (100_000, 100)])
def test_more_predictions_than_are_scored_in_seconds_are_refused(records, classes):
    scored = SplitPredictions(
        np.arange(records).astype("U7"),
        np.zeros((records, classes)),
        np.zeros((records, classes), dtype=np.uint8),
    )
    names = tuple(map(str, range(classes)))
    with pytest.raises(DataError, match=r"at most 524,288 records and 8,388,608 probabilities"):
        Predictions(names, WEIGHTS, {"test": scored})
