"""Content digests of the samples of any map-style dataset, in one pass over it.

A sample is what ``dataset[i]`` returns: tensors, arrays, images, numbers and text, in tuples, lists
and dicts of any depth. Its digest is the BLAKE2b-256 of an encoding in which each value stands with
its type, dtype and shape, so that no two samples of unlike content have one encoding.

While the digests are computed, `seedless.augment` draws by key 0 and epoch 0 for every sample: a
dataset that augments its samples with it has digests that depend on the content alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seedless.core.array_files import load_npy
from seedless.core.checks import check_integer
from seedless.core.digests import canonical_json
from seedless.core.errors import DataError
from seedless.core.files import AnyPath, write_atomic
from seedless.core.progress import Progress
from seedless.core.sample_index import SampleIndex

DIGEST_BYTES = 32
READ_TWICE = 32  # records, spread over the dataset, whose content is compared with a second reading
_BLOCK = 64  # samples that are read between two reports of progress
_CACHE_FORMAT = b"seedless sample digests 1"
Digests = NDArray[np.uint8]


def digest_dataset(
    dataset: Any, *, cache: AnyPath | None = None, workers: int = 0, shown: bool = True
) -> Digests:
    """Return the 32-byte content digest of each sample of a dataset: uint8 (n, 32).

    Args:
        dataset: anything with ``len(dataset)`` and ``dataset[i]``.
        cache: a file that keeps the digests. It is checked whenever it is used: its own checksum,
            the number of samples, and the content of 32 samples spread over the dataset. Where one
            of them is wrong, the digests are computed again.
        workers: processes that read samples; they change the time and nothing else.
        shown: whether progress is shown on standard error.

    Raises DataError where a sample holds what has no content digest, and where samples have other
    content when they are read again.

    >>> digest_dataset([(0.5, 1), (0.25, 0)], shown=False).shape
    (2, 32)
    """
    count = count_samples(dataset)
    spread = np.unique(np.linspace(0, count - 1, READ_TWICE).astype(np.int64)).tolist()
    first = _read_digests(dataset, spread, 0, None)
    kept = None if cache is None else _read_cache(Path(cache), count)
    if kept is not None and np.array_equal(kept[spread], first):
        return kept
    with Progress("reading samples", count, "samples", shown=shown) as progress:
        digests = _read_digests(dataset, range(count), workers, progress)
    if changed := np.flatnonzero((digests[spread] != first).any(axis=1)).tolist():
        raise DataError(
            f"sample {spread[changed[0]]} had other content when it was read again "
            f"({len(changed)} of {len(spread)} samples that were read twice did), so that its "
            "content gives no key: draw augmentation inside `with seedless.augment(index):`, or "
            "pass key=, a function that returns a name for each index"
        )
    if cache is not None:
        _write_cache(Path(cache), digests)
    return digests


def digest_keys(count: int, key: Callable[[int], Any]) -> Digests:
    """Return the digests of what an own key function returns for 0 .. count-1: uint8 (n, 32).

    ``key(index)`` returns text, bytes, an integer or a tuple of them: a file name, a patient and a
    visit. Samples with equal keys have the same dropout masks and augmentation.

    >>> digest_keys(2, lambda index: f"patient-{index}").shape
    (2, 32)
    """
    out = np.empty((count, DIGEST_BYTES), dtype=np.uint8)
    for index in range(count):
        value = key(index)
        parts = value if isinstance(value, tuple) else (value,)
        if not parts or not all(isinstance(part, str | bytes | int) for part in parts):
            raise DataError(
                f"expected key({index}) to return text, bytes, an integer or a tuple of them, got "
                f"{type(value).__name__}"
            )
        out[index] = np.frombuffer(digest_sample(value), dtype=np.uint8)
    return out


def digest_sample(sample: Any) -> bytes:
    """Return the 32-byte content digest of one sample.

    >>> digest_sample({"image": np.zeros((2, 2)), "label": 3}).hex()[:8]
    '8f013415'
    """
    hasher = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for part in _encode(sample, ""):
        hasher.update(part)
    return hasher.digest()


def count_samples(dataset: Any) -> int:
    """Return the number of samples; refuse what cannot be read by number, or has none."""
    if not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
        advice = (
            "give its dataset, loader.dataset"
            if hasattr(dataset, "dataset")
            else "samples that arrive one after the other have no numbers to order them by: write "
            "them to files first"
        )
        raise DataError(
            "expected a dataset with len(dataset) and dataset[index], got "
            f"{type(dataset).__name__}; {advice}"
        )
    count = len(dataset)
    if count == 0:
        raise DataError(f"expected a dataset with samples, got an empty {type(dataset).__name__}")
    return count


def _encode(value: Any, where: str) -> Iterator[bytes]:
    """Yield the bytes that stand for a value; ``where`` leads to it in the sample."""
    if value is None or isinstance(value, bool | int | float | str | bytes):
        yield _head(type(value).__name__, len(data := _plain_bytes(value)))
        yield data
    elif isinstance(value, Mapping):
        yield _head("dict", len(value))
        for name in sorted(value, key=repr):
            yield from _encode(name, where)
            yield from _encode(value[name], f"{where}[{name!r}]")
    elif isinstance(value, Sequence):
        yield _head("list", len(value))
        for place, item in enumerate(value):
            yield from _encode(item, f"{where}[{place}]")
    elif is_dataclass(value):
        named = {field.name: getattr(value, field.name) for field in fields(value)}
        yield from _encode(named, where)
    else:
        array = _to_array(value, where)
        yield _head(array.dtype.name, list(array.shape))
        yield np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes()


def _head(kind: str, size: Any) -> bytes:
    return canonical_json([kind, size]) + b"\n"


def _plain_bytes(value: bool | int | float | str | bytes | None) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, float):
        return value.hex().encode()
    return str(int(value) if isinstance(value, int) else value).encode()


def _to_array(value: Any, where: str) -> NDArray[Any]:
    """Return the values of a tensor, an array, a number of numpy's or an image as an array."""
    if hasattr(value, "detach"):  # a tensor of torch's
        value = value.detach().cpu()
        if str(value.dtype) == "torch.bfloat16":  # numpy has no such type; float32 holds it exactly
            value = value.float()
        value = value.numpy()
    elif hasattr(value, "tobytes") and hasattr(value, "getbands"):  # an image of PIL's
        value = np.asarray(value)
    if not isinstance(value, np.ndarray | np.generic) or value.dtype.kind not in "biufcSUmM":
        kind = getattr(value, "dtype", type(value).__name__)
        raise DataError(
            f"sample{where} is of type {kind}, which has no content digest; return tensors, "
            "arrays, images, numbers or text, or pass key=, a function that returns a name for "
            "each index"
        )
    return np.asarray(value)


@dataclass(frozen=True)
class _Blocks:
    """The numbers of samples, in lists of at most 64."""

    rows: Sequence[int]

    def __iter__(self) -> Iterator[list[SampleIndex]]:
        for start in range(0, len(self.rows), _BLOCK):
            block = self.rows[start : start + _BLOCK]
            yield [SampleIndex(row, key=0, epoch=0) for row in block]


def _read_digests(
    dataset: Any, rows: Sequence[int], workers: int, progress: Progress | None
) -> Digests:
    """Return the digests of these samples: uint8 (m, 32)."""
    from torch import Generator
    from torch.utils.data import DataLoader

    check_integer("workers", workers, 0, error=DataError)
    loader: DataLoader[Any] = DataLoader(
        _SampleDigests(dataset),  # type: ignore[arg-type]  # a dataset needs no base class
        batch_sampler=_Blocks(rows),
        num_workers=workers,
        collate_fn=_join,
        generator=Generator(),  # or the loader would draw a seed from the global one
    )
    digests, done = np.empty((len(rows), DIGEST_BYTES), dtype=np.uint8), 0
    for block in loader:
        digests[done : done + len(block)] = block
        done += len(block)
        if progress is not None:
            progress.update(done)
    return digests


@dataclass(frozen=True)
class _SampleDigests:
    """The digest of each sample of a dataset; one sample is in memory at a time."""

    dataset: Any

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: SampleIndex) -> bytes:
        return digest_sample(self.dataset[index])


def _join(digests: Sequence[bytes]) -> Digests:
    return np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(-1, DIGEST_BYTES)


def _read_cache(path: Path, count: int) -> Digests | None:
    """Return the digests in a cache file, or None where it is absent, damaged or of other size."""
    try:
        kept = load_npy(path, error=DataError)
    except (DataError, OSError):
        return None
    if kept.shape != (count + 1, DIGEST_BYTES) or kept.dtype != np.uint8:
        return None
    digests = np.array(kept[:-1])
    return digests if kept[-1].tobytes() == _checksum(digests) else None


def _write_cache(path: Path, digests: Digests) -> None:
    """Write the digests and, as a last row, their checksum."""
    last = np.frombuffer(_checksum(digests), dtype=np.uint8)[None]
    file = BytesIO()
    np.save(file, np.concatenate([digests, last]))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, file.getvalue())


def _checksum(digests: Digests) -> bytes:
    content = _CACHE_FORMAT + digests.tobytes()
    return hashlib.blake2b(content, digest_size=DIGEST_BYTES).digest()
