"""Batches of a user's dataset, read by worker processes, always in the order of the schedule.

A batch is a pure function of the dataset, its row numbers, the epoch and the collate function. How
many processes read, and how far ahead, changes the time alone. The content of every sample is
hashed as it is read, and compared with the digest that the run began with.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import DataLoader, default_collate

from seedless.core.errors import DataError, SeedlessError
from seedless.core.sample_digests import DIGEST_BYTES, digest_sample
from seedless.core.sample_index import SampleIndex
from seedless.numerics.generator_guard import GeneratorGuard

Rows = NDArray[np.int64]
Collate = Callable[[list[Any]], Any]


@dataclass(frozen=True)
class _Request:
    """The rows of a batch, the epoch, and of each sample its key and its digest if it is known."""

    rows: Rows
    epoch: int
    keys: NDArray[np.int64]
    known: NDArray[np.bool_]
    content: NDArray[np.uint8]


@dataclass(frozen=True)
class _Answer:
    """A batch as collated, with the digests (B, 32) of its samples; or what went wrong."""

    batch: Any = None
    digests: NDArray[np.uint8] | None = None
    error: str = ""


class BatchReader:
    """Reads batches of one split, and compares each sample with its digest.

    Args:
        dataset: anything with ``len(dataset)`` and ``dataset[index]``.
        keys: (n,) int64, which `seedless.augment` draws by.
        content: (n, 32) the digest of each sample; None where they are not known before they are
            read: then the first reading decides, and later ones must agree with it.
        collate: makes a batch, the pair (inputs, targets), from a list of samples.
        workers: processes that read; 0 reads in this process.
        split: "train", "val" or "test", for messages.
    """

    def __init__(
        self,
        dataset: Any,
        *,
        keys: NDArray[np.int64],
        content: NDArray[np.uint8] | None,
        collate: Collate | None = None,
        workers: int = 0,
        split: str = "train",
    ) -> None:
        self.dataset, self.keys, self.split = dataset, keys, split
        self.workers = workers
        self._collate = collate or default_collate
        self._known = np.full(len(keys), content is not None)
        unknown = np.zeros((len(keys), DIGEST_BYTES), dtype=np.uint8)
        self._content = unknown if content is None else content
        self._expected: list[_Request] = []
        self._answers: Iterator[_Answer] = iter(())

    def __len__(self) -> int:
        return len(self.keys)

    def expect(self, batches: Sequence[Rows], epoch: int) -> None:
        """Let the workers read these batches ahead, in this order."""
        self._expected = [self._request(rows, epoch) for rows in batches] if self.workers else []
        if not self._expected:
            return
        # No `batch_size`: each item of the requests is a whole batch. The loader returns them in
        # the order of the requests, whichever worker is first. mypy wants a Dataset where torch is
        # content with `__getitem__`.
        loader: DataLoader[_Answer] = DataLoader(
            _Requests(self.dataset, self._collate, self._expected),  # type: ignore[arg-type]
            batch_size=None,
            num_workers=self.workers,
            collate_fn=_keep,
            generator=torch.Generator(),  # or the loader would draw a seed from the global one
        )
        self._answers = iter(loader)

    def read(self, rows: Rows, epoch: int) -> tuple[Any, Any]:
        """Return the batch of some rows, (inputs, targets), on the CPU."""
        request = self._request(rows, epoch)
        if self._expected and _is_same(self._expected[0], request):
            self._expected.pop(0)
            answer = next(self._answers)
        else:
            answer = _answer(self.dataset, self._collate, request)
        self._check_content(rows, answer)
        return check_pair(answer.batch, self.split)

    def digest_content(self) -> NDArray[np.uint8]:
        """Return the digest of each sample (n, 32); those that were not read yet are read now."""
        for rows in np.flatnonzero(~self._known)[:, None]:
            self._check_content(rows, _answer(self.dataset, _keep, self._request(rows, 0)))
        return self._content

    def _request(self, rows: Rows, epoch: int) -> _Request:
        return _Request(rows, epoch, self.keys[rows], self._known[rows], self._content[rows])

    def _check_content(self, rows: Rows, answer: _Answer) -> None:
        """Compare the digests of a batch with those that are known; remember the others."""
        if answer.error:
            raise DataError(f"{self.split}: {answer.error}")
        assert answer.digests is not None
        found, known = answer.digests, self._known[rows]
        changed = known & (found != self._content[rows]).any(axis=1)
        if changed.any():
            raise DataError(
                f"{self.split}: sample {rows[changed][0]} is not what it was when it was read "
                f"before ({changed.sum()} of {len(rows)} samples of this batch are not). A dataset "
                "must return the same sample for the same index: draw augmentation inside `with "
                "seedless.augment(index):`; if the file was changed, start again"
            )
        self._content[rows[~known]] = found[~known]
        self._known[rows] = True


@dataclass(frozen=True)
class _Requests:
    """The batches that workers read: item i is the batch of request i."""

    dataset: Any
    collate: Collate
    requests: Sequence[_Request]

    def __len__(self) -> int:
        return len(self.requests)

    def __getitem__(self, place: int) -> _Answer:
        return _answer(self.dataset, self.collate, self.requests[place])


def _answer(dataset: Any, collate: Collate, request: _Request) -> _Answer:
    """Read, hash and collate the samples of a request; an error is part of the answer.

    An error that a worker raised would reach the user with a trace of torch's own code.
    """
    guard = GeneratorGuard()
    try:
        with _one_thread():
            keys = zip(request.rows.tolist(), request.keys.tolist(), strict=True)
            indices = [SampleIndex(row, key=key, epoch=request.epoch) for row, key in keys]
            samples = [_read_sample(dataset, index) for index in indices]
            digests = _digest(samples)
            # The known digests are those of key 0 and epoch 0. A sample that `seedless.augment`
            # changed in this epoch is read once more like that.
            same = request.known & (digests == request.content).all(axis=1)
            for place in np.flatnonzero(~same):
                plain = _read_sample(dataset, SampleIndex(indices[place], key=0, epoch=0))
                digests[place] = _digest([plain])[0]
            batch = collate(samples)
        guard.check(f"while samples {request.rows[:3].tolist()}, ... were read and collated")
    except SeedlessError as error:
        return _Answer(error=str(error))
    except MemoryError:
        raise
    except Exception as error:  # the collate function is not ours: what it raises is the message
        return _Answer(error=f"the batch cannot be collated: {type(error).__name__}: {error}")
    return _Answer(batch, digests)


def _read_sample(dataset: Any, index: SampleIndex) -> Any:
    try:
        return dataset[index]
    except (SeedlessError, MemoryError):
        raise
    except Exception as error:  # the dataset is not ours: whatever it raises is the message
        raise DataError(
            f"sample {int(index)} cannot be read: {type(error).__name__}: {error}"
        ) from error


def _digest(samples: Sequence[Any]) -> NDArray[np.uint8]:
    digests = b"".join(map(digest_sample, samples))
    return np.frombuffer(digests, dtype=np.uint8).reshape(-1, DIGEST_BYTES).copy()


@contextmanager
def _one_thread() -> Iterator[None]:
    """Compute with one thread, as worker processes do, so that samples have the same bits there."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _is_same(one: _Request, two: _Request) -> bool:
    return one.epoch == two.epoch and np.array_equal(one.rows, two.rows)


def _keep(batch: Any) -> Any:
    return batch


def check_pair(batch: Any, split: str) -> tuple[Any, Any]:
    """Return a batch as the pair (inputs, targets); refuse another."""
    if isinstance(batch, tuple | list) and len(batch) == 2:
        return batch[0], batch[1]
    found = type(batch).__name__
    if isinstance(batch, tuple | list):
        found = f"a {found} of {len(batch)}"
    elif isinstance(batch, dict):
        found = f"a dict of {', '.join(map(repr, batch))}"
    raise DataError(
        f"{split}: expected batches as pairs (inputs, targets), got {found}. Let dataset[i] return "
        "such a pair, or give collate=, a function of a list of samples that returns (inputs, "
        "targets); inputs may be a tuple or a dict of the model's arguments"
    )
