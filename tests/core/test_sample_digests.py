"""Digests of any dataset's samples: of the content alone, with a cache that is checked."""

import random
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset, IterableDataset, Subset, TensorDataset

from seedless.core import sample_digests
from seedless.core.errors import DataError
from seedless.core.sample_digests import digest_dataset, digest_keys, digest_sample

X = torch.arange(200 * 6, dtype=torch.float32).view(200, 6)
Y = torch.arange(200) % 3


def read(dataset, **options):
    return digest_dataset(dataset, shown=False, **options)


def test_the_place_of_a_sample_does_not_matter():
    order = torch.arange(200).flip(0)
    whole = read(TensorDataset(X, Y))
    assert np.array_equal(read(TensorDataset(X[order], Y[order])), whole[::-1])
    assert np.array_equal(read(Subset(TensorDataset(X, Y), [5, 7])), whole[[5, 7]])
    assert len(np.unique(whole, axis=0)) == 200


def test_workers_change_nothing():
    dataset = TensorDataset(X, Y)
    assert np.array_equal(read(dataset, workers=2), read(dataset))


def test_the_pass_moves_no_global_generator():
    before = torch.get_rng_state()
    read(TensorDataset(X, Y))
    assert torch.equal(torch.get_rng_state(), before)


@dataclass
class Case:
    name: str
    values: np.ndarray


UNLIKE = [
    None,
    0,
    False,
    0.0,
    -0.0,
    "0",
    b"0",
    [],
    {},
    [0],
    [[0]],
    [0, 0],
    {"a": 0},
    {"b": 0},
    {0: "a"},
    np.zeros(2),
    np.zeros(2, dtype=np.float32),
    np.zeros((1, 2)),
    np.zeros((2, 1)),
    torch.zeros(2, dtype=torch.int64),
    [1, [2, 3]],
    [[1, 2], 3],
    ["ab", "c"],
    ["a", "bc"],
    Case("a", np.zeros(2)),
]


def test_unlike_samples_have_unlike_digests():
    assert len({digest_sample(value) for value in UNLIKE}) == len(UNLIKE)


def test_like_samples_have_like_digests():
    digest = digest_sample({"x": np.ones((2, 3)), "y": (1, "a")})
    assert digest_sample({"y": [1, "a"], "x": torch.ones(2, 3, dtype=torch.float64)}) == digest
    assert digest_sample({"y": [1, "a"], "x": np.ones((3, 2)).T}) == digest
    assert digest_sample({"y": [1, "a"], "x": np.ones((2, 3), dtype=">f8")}) == digest
    assert digest_sample(torch.ones(3, dtype=torch.bfloat16)) == digest_sample(torch.ones(3))


def test_the_encoding_stays_as_it_is():
    """Orders and masks of recorded runs depend on it."""
    sample = {"image": np.arange(6, dtype=np.float32).reshape(2, 3), "label": 3, "id": "a"}
    assert digest_sample(sample).hex()[:16] == "15a0b9c26d0389b4"


class Random(Dataset):
    """A dataset that augments with a global generator."""

    def __len__(self):
        return 50

    def __getitem__(self, index):
        return X[index] if random.random() < 0.5 else X[index].flip(0)


def test_a_dataset_that_draws_is_refused():
    with pytest.raises(DataError, match=r"when it was read again.*seedless\.augment.*key="):
        read(Random())


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(3))


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        (Stream(), "len.dataset. and dataset.index.*Stream.*files first"),
        ([], "expected a dataset with samples, got an empty list"),
        ([{"a": [1, {2, 3}]}], r"sample\['a'\]\[1\] is of type set.*key="),
        ([np.array([None])], "sample is of type object"),
    ],
)
def test_what_has_no_digest_is_refused(dataset, message):
    with pytest.raises(DataError, match=message):
        read(dataset)


class Counted(Dataset):
    """Says how many samples were read."""

    def __init__(self, values):
        self.values, self.reads = values, 0

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        self.reads += 1
        return self.values[index]


def test_the_cache_saves_the_pass(tmp_path):
    first, second = Counted(X), Counted(X)
    made = read(first, cache=tmp_path / "new" / "keys.npy")
    assert np.array_equal(read(second, cache=tmp_path / "new" / "keys.npy"), made)
    assert first.reads == 200 + sample_digests.READ_TWICE
    assert second.reads == sample_digests.READ_TWICE


def damage(content):
    return content[:-40] + bytes([content[-40] ^ 1]) + content[-39:]


@pytest.mark.parametrize(
    "change", [damage, lambda content: content[:-32], lambda _: b"nothing of the kind"]
)
def test_a_damaged_cache_is_made_again(change, tmp_path):
    file = tmp_path / "keys.npy"
    made = read(TensorDataset(X), cache=file)
    content = file.read_bytes()
    file.write_bytes(change(content))
    assert np.array_equal(read(TensorDataset(X), cache=file), made)
    assert file.read_bytes() == content


@pytest.mark.parametrize("other", [X + 1, X[:100]])
def test_the_cache_of_another_dataset_is_made_again(other, tmp_path):
    read(TensorDataset(X), cache=tmp_path / "keys.npy")
    found = read(TensorDataset(other), cache=tmp_path / "keys.npy")
    assert np.array_equal(found, read(TensorDataset(other)))


def test_own_keys_are_digests_of_names():
    names = ["b", "a", "b"]
    made = digest_keys(3, names.__getitem__)
    assert np.array_equal(made[0], made[2])
    assert not np.array_equal(made[0], made[1])
    assert len(np.unique(digest_keys(4, lambda i: ("p", i)), axis=0)) == 4


@pytest.mark.parametrize("value", [1.5, None, (), ("a", [])])
def test_other_keys_are_refused(value):
    with pytest.raises(DataError, match=r"expected key\(0\) to return text"):
        digest_keys(1, lambda index: value)


def test_workers_are_a_number():
    with pytest.raises(DataError, match="workers"):
        read(TensorDataset(X), workers=-1)
