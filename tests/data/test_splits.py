"""Records that are in two splits: counted by content, in the catalog as in the published files."""

from dataclasses import replace

import numpy as np
import pytest

from seedless.core.config import DataConfig
from seedless.core.errors import DataError
from seedless.data.catalog import CATALOG
from seedless.data.loading import load
from seedless.data.readers.medmnist import read_medmnist
from seedless.data.readers.registry import READERS
from seedless.data.splits import (
    count_accepted,
    count_repeated,
    describe_dataset,
    group_contents,
    name_repeated,
    refuse_repeated,
)
from tests.core.test_dataset import make


def count(data):
    return count_repeated(group_contents(data))


def double(data, rows, place):
    """Return the dataset with the sample of one row written over those of other rows."""
    samples = data.X.copy()
    samples[rows] = samples[place]
    return replace(data, X=samples)


def test_equal_samples_in_two_splits_are_counted_by_pair():
    data = make()
    assert count(data) == {"train/val": 0, "train/test": 0, "val/test": 0}
    # Rows 8 and 18 are validation, 9 and 19 test, the others training.
    assert count(double(data, [9, 19], 0)) == {"train/val": 0, "train/test": 2, "val/test": 0}
    assert count(double(data, [19], 8)) == {"train/val": 0, "train/test": 0, "val/test": 1}
    assert count(double(data, [1, 2], 0)) == count(data)  # within one split


def test_labels_and_ids_do_not_hide_a_copy_but_one_value_does():
    data = double(make(), [19], 0)
    assert data.Y[19].tolist() != data.Y[0].tolist()
    assert sum(count(data).values()) == 1
    samples = data.X.copy()
    samples[19, 0, 0] = np.nextafter(samples[19, 0, 0], np.float32(9))
    assert sum(count(replace(data, X=samples)).values()) == 0  # the page says so


def test_a_zero_has_no_sign():
    data = make()
    samples = data.X.copy()
    samples[0], samples[9] = 0.0, -0.0
    assert sum(count(replace(data, X=samples)).values()) == 1


def test_both_names_of_a_record_are_given():
    data = double(make(), [9], 0)
    names = {split: data.ids[data.rows(split)].tolist() for split in data.protocol}
    assert name_repeated(group_contents(data), names) == "r0 (train) and r9 (test)"
    assert name_repeated(group_contents(make()), names) == ""


def test_more_than_are_accepted_are_refused_with_advice():
    data = double(make(), [9, 19], 0)
    facts, own = describe_dataset(data), DataConfig(name="ours.npz")
    with pytest.raises(DataError, match=r"found 2 \(train/test 2\).*accept .* data\.repeated=2"):
        refuse_repeated(facts, own, "r0 and r9")
    with pytest.raises(DataError, match="expected at most 1, found 2"):
        refuse_repeated(facts, own.model_copy(update={"repeated": 1}), "r0 and r9")
    refuse_repeated(facts, own.model_copy(update={"repeated": 2}), "r0 and r9")


def test_the_catalog_decides_where_it_has_a_count():
    facts = describe_dataset(double(make(), [9, 19], 0))
    with pytest.raises(DataError, match="not the published file"):
        refuse_repeated(facts, DataConfig(name="breastmnist"), "")
    with pytest.raises(DataError, match=r"the catalog knows .* leave data\.repeated out"):
        refuse_repeated(facts, DataConfig(name="breastmnist", repeated=2), "")
    assert count_accepted(DataConfig(name="breastmnist", repeated=2)) == 1
    assert count_accepted(DataConfig(name="chestmnist", repeated=2)) == 2  # not counted yet


def test_the_published_breast_set_has_the_one_that_is_catalogued(real_data):
    data = read_medmnist(real_data / "medmnist" / "breastmnist.npz")
    assert count(data) == {"train/val": 0, "train/test": 1, "val/test": 0}
    assert CATALOG["breastmnist"].repeated == 1


@pytest.mark.parametrize(
    "settings",
    [
        {"name": "simulated", "preset": "tiny"},
        {"name": "simulated-images", "records": 600},
        {"name": "simulated-images", "records": 600, "channels": 1, "size": 28, "classes": 2},
        {"name": "simulated-images", "records": 600, "task": "multi-label"},
    ],
)
def test_simulated_data_have_none(settings):
    assert set(count(load(DataConfig(**settings))).values()) == {0}
    assert CATALOG[settings["name"]].repeated == 0


def test_a_dataset_with_one_split_has_none():
    single = {name for name in CATALOG if name in READERS and len(READERS[name].protocol) == 1}
    assert single >= {"afdb", "cpsc2018", "chapman"}
    assert {CATALOG[name].repeated for name in single} == {0}


def test_real_records_have_none(real_data):
    found = count(load(DataConfig(name=str(real_data / "ptb-xl-derived100.npz"))))
    assert set(found.values()) == {0}
