"""Digests of models, tensors, values and samples, and the canonical JSON that they are made from.

`digest` covers names, dtypes, shapes and bytes of every parameter and buffer. `md5` covers the
bytes of the parameters alone: it does not depend on BatchNorm statistics, names, shapes or dtypes,
and exists because such hashes were published.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from seedless.core.errors import DataError, SeedlessError
from seedless.core.threads import count_threads, run_in_blocks

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray
    from torch import Tensor, nn

# A tensor of this many bytes is hashed in its own thread: hashing releases the interpreter's lock.
LARGE_TENSOR_BYTES = 1 << 20
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_BLOCK = 64  # samples that a thread hashes at a time


def canonical_json(value: Any) -> bytes:
    """Return ``value`` as bytes of JSON, the same bytes on every machine.

    ``value`` holds dicts with string keys, lists, tuples, str, int, float, bool and None. Keys are
    sorted by code point, there is no white space, text is UTF-8, floats are written in the shortest
    form that reads back to the same float64, and NaN and infinities are refused.
    """
    _check_plain(value, "$")
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return text.encode()


def _check_plain(value: Any, where: str) -> None:
    """Refuse what JSON would change silently: other key types, other objects, NaN, infinities."""
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise SeedlessError(f"canonical JSON needs string keys; {where} has {key!r}")
            _check_plain(item, f"{where}.{key}")
    elif isinstance(value, list | tuple):
        for position, item in enumerate(value):
            _check_plain(item, f"{where}[{position}]")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise SeedlessError(f"canonical JSON holds finite numbers only; {where} is {value}")
    elif value is not None and not isinstance(value, str | int | bool):
        raise SeedlessError(
            f"canonical JSON holds plain values only; {where} is a {type(value).__name__}"
        )


def digest(source: nn.Module | Mapping[str, Any]) -> str:
    """Return ``"sha256:..."`` over a model's state, or over a mapping of names to tensors.

    A model's state is every parameter and buffer, also those that a state dict leaves out. For each
    tensor, sorted by name, the hash covers one line of canonical JSON ``{"dtype","name","shape"}``,
    a newline, and the elements in C order, little-endian.

    Example: ``seedless.digest(a) == seedless.digest(b)`` says whether two models are the same.
    """
    tensors = source if isinstance(source, Mapping) else name_tensors(source)
    hasher = hashlib.sha256()
    for name in sorted(tensors, key=str):
        dtype, shape, data = _describe(name, tensors[name])
        hasher.update(_head(name, dtype, shape))
        hasher.update(data)
    return f"sha256:{hasher.hexdigest()}"


def digest_each(tensors: Mapping[str, Any]) -> dict[str, str]:
    """Return the digest of each tensor by name, as 64 hexadecimal digits."""
    described = {name: _describe(name, tensor) for name, tensor in tensors.items()}
    large = {name: one for name, one in described.items() if one[2].nbytes >= LARGE_TENSOR_BYTES}
    digests = {name: _hash_one(name, *one) for name, one in described.items() if name not in large}
    if large:
        with ThreadPoolExecutor(max_workers=count_threads()) as pool:
            hashed = pool.map(_hash_one, large, *zip(*large.values(), strict=True))
            digests |= zip(large, hashed, strict=True)
    return {name: digests[name] for name in tensors}


def _hash_one(name: str, dtype: str, shape: tuple[int, ...], data: memoryview) -> str:
    hasher = hashlib.sha256(_head(name, dtype, shape))
    hasher.update(data)
    return hasher.hexdigest()


@lru_cache(maxsize=1 << 14)
def _head(name: str, dtype: str, shape: tuple[int, ...]) -> bytes:
    """Return the line before a tensor's bytes; cached, since every epoch needs the same ones."""
    return canonical_json({"name": name, "dtype": dtype, "shape": list(shape)}) + b"\n"


def md5(model: nn.Module) -> str:
    """Return the MD5 over the bytes of ``model.parameters()``, in order: the published hash."""
    hasher = hashlib.md5(usedforsecurity=False)
    for name, parameter in model.named_parameters():
        hasher.update(_describe(name, parameter)[2])
    return hasher.hexdigest()


def digest_bytes(content: bytes) -> str:
    """Return ``"sha256:..."`` of bytes, as a receipt lists files.

    >>> digest_bytes(b"")[:15]
    'sha256:e3b0c442'
    """
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def digest_value(value: Any) -> str:
    """Return ``"sha256:..."`` of a plain value's canonical JSON."""
    return digest_bytes(canonical_json(value))


def is_digest(value: object) -> bool:
    """Whether a value is text of the form ``"sha256:..."``, with 64 hexadecimal digits."""
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


def get_hex(digest: str) -> str:
    """Return the hexadecimal digits of ``"sha256:..."``.

    >>> get_hex("sha256:00ff")
    '00ff'
    """
    return digest.removeprefix("sha256:")


def digest_samples(samples: ArrayLike, algorithm: str = "blake2b") -> NDArray[np.uint8]:
    """Return a 32-byte digest of each sample: (n, ...) -> uint8 (n, 32).

    The hash covers the sample's dtype and shape, and its values as little-endian float32 (int64 for
    integers), with -0.0 written as 0.0: what the model receives, however it is stored.
    """
    rows = as_rows(samples)
    header = canonical_json([rows.dtype.str, list(rows.shape[1:])])
    out = np.empty((len(rows), 32), dtype=np.uint8)

    def hash_rows(block: slice) -> None:
        for row, place in zip(rows[block], out[block], strict=True):
            content = (row + 0).tobytes()  # adding zero turns -0.0 into 0.0
            hasher = (
                hashlib.blake2b(header, digest_size=32)
                if algorithm == "blake2b"
                else hashlib.new(algorithm, header)
            )
            hasher.update(content)
            place[:] = np.frombuffer(hasher.digest(), dtype=np.uint8)

    run_in_blocks(hash_rows, len(rows), _BLOCK)
    return out


def sample_keys(samples: ArrayLike) -> NDArray[np.int64]:
    """Return an int64 key for each sample (n, ...), made from its content: (n,).

    Dropout and augmentation draw their random numbers by these keys, so that they do not depend on
    a sample's place in storage or in a batch.

    Example: ``keys = torch.from_numpy(seedless.sample_keys(x))``, for `seedless.dropout_keys`.
    """
    return keys_from_digests(digest_samples(samples))


def keys_from_digests(digests: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the first 8 bytes of each digest as an int64: (n, 32) -> (n,)."""
    return np.ascontiguousarray(digests[:, :8]).view("<i8").ravel().astype(np.int64)


def as_rows(samples: ArrayLike) -> NDArray[Any]:
    """Return samples (n, ...) as float32, or int64 for integers; NaN and infinity are refused."""
    array = to_numpy(samples, "samples")
    if array.ndim == 0 or array.size == 0:
        raise DataError(f"expected samples of shape (n, ...), got shape {array.shape}: no samples")
    if array.dtype.kind in "biu":
        return array.astype("<i8", copy=False)
    with np.errstate(over="ignore"):  # beyond float32 becomes infinity, and is refused below
        rows = array.astype("<f4", copy=False)
    finite = np.empty(len(rows), dtype=bool)

    def check(block: slice) -> None:
        finite[block] = [np.isfinite(row).all() for row in rows[block]]

    run_in_blocks(check, len(rows), _BLOCK)
    if not finite.all():
        bad = np.flatnonzero(~finite)
        raise DataError(
            f"sample {bad[0]} holds NaN, infinity or a value beyond float32 "
            f"({len(bad)} of {len(rows)} samples do); remove or repair these samples first"
        )
    return rows


def to_numpy(values: Any, what: str) -> NDArray[Any]:
    """Return an array, nested list or torch tensor as a numpy array; refuse other than reals."""
    array: NDArray[Any]
    detach = getattr(values, "detach", None)
    try:
        if detach is not None:
            tensor = detach().cpu()
            array = (tensor.float() if tensor.is_floating_point() else tensor).numpy()
        else:
            array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(f"{what} cannot be read as an array: {error}") from None
    if array.dtype.kind not in "biuf":
        raise DataError(
            f"expected {what} to be real numbers, got {array.dtype}; convert them first"
        )
    return array


def name_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Return every parameter and buffer by name; a shared one appears under each of its names."""
    return {
        **dict(model.named_parameters(remove_duplicate=False)),
        **dict(model.named_buffers(remove_duplicate=False)),
    }


def _describe(name: object, value: Any) -> tuple[str, tuple[int, ...], memoryview]:
    """Return (dtype name, shape, bytes) of a tensor or an array."""
    import torch

    if not isinstance(name, str):
        raise SeedlessError(f"a digest needs tensors with names, got the name {name!r}")
    if isinstance(value, np.ndarray):
        value = torch.from_numpy(np.array(value, dtype=value.dtype.newbyteorder("="), order="C"))
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        raise SeedlessError(f"{name} is no dense tensor or array; make it dense to hash it")
    if value.is_meta:
        raise SeedlessError(f"{name} has no data (meta device): materialize the model first")
    plain = value.detach()
    if plain.device.type != "cpu" or not plain.is_contiguous() or plain.is_conj() or plain.is_neg():
        plain = plain.resolve_conj().resolve_neg().cpu().contiguous()
    flat = plain.reshape(-1).view(torch.uint8).numpy().data
    return str(value.dtype).removeprefix("torch."), tuple(value.shape), flat
