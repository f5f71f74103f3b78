"""Who is simulated: PTB-XL's label sets and patients exactly, and presets with every class."""

import numpy as np
import pytest

from seedless.core.dataset import TEN_FOLDS
from seedless.core.errors import UnknownNameError
from seedless.data.simulators.population import (
    CLASSES,
    LABEL_SETS,
    PATIENT_SIZES,
    PRESETS,
    describe_records,
    preset_records,
)

FULL = np.arange(21_799)
# PTB-XL 1.0.3: train (folds 1-8), validation (9) and test (10).
PTB_XL = {
    "SR": (13404, 1670, 1674),
    "AFIB": (1211, 151, 152),
    "STACH": (661, 83, 82),
    "SARRH": (618, 77, 77),
    "SBRAD": (509, 64, 64),
    "PACE": (237, 29, 28),
    "SVARR": (128, 15, 14),
    "BIGU": (66, 8, 8),
    "AFLT": (59, 7, 7),
    "SVTAC": (21, 3, 3),
    "PSVT": (19, 3, 2),
    "TRIGU": (16, 2, 2),
}


def count_by_split(records):
    people = describe_records(records)
    return np.stack(
        [people.labels[np.isin(people.folds, folds)].sum(axis=0) for folds in TEN_FOLDS.values()]
    )


def test_classes_are_as_frequent_as_in_ptb_xl():
    counts = count_by_split(FULL)
    published = np.array([PTB_XL[name] for name in CLASSES]).T
    np.testing.assert_array_equal(counts.sum(axis=0), published.sum(axis=0))
    assert np.abs(counts - published).max() <= 4
    people = describe_records(FULL)
    assert (people.labels.sum(axis=1) == 0).sum() == 769
    assert np.ptp(np.bincount(people.folds)[1:]) <= 1


def test_label_sets_are_those_of_the_published_table(real_data):
    import ast

    import pandas as pd

    path = real_data / "ptb-xl" / "ptbxl_database.rebuilt_rhythm_form.csv"
    codes = pd.read_csv(path, usecols=["scp_codes", "patient_id"])
    found = [
        " ".join(name for name in CLASSES if name in ast.literal_eval(text))
        for text in codes.scp_codes
    ]
    assert pd.Series(found).value_counts().to_dict() == LABEL_SETS
    sizes = codes.patient_id.value_counts().value_counts().to_dict()
    assert sizes == PATIENT_SIZES


def test_patients_stay_in_one_fold_and_have_one_sex_and_age():
    people = describe_records(np.arange(50_000))
    for value in (people.folds, people.female, people.age):
        pairs = np.unique(np.stack([people.patients, value.astype(np.int64)]), axis=1)
        assert len(np.unique(people.patients)) == pairs.shape[1]
    sizes = np.bincount(np.bincount(describe_records(FULL).patients))
    assert {size: count for size, count in enumerate(sizes.tolist()) if count} == PATIENT_SIZES


def test_later_rounds_repeat_the_labels_with_other_patients():
    first, second = describe_records(FULL), describe_records(FULL + len(FULL))
    np.testing.assert_array_equal(first.labels, second.labels)
    np.testing.assert_array_equal(first.folds, second.folds)
    assert first.patients.max() < second.patients.min()


def test_sexes_and_ages_are_plausible():
    people = describe_records(FULL)
    assert people.female.mean() == pytest.approx(0.48, abs=0.01)
    assert people.age.min() >= 18
    assert people.age.max() <= 95
    assert people.age.mean() == pytest.approx(64, abs=1)


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_hold_every_class_in_every_fold(preset):
    records = preset_records(preset)
    assert len(records) == PRESETS[preset] == len(np.unique(records))
    people = describe_records(records)
    for fold in range(1, 11):
        assert people.labels[people.folds == fold].any(axis=0).all()


def test_the_small_preset_has_enough_of_the_rarest():
    train, val, test = count_by_split(preset_records("small"))
    assert train.min() >= 30
    assert val.min() >= 4
    assert test.min() >= 4
    assert train[0] == train.max()


def test_describing_depends_on_the_number_alone():
    whole, one = describe_records(FULL), describe_records(np.array([12_345]))
    for name in ("labels", "folds", "patients", "female", "age"):
        np.testing.assert_array_equal(getattr(one, name)[0], getattr(whole, name)[12_345])


def test_an_unknown_preset_is_refused():
    with pytest.raises(UnknownNameError, match="known: full, small, tiny"):
        preset_records("smal")
