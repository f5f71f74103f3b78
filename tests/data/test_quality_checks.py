"""What `check_quality` counts and doubts, each on data made to show it."""

import json
from dataclasses import replace

import numpy as np
import pytest

from seedless.core.dataset import THREE_SPLITS
from seedless.core.errors import DataError
from seedless.data.leads import SIX, derive_limb_leads
from seedless.data.quality_checks import (
    check_finite,
    check_label_quality,
    check_quality,
    check_signal,
)
from seedless.data.readers.ptbxl import read_ptbxl
from tests.core.test_dataset import make


def alone(n=20, **changes):
    """A dataset without any doubt: every class in every split, patients in one split each."""
    labels = np.ones((n, 3), np.uint8)
    labels[0] = 0
    return make(
        n, **{"Y": labels, "patients": np.array([f"p{i % 10}" for i in range(n)]), **changes}
    )


def limb(n=20):
    wave = np.cos(np.arange(n * 2 * 30.0)).reshape(n, 2, 30).astype(np.float32)
    return np.stack([derive_limb_leads(*pair) for pair in wave])


def test_the_real_sample(real_data):
    found = check_quality(read_ptbxl(real_data / "ptb-xl-sample"))
    assert found.records == 150
    assert found.shape == (12, 1000)
    assert sum(found.folds.values()) == sum(found.splits.values()) == 150
    assert (
        "classes absent from train: 2 (PACE, TRIGU): weight 1, AUC undefined, macro averages over "
        "the 10 others" in found.warnings
    )
    assert any("Einthoven" in text for text in found.warnings)  # each lead was scaled by itself
    assert json.loads(json.dumps(found.as_dict()))["records"] == 150
    text = str(found)
    assert "ptb-xl: 150 records of 12 x 1000" in text
    assert "AFIB " in text
    assert "warning: classes absent from train" in text


def test_counts_by_fold_and_split():
    data = alone()
    found = check_quality(data)
    assert found.warnings == ()
    assert found.splits == {"train": 16, "val": 2, "test": 2}
    assert found.folds == dict.fromkeys(range(1, 11), 2)
    assert found.counts["train"] == {"a": 15, "b": 15, "c": 15}
    assert found.fold_counts[1] == {"a": 1, "b": 1, "c": 1}
    assert found.unlabelled == {"train": 1, "val": 0, "test": 0}
    assert found.as_dict()["fold_counts"]["10"] == {"a": 2, "b": 2, "c": 2}
    assert replace(check_label_quality(data), shape=found.shape, signals=found.signals) == found


def test_the_table():
    lines = str(check_quality(alone())).splitlines()
    assert lines[0] == "toy: 20 records of 2 x 30"
    assert lines[1].split() == ["class", *map(str, range(1, 11)), "train", "val", "test"]
    assert lines[2].split() == ["a", "1", *["2"] * 9, "15", "2", "2"]
    assert lines[5].split() == ["none", "of", "these", "1", "0", "0"]
    assert lines[6].split() == ["records", *["2"] * 10, "16", "2", "2"]
    assert str(check_label_quality(alone())).splitlines()[0] == "toy: 20 records, labels only"
    three = alone(folds=np.arange(20) % 3 + 1, protocol=THREE_SPLITS, patients=None)
    assert str(check_quality(three)).splitlines()[1].split() == ["class", "train", "val", "test"]


def test_a_class_absent_from_a_split():
    labels = alone().Y.copy()
    labels[:, 1] = 0
    assert check_quality(alone(Y=labels)).warnings == (
        "classes absent from train: 1 (b): weight 1, AUC undefined, macro averages over the 2 "
        "others",
        "classes absent from val: 1 (b): AUC undefined, macro averages over the 2 others",
        "classes absent from test: 1 (b): AUC undefined, macro averages over the 2 others",
    )


def test_patients_in_two_splits():
    patients = alone().patients.copy()
    patients[[8, 9]] = "p0"  # folds 9 and 10
    patients[18] = "p1"
    found = check_quality(alone(patients=patients))
    assert found.warnings == ("patients with records in two splits: 2",)


def test_empty_splits_and_stray_folds():
    found = check_quality(alone(folds=np.array([1] * 18 + [9, 11]), patients=None))
    assert "test has no records" in found.warnings
    assert "records in folds that belong to no split: 1" in found.warnings


def test_duplicates():
    samples = alone().X.copy()
    samples[[1, 2]] = samples[0]
    samples[9] = samples[10]
    found = check_quality(alone(X=samples))
    assert found.signals.duplicates == 3
    assert found.warnings == (
        "records that repeat another's content: 3 (1 content is in two splits, for example "
        "r10 (train) and r9 (test))",
    )


def test_signals_that_are_flat_or_missing():
    samples = alone().X.copy()
    samples[3, 1] = 0.25
    samples[4] = 7.0
    found = check_quality(alone(X=samples))
    assert (found.signals.flat, found.signals.highest) == (2, 7.0)
    assert found.warnings == ("records with a constant lead or channel: 2",)
    samples[5, 0, :2] = np.nan
    samples[6, 0, 0] = -np.inf
    found = check_quality(alone(X=samples))
    assert found.signals.missing == 3
    assert found.signals.duplicates is None
    assert found.signals.lowest == samples[np.isfinite(samples)].min()
    assert "records with NaN or infinity: 2" in found.warnings
    json.dumps(found.as_dict(), allow_nan=False)


def test_samples_that_are_all_missing_still_make_json():
    found = check_quality(alone(X=np.full((20, 2, 30), np.nan, np.float32)))
    json.dumps(found.as_dict(), allow_nan=False)
    assert found.signals.lowest is None


def test_einthovens_law():
    good = alone(X=limb(), leads=SIX)
    found = check_quality(good)
    assert found.signals.einthoven < 1e-6
    assert found.warnings == ()
    swapped = check_quality(alone(X=limb()[:, [0, 2, 1, 3, 4, 5]], leads=SIX))
    assert swapped.signals.einthoven > 0.1
    assert "III = II - I: 20 (leads misnamed" in swapped.warnings[0]
    assert check_quality(alone()).signals.einthoven is None  # two leads only
    broken = limb()
    broken[3, :2] = np.inf
    assert check_quality(alone(X=broken, leads=SIX)).signals.einthoven is None


def test_images():
    images = np.arange(20 * 3 * 16).reshape(20, 3, 4, 4).astype(np.uint8)
    found = check_quality(alone(X=images, leads=None, fs=None))
    assert found.shape == (3, 4, 4)
    assert (found.signals.lowest, found.signals.highest) == (0.0, 255.0)


def test_the_datasets_own_warnings_come_first():
    found = check_quality(
        alone(warnings=("channels by a map",), X=np.ones((20, 2, 30), np.float32))
    )
    assert found.warnings[0] == "channels by a map"


def test_check_signal_names_the_lead():
    signal = np.ones((2, 10), np.float32)
    check_signal(signal, ("I", "II"), "r")
    signal[1, 4:6] = np.nan
    with pytest.raises(DataError, match="r: lead II misses 2 of 10 samples, the first at 4"):
        check_signal(signal, ("I", "II"), "r")
    signal[1] = np.inf
    with pytest.raises(DataError, match="r: lead II holds no valid sample"):
        check_signal(signal, ("I", "II"), "r")


def test_check_finite_names_the_record():
    samples = np.ones((300, 2, 3), np.float32)
    names = [f"r{i}" for i in range(300)]
    check_finite(samples, names, "f")
    check_finite(samples.astype(np.uint8), names, "f")
    samples[[290, 299], 0] = np.nan
    with pytest.raises(DataError, match=r"f: record r290 holds NaN or infinity \(2 of 300"):
        check_finite(samples, names, "f")
