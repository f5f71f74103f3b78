"""Batches of a dataset: the same from any number of workers, and checked as they are read."""

import numpy as np
import pytest
import torch

from seedless.core.digests import keys_from_digests
from seedless.core.errors import DataError
from seedless.core.sample_digests import digest_dataset
from seedless.data.batch_reader import BatchReader, check_pair

BATCHES = [np.array([5, 2, 9]), np.array([0, 1]), np.array([7])]


class Squares:
    """Sample i is (i, i * i), each in an array."""

    def __init__(self, count=10):
        self.values = np.arange(count, dtype=np.float32)

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        return self.values[index : index + 1], self.values[index] ** 2


def make_reader(dataset, *, known=True, **options):
    digests = digest_dataset(dataset, shown=False)
    content = digests if known else None
    return BatchReader(dataset, keys=keys_from_digests(digests), content=content, **options)


@pytest.mark.filterwarnings("ignore:This DataLoader will create")  # more workers than cores
@pytest.mark.parametrize("workers", [0, 2, 4])
def test_batches_come_in_the_order_of_the_schedule(workers):
    before = torch.get_rng_state()
    reader = make_reader(Squares(), workers=workers)
    for epoch in range(2):
        reader.expect(BATCHES, epoch)
        for rows in BATCHES:
            inputs, targets = reader.read(rows, epoch)
            torch.testing.assert_close(inputs[:, 0], torch.from_numpy(rows).float())
            torch.testing.assert_close(targets, torch.from_numpy(rows**2).float())
    assert torch.equal(torch.get_rng_state(), before)


def test_a_batch_that_was_not_expected_is_read_all_the_same():
    reader = make_reader(Squares(), workers=2)
    reader.expect(BATCHES, 0)
    inputs, _ = reader.read(np.array([3, 4]), 0)
    assert inputs[:, 0].tolist() == [3, 4]
    inputs, _ = reader.read(BATCHES[0], 0)
    assert inputs[:, 0].tolist() == [5, 2, 9]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("known", [True, False])
def test_a_sample_that_changed_since_it_was_read_stops_the_run(workers, known):
    dataset = Squares()
    reader = make_reader(dataset, known=known, workers=workers)
    reader.read(np.array([2, 3]), 0)
    dataset.values[3] += 1e-3
    reader.expect([np.array([1, 3])], 1)
    with pytest.raises(DataError, match=r"train: sample 3 is not what it was.*1 of 2"):
        reader.read(np.array([1, 3]), 1)


def test_where_the_content_was_not_known_the_reading_tells_it():
    reader = make_reader(Squares(), known=False)
    reader.read(np.array([4, 1]), 0)
    np.testing.assert_array_equal(reader.digest_content(), digest_dataset(Squares(), shown=False))


class Shifted(Squares):
    """Moves a sample by its key and the epoch, as `seedless.augment` does."""

    def __getitem__(self, index):
        value, target = super().__getitem__(index)
        return value + 0.5 * index.epoch * (index.key != 0), target


@pytest.mark.parametrize("known", [True, False])
def test_augmentation_by_key_and_epoch_is_no_change_of_content(known):
    reader = make_reader(Shifted(), known=known)
    for epoch, expected in ((0, 2.0), (1, 2.5), (2, 3.0)):
        inputs, _ = reader.read(np.array([2, 6]), epoch)
        assert inputs[0, 0] == expected


class Drawing(Squares):
    """Adds noise of torch's global generator, as most pipelines do."""

    def __getitem__(self, index):
        value, target = super().__getitem__(index)
        return value + torch.rand(1).numpy(), target


@pytest.mark.parametrize("workers", [0, 2])
def test_negative_control_augmentation_by_a_generator_is_refused(workers):
    digests = digest_dataset(Squares(), shown=False)
    keys = keys_from_digests(digests)
    reader = BatchReader(Drawing(), keys=keys, content=digests, workers=workers)
    reader.expect(BATCHES, 0)
    with pytest.raises(DataError, match="torch's CPU generator moved while samples"):
        reader.read(BATCHES[0], 0)


class Broken(Squares):
    def __getitem__(self, index):
        if index == 9:
            raise OSError("the disk is gone")
        return super().__getitem__(index)


@pytest.mark.parametrize("workers", [0, 2])
def test_errors_of_the_users_code_name_the_sample_and_have_one_line(workers):
    digests = digest_dataset(Squares(), shown=False)
    keys = keys_from_digests(digests)
    reader = BatchReader(Broken(), keys=keys, content=digests, workers=workers, split="val")
    reader.expect(BATCHES, 0)
    with pytest.raises(
        DataError, match=r"^val: sample 9 cannot be read: OSError: the disk is gone$"
    ):
        reader.read(BATCHES[0], 0)
    failing = BatchReader(Squares(), keys=keys, content=digests, collate=lambda samples: 1 / 0)
    with pytest.raises(DataError, match="cannot be collated: ZeroDivisionError"):
        failing.read(BATCHES[0], 0)


def test_samples_are_computed_with_one_thread_wherever_they_are_read():
    """A worker has one thread, and sums of several threads may round in another way."""
    counted = []

    class Watching(Squares):
        def __getitem__(self, index):
            counted.append(torch.get_num_threads())
            return super().__getitem__(index)

    threads = torch.get_num_threads()
    make_reader(Watching()).read(np.array([0]), 0)
    assert counted[-1] == 1
    assert torch.get_num_threads() == threads


def test_a_batch_is_a_pair():
    assert check_pair([1, 2], "train") == (1, 2)
    with pytest.raises(DataError, match="got a tuple of 3"):
        check_pair((1, 2, 3), "train")
