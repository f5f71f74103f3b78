"""A dataset as a folder of arrays with a manifest, written whole or not at all.

Entries of the cache have this form, and so has a dataset that is packed into a bundle.

The folder holds ``X.npy`` (the samples, memory-mapped when read), one file for each small array,
``content.npy`` (a digest of each sample) and ``manifest.json``: canonical JSON with the SHA-256 of
every small array, size and time of change of ``X.npy``, the dataset's digest, and a digest of the
manifest itself, ``seal``.
"""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from seedless.core.array_files import load_npy, parse_npy
from seedless.core.bounded_reading import read_file
from seedless.core.dataset import Dataset
from seedless.core.digests import canonical_json, digest_bytes, digest_samples, digest_value
from seedless.core.errors import DataError
from seedless.data.manifest import (
    KINDS,
    MANIFEST,
    PACKED_HEAD,
    SCHEMA,
    UnusableEntryError,
    read_manifest,
)

SAMPLES = "X.npy"
_VALUES = ("name", "classes", "task", "fs", "leads", "provenance", "warnings")
_FILES = {MANIFEST, SAMPLES, *(f"{name}.npy" for name in KINDS)}
_BLOCK = 256  # samples hashed or written at a time
_SPOT_CHECKS = 16  # samples whose digests are checked on every opening
_MAX_ARRAY_BYTES = 256 * 2**20  # of one small array; 1.6 million ids of 40 characters


def read_folder(folder: Path, manifest: Mapping[str, Any], verify: bool) -> Dataset:
    """Return the dataset of a folder, with its samples memory-mapped.

    Small arrays are always compared with their hashes. Of the samples, 16 spread over the file are;
    all of them if ``verify`` is set or the file's time of change is not the manifest's.
    """
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in manifest["values"].items()
    }
    protocol = {split: tuple(folds) for split, folds in manifest["protocol"]}
    known = manifest["samples"]
    try:
        arrays: dict[str, Any] = {
            name: _read_array(folder, name, digest) for name, digest in manifest["arrays"].items()
        }
        state = (folder / SAMPLES).stat()
        if state.st_size != known["bytes"]:
            raise UnusableEntryError(f"{SAMPLES} has {state.st_size} bytes, not {known['bytes']}")
        samples = load_npy(folder / SAMPLES, kinds="fu", error=UnusableEntryError)
        data = Dataset(X=samples, protocol=protocol, **arrays, **values)
    except OSError as error:
        raise UnusableEntryError(
            f"a file is missing or cannot be read: {error.strerror}"
        ) from error
    except (ValueError, EOFError) as error:
        raise UnusableEntryError(f"it is damaged: {error}") from error
    touched = state.st_mtime_ns != known["mtime_ns"]
    _check_samples(data, everything=verify or touched)
    if verify and data.digest != manifest["digest"]:
        raise UnusableEntryError("the digest of the whole has changed")
    if touched:  # a good copy: the next opening need not hash all of it again
        with suppress(OSError):
            os.utime(folder / SAMPLES, ns=(state.st_atime_ns, known["mtime_ns"]))
    return data


def write_folder(
    folder: Path, head: Mapping[str, Any], data: Dataset, mtime_ns: int | None = None
) -> None:
    """Write a dataset as a folder; ``head`` is what else goes into the manifest.

    With ``mtime_ns`` the samples get this time of change, so that the bytes repeat. The caller
    holds the lock. If anything fails, the folder is as it was before.
    """
    # [Step 1] Write all files into a temporary folder next to the final one.
    building, old = _name_temporary_folders(folder)
    try:
        building.mkdir()
        content = _save_samples(building / SAMPLES, data.X)
        arrays = {name: getattr(data, name) for name in KINDS} | {"content": content}
        digests = {
            name: _save_array(building / f"{name}.npy", value)
            for name, value in arrays.items()
            if value is not None
        }
        if mtime_ns is not None:
            os.utime(building / SAMPLES, ns=(mtime_ns, mtime_ns))
        # [Step 2] Describe them in the manifest, which is written last.
        state = (building / SAMPLES).stat()
        manifest = {
            "schema": SCHEMA,
            **head,
            "values": {name: _plain(getattr(data, name)) for name in _VALUES},
            "protocol": [[split, list(folds)] for split, folds in data.protocol.items()],
            "arrays": digests,
            "samples": {"bytes": state.st_size, "mtime_ns": state.st_mtime_ns},
            "digest": replace(data, content=content).digest,
        }
        manifest["seal"] = digest_value(manifest)
        with _create(building / MANIFEST) as file:
            file.write(canonical_json(manifest))
        # [Step 3] Rename, once every byte is on the disk.
        _flush_folder(building)
        if folder.exists():
            folder.rename(old)
        building.rename(folder)
        _flush_folder(folder.parent)
    except OSError as error:
        raise make_write_error(folder, error, data.X.nbytes) from error
    finally:
        clear_leftovers(folder)


def write_packed(folder: Path, data: Dataset) -> None:
    """Write a dataset as a folder to travel with a run; the same data give the same bytes."""
    write_folder(folder, {"packed": data.name}, data, mtime_ns=0)


def is_packed(folder: Path) -> bool:
    """Whether a folder holds a packed dataset."""
    return (folder / MANIFEST).is_file()


def read_packed(folder: Path) -> Dataset:
    """Read a packed dataset, every sample checked against its digest."""
    with _name_folder(folder):
        return read_folder(folder, read_manifest(folder, PACKED_HEAD), verify=True)


def list_packed_files(folder: Path) -> set[str]:
    """Return the names of the files of a packed dataset, as its manifest implies them."""
    with _name_folder(folder):
        manifest = read_manifest(folder, PACKED_HEAD)
    return {MANIFEST, SAMPLES, *(f"{name}.npy" for name in manifest["arrays"])}


@contextmanager
def _name_folder(folder: Path) -> Iterator[None]:
    """Turn an unusable entry into an error that names the folder."""
    try:
        yield
    except UnusableEntryError as error:
        raise DataError(f"the data in {folder} cannot be used: {error}") from None


def clear_leftovers(folder: Path) -> None:
    """Remove what an interrupted build left next to an entry. The caller holds the lock."""
    for leftover in _name_temporary_folders(folder):
        shutil.rmtree(leftover, ignore_errors=True)


def check_entry_folder(folder: Path) -> None:
    """Refuse a folder that holds anything but an entry: building it again would delete that."""
    strange = []
    if folder.is_dir():
        strange = sorted(path.name for path in folder.iterdir() if path.name not in _FILES)
    if strange or (folder.exists() and not folder.is_dir()):
        raise DataError(
            f"{folder}: not a cache entry ({', '.join(strange[:3]) or 'a file'}); "
            "name another folder, or remove it yourself"
        )


def make_write_error(folder: Path, error: OSError, needed: int = 0) -> DataError:
    """Return the error for a cache that cannot be written, with what to do."""
    return DataError(
        f"{folder}: the cache cannot be written: {error.strerror or error}"
        + (f"; it needs {needed / 1e6:,.0f} MB" if needed else "")
        + "; set SEEDLESS_CACHE to a folder that can be written and has room, or leave the cache "
        "out with data.cache=false"
    )


def _name_temporary_folders(folder: Path) -> tuple[Path, Path]:
    """Return the temporary names of a new entry and of the one that it replaces."""
    return folder.parent / f".{folder.name}.building", folder.parent / f".{folder.name}.old"


def _read_array(folder: Path, name: str, digest: str) -> NDArray[Any]:
    path = folder / f"{name}.npy"
    content = read_file(path, _MAX_ARRAY_BYTES, error=UnusableEntryError)
    if digest != digest_bytes(content):
        raise UnusableEntryError(f"{path.name} is damaged")
    return parse_npy(content, path.name, kinds=KINDS[name], error=UnusableEntryError)


def _save_array(path: Path, array: NDArray[Any]) -> str:
    """Write a small array; return its file's hash."""
    content = BytesIO()
    np.save(content, array, allow_pickle=False)
    with _create(path) as file:
        file.write(content.getvalue())
    return digest_bytes(content.getvalue())


def _save_samples(path: Path, samples: NDArray[Any]) -> NDArray[np.uint8]:
    """Write the samples in blocks, in C order; return their digests (n, 32)."""
    head = {
        "descr": np.lib.format.dtype_to_descr(samples.dtype),
        "fortran_order": False,
        "shape": samples.shape,
    }
    digests = []
    with _create(path) as file:
        np.lib.format.write_array_header_1_0(file, head)
        for start in range(0, len(samples), _BLOCK):
            block = np.ascontiguousarray(samples[start : start + _BLOCK])
            digests.append(digest_samples(block))
            file.write(block.tobytes())
    return np.concatenate(digests)


def _check_samples(data: Dataset, everything: bool) -> None:
    """Compare samples with their digests: all of them, or some spread over the file."""
    n = len(data)
    rows = (
        np.arange(n) if everything else np.unique(np.linspace(0, n - 1, _SPOT_CHECKS).astype(int))
    )
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        values = data.X[block]
        good = np.isfinite(values).reshape(len(block), -1).all(axis=1)  # NaN is never written
        good[good] = (digest_samples(values[good]) == data.digests[block][good]).all(axis=1)
        if not good.all():
            raise UnusableEntryError(f"{SAMPLES} is damaged at record {data.ids[block[~good][0]]}")


@contextmanager
def _create(path: Path) -> Iterator[BinaryIO]:
    """Open a new file; at the end of the block its bytes are on the disk."""
    with open(path, "xb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value
