"""The sampler: batches by content, keys with each delivered batch, and a state that resumes."""

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

import seedless
from seedless.core.errors import DataError, OrderError
from seedless.core.sample_index import SampleIndex
from seedless.numerics.active_keys import clear_batch_keys
from seedless.ordering.loader_delivery import EpochBatches

N = 50
X = torch.sin(torch.arange(N * 4.0)).view(N, 4)


class Rows(Dataset):
    """Returns a sample with its number and noise that belongs to sample and epoch."""

    def __init__(self, order=None):
        self.rows = torch.arange(N) if order is None else order

    def __len__(self):
        return N

    def __getitem__(self, index):
        noise = seedless.augment(index).numpy_generator().random()
        return X[self.rows[index]], int(self.rows[index]), noise


def make(dataset=None, **options):
    return seedless.Sampler(
        dataset or TensorDataset(X), **{"batch_size": 8, "shown": False, **options}
    )


def read(loader):
    """What training sees of a pass: the samples, their noise, and the masks of a dropout layer."""
    model = seedless.Dropout(0.5, layer=0)
    return [(rows.tolist(), noise.tolist(), model(x).tolist()) for x, rows, noise in loader]


def read_epochs(workers=0, count=2, order=None, **options):
    dataset = Rows(order)
    loader = DataLoader(dataset, batch_sampler=make(dataset, **options), num_workers=workers)
    return [read(loader) for _ in range(count)]


@pytest.fixture(autouse=True)
def _no_keys_are_left():
    """A loader that a test leaves in the middle of an epoch has set keys for what comes after."""
    yield
    clear_batch_keys()


def test_every_epoch_has_every_sample_once_in_another_order():
    first, second = ([row for batch in epoch for row in batch[0]] for epoch in read_epochs())
    assert sorted(first) == sorted(second) == list(range(N))
    assert first != second
    assert first != sorted(first)


def test_workers_change_nothing():
    dataset = Rows()
    loader = DataLoader(
        dataset, batch_sampler=make(dataset), num_workers=2, persistent_workers=True
    )
    assert [read(loader) for _ in range(2)] == read_epochs(workers=0)


def test_the_place_of_the_samples_changes_nothing():
    assert read_epochs(order=torch.arange(N).flip(0)) == read_epochs()


def test_no_generator_decides_anything():
    torch.manual_seed(1)
    first = read_epochs()
    torch.manual_seed(2)
    assert read_epochs() == first


def test_negative_control_offset_and_keys_change_the_order():
    plain = read_epochs()
    assert read_epochs(offset=5) != plain
    assert read_epochs(key=lambda index: f"file-{index}") != plain


@pytest.mark.parametrize(("workers", "stop"), [(0, 1), (0, 4), (0, 7), (2, 4)])
def test_a_pass_resumes_after_the_batches_delivered(workers, stop):
    whole = [batch for epoch in read_epochs(count=3) for batch in epoch]
    dataset = Rows()
    sampler = make(dataset)
    loader = DataLoader(dataset, batch_sampler=sampler, num_workers=workers)
    list(loader)  # the first epoch
    for number, _ in enumerate(loader, 1):
        if number == stop:
            state = sampler.state_dict()
            break
    assert (state["epoch"], state["delivered"]) == ((1, stop) if stop < 7 else (2, 0))
    resumed = make(dataset)
    resumed.load_state_dict(state)
    again = DataLoader(dataset, batch_sampler=resumed, num_workers=workers)
    rest = [batch for _ in range(2 if stop < 7 else 1) for batch in read(again)]
    assert rest == whole[7 + stop :]


def test_a_state_before_the_first_batch_counts_nothing_read_ahead():
    dataset = Rows()
    sampler = make(dataset)
    iterator = iter(DataLoader(dataset, batch_sampler=sampler, num_workers=1, prefetch_factor=4))
    assert sampler.state_dict()["delivered"] == 0
    next(iterator)
    assert sampler.state_dict()["delivered"] == 1


def test_a_pass_that_is_left_early_ends_its_epoch():
    sampler = make()
    loader = DataLoader(TensorDataset(X), batch_sampler=sampler)
    next(iter(loader))
    assert sampler.epoch == 0
    next(iter(loader))
    assert sampler.epoch == 1


def test_epochs_may_be_set():
    epochs = read_epochs(count=3)
    dataset = Rows()
    sampler = make(dataset)
    sampler.set_epoch(2)
    assert read(DataLoader(dataset, batch_sampler=sampler)) == epochs[2]
    with pytest.raises(OrderError, match="epoch"):
        sampler.set_epoch(-1)


@pytest.mark.parametrize(("world", "size"), [(2, 4), (4, 2)])
def test_ranks_share_the_batches_of_one_process(world, size):
    alone = list(make(drop_last=True))
    ranks = [
        list(make(batch_size=size, rank=rank, world_size=world, drop_last=True))
        for rank in range(world)
    ]
    together = [[row for part in parts for row in part] for parts in zip(*ranks, strict=True)]
    assert together == alone


def test_rank_and_world_size_are_those_of_torch_distributed(monkeypatch):
    given = list(make(batch_size=4, rank=1, world_size=2))
    monkeypatch.setattr("torch.distributed.is_initialized", lambda: True)
    monkeypatch.setattr("torch.distributed.get_rank", lambda: 1)
    monkeypatch.setattr("torch.distributed.get_world_size", lambda: 2)
    assert list(make(batch_size=4)) == given


def test_ranks_share_the_last_batch_as_evenly_as_it_goes():
    last = [list(make(batch_size=6, rank=rank, world_size=2))[-1] for rank in range(2)]
    assert [len(part) for part in last] == [1, 1]


def test_all_ranks_have_one_state():
    states = []
    for rank in range(2):
        sampler = make(batch_size=4, rank=rank, world_size=2)
        next(iter(sampler))
        states.append(sampler.state_dict())
    assert states[0] == states[1]
    make().load_state_dict(states[0])  # and the same batches in one process


def test_without_a_loader_a_batch_is_delivered_when_it_is_taken():
    sampler = make()
    for rows in sampler:
        assert isinstance(rows[0], SampleIndex)
        seedless.Dropout(0.5, layer=0)(X[rows])
    assert sampler.state_dict()["epoch"] == 1
    with pytest.raises(seedless.SeedlessError, match=r"seedless\.Sampler"):
        seedless.Dropout(0.5, layer=0)(X[:8])


def test_the_last_batch():
    assert [len(batch) for batch in make()] == [8] * 6 + [2]
    dropped = make(drop_last=True)
    assert [len(batch) for batch in dropped] == [8] * 6
    assert len(dropped) == 6
    assert dropped.state_dict()["epoch"] == 1


@pytest.mark.parametrize("order", ["content", "golden_index", "sobol"])
def test_orders_that_look_at_digests(order):
    rows = [int(row) for batch in make(order=order) for row in batch]
    assert sorted(rows) == list(range(N))


def test_orders_by_class_take_labels():
    labels = np.arange(N) % 4
    batches = list(make(order="class_guaranteed", labels=labels))
    assert all({int(labels[row]) for row in batch} == {0, 1, 2, 3} for batch in batches[:5])


def test_other_loaders_are_left_alone():
    make()
    assert len(list(DataLoader(TensorDataset(X), batch_size=10))) == 5


def test_an_own_key_reads_nothing():
    class Unread(Rows):
        def __getitem__(self, index):
            raise AssertionError("read")

    assert len(make(Unread(), key=str)) == 7


def test_the_cache_is_used(tmp_path):
    file = tmp_path / "keys.npy"
    first = list(make(cache=file))
    assert file.exists()
    assert list(make(cache=file)) == first


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size"),
        ({"order": "contents"}, "content"),
        ({"order": "golden"}, "needs the values.*use one of content"),
        ({"order": "class_diverse"}, "needs the labels.*labels="),
        ({"order": "loss_ranked"}, r"needs losses.*seedless\.fit"),
        ({"order": "seeded"}, r"needs a seed.*use 'content'"),
        ({"rank": 1}, "both rank and world_size"),
        ({"rank": 2, "world_size": 2}, "rank to be an integer from 0 to 1"),
        ({"rank": 0, "world_size": 3, "batch_size": 8}, "last batch.*2 samples for 3.*drop_last"),
        ({"batch_size": 51, "drop_last": True}, "leaves nothing of 50 samples"),
    ],
)
def test_settings_that_cannot_work_are_refused(options, message):
    with pytest.raises(seedless.SeedlessError, match=message):
        make(**options)


def test_a_loader_in_place_of_its_dataset_is_refused():
    with pytest.raises(seedless.SeedlessError, match=r"got DataLoader; give its dataset"):
        seedless.Sampler(torch.utils.data.DataLoader([1, 2, 3]), 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state: {**state, "sampler": "sha256:" + "0" * 64}, "over other samples"),
        (lambda state: {**state, "delivered": 7}, "delivered to be an integer from 0 to 6"),
        (lambda state: {**state, "epoch": "1"}, "epoch to be an integer"),
        (lambda state: {"epoch": 0}, r"got \['epoch'\]"),
        (lambda state: None, "got NoneType"),
    ],
)
def test_states_that_are_not_its_own_are_refused(change, message):
    sampler = make()
    with pytest.raises(OrderError, match=message):
        sampler.load_state_dict(change(sampler.state_dict()))
    with pytest.raises(OrderError, match="over other samples"):
        sampler.load_state_dict(make(batch_size=9).state_dict())


def test_a_wrapper_between_loader_and_sampler_is_refused():
    class Wrapper:
        def __init__(self, inner):
            self.inner = inner

        def __iter__(self):
            yield from self.inner

        def __len__(self):
            return len(self.inner)

    with pytest.raises(OrderError, match=r"between the DataLoader and seedless\.Sampler"):
        next(iter(DataLoader(TensorDataset(X), batch_sampler=Wrapper(make()))))


def test_a_loader_out_of_order_is_refused():
    loader = DataLoader(TensorDataset(X), batch_sampler=make(), num_workers=1, in_order=False)
    with pytest.raises(OrderError, match="in_order=False"):
        next(iter(loader))


def test_a_loader_that_reads_ahead_is_refused():
    accelerate = pytest.importorskip("accelerate")
    sampler = make()
    loader = accelerate.data_loader.prepare_data_loader(
        DataLoader(TensorDataset(X), batch_sampler=sampler), put_on_device=False
    )
    with pytest.raises(OrderError, match="takes a batch before the one in use"):
        next(iter(loader))


def test_augmentation_inside_a_subset_is_refused():
    subset = Subset(Rows(), range(10))
    with pytest.raises(DataError, match="in a dataset around it"):
        make(subset)


def test_an_iterator_is_made_without_beginning_an_epoch():
    """Torch makes two iterators for a loader with workers, and uses one."""
    sampler = make()
    unused, used = iter(sampler), iter(sampler)
    assert isinstance(unused, EpochBatches)
    assert next(used)[0].epoch == 0
