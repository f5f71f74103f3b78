"""CIFAR-100: the published archive of pickles, read by an unpickler that only builds arrays."""

import io
import pickle
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seedless.core.dataset import THREE_SPLITS, Dataset
from seedless.core.errors import DataError
from seedless.data.catalog import find_entry
from seedless.data.readers.content_ids import digest_in_blocks, name_by_content

ARCHIVE = "cifar-100-python.tar.gz"
FOLDER = "cifar-100-python"
PARTS = ("train", "test", "meta")
SIZES = (50_000, 10_000)
CLASSES = 100
_MAX_PART_BYTES = 1 << 29  # the published parts have up to 155 MB


def read_cifar100(path: str | Path, *, validation: int = 5000) -> Dataset:
    """Return CIFAR-100 with its 100 fine classes, from the .tar.gz file or the unpacked folder.

    Images are uint8 (n, 3, 32, 32). The ``validation`` training images with the smallest content
    digests become the validation split, whatever order they are stored in (of equal images, the one
    with the smaller label first). Nothing is unpacked to disk.
    """
    # [Step 1] Read the three parts of the archive.
    path = Path(path)
    parts = {name: unpickle(data, where) for name, (data, where) in _read_parts(path).items()}
    classes = _class_names(parts["meta"], f"{path} (meta)")
    train, train_labels = _images(parts["train"], f"{path} (train)")
    test, test_labels = _images(parts["test"], f"{path} (test)")
    if not 0 < validation < len(train):
        raise DataError(
            f"{path}: cannot hold out {validation} of {len(train)} training images for validation"
        )
    # [Step 2] Choose the validation images by their digests.
    digests, test_digests = digest_in_blocks(train), digest_in_blocks(test)
    validation_rows = _smallest(digests, train_labels, validation)
    folds = np.full(len(train) + len(test), THREE_SPLITS["train"][0], dtype=np.int64)
    folds[validation_rows] = THREE_SPLITS["val"][0]
    folds[len(train) :] = THREE_SPLITS["test"][0]
    labels = np.zeros((len(folds), CLASSES), dtype=np.uint8)
    labels[np.arange(len(folds)), np.concatenate([train_labels, test_labels])] = 1
    official = (len(train), len(test)) == SIZES
    return Dataset(
        name="cifar-100",
        X=np.concatenate([train, test]),
        Y=labels,
        classes=classes,
        folds=folds,
        ids=np.concatenate(
            [
                name_by_content(digests, labels[: len(train)], "train/"),
                name_by_content(test_digests, labels[len(train) :], "test/"),
            ]
        ),
        protocol=THREE_SPLITS,
        task="multi-class",
        provenance={
            "source": "CIFAR-100, Python version",
            "licence": find_entry("cifar-100").licence,
            "file": path.name,
            "published_sizes": official,
            "validation": f"{validation} training images with the smallest content digests",
            "ids": "by content; images held out for validation keep their train/ name",
        },
        warnings=()
        if official
        else (
            f"{path.name}: {len(train)} training and {len(test)} test images; "
            f"{SIZES[0]} and {SIZES[1]} are published: this is not the official file",
        ),
        content=np.concatenate([digests, test_digests]),
    )


def unpickle(data: bytes, where: str) -> dict[str, Any]:
    """Return the dictionary in a pickle; refuse a pickle that names anything but data.

    Python 2 wrote these files, so text is read as bytes; keys are decoded here.
    """
    try:
        content = _Unpickler(io.BytesIO(data), encoding="bytes").load()
    except DataError as error:
        raise DataError(f"{where}: {error}") from None
    except Exception as error:  # a damaged pickle can make any operation fail
        raise DataError(f"{where}: not a readable pickle: {error}; fetch it again") from error
    if not isinstance(content, dict):
        raise DataError(f"{where}: expected a dictionary, found {type(content).__name__}")
    return {_text(key): value for key, value in content.items()}


class _Unpickler(pickle.Unpickler):
    """Builds numbers, text, lists, dictionaries and numpy arrays, and refuses every other name."""

    def find_class(self, module: str, name: str) -> Any:
        # numpy 2 moved its module and kept the name that old pickles hold; neither is imported.
        # `__reduce__` is typed as text or a tuple; an array's is a tuple, with the function first.
        reconstruct: Callable[..., Any] = np.empty(0).__reduce__()[0]  # type: ignore[assignment]
        allowed = {
            ("numpy.core.multiarray", "_reconstruct"): reconstruct,
            ("numpy._core.multiarray", "_reconstruct"): reconstruct,
            ("numpy", "ndarray"): np.ndarray,
            ("numpy", "dtype"): np.dtype,
            ("_codecs", "encode"): _encode_latin1,
        }
        if (module, name) not in allowed:
            raise DataError(
                f"the pickle asks for {module}.{name}, which is not data; refused, nothing was run"
            )
        return allowed[module, name]


def _encode_latin1(text: str, encoding: str) -> bytes:
    """Replace codecs.encode, with which Python 3 writes bytes in old pickle protocols."""
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise DataError(f"the pickle asks for the encoding {encoding!r}; refused")
    return text.encode("latin1")


def _text(value: Any) -> str:
    return value.decode("latin1") if isinstance(value, bytes) else str(value)


def _read_parts(path: Path) -> dict[str, tuple[bytes, str]]:
    """Return the bytes of train, test and meta, each with its name for error messages."""
    if path.is_dir():
        for folder in (path, path / FOLDER):
            if any((folder / name).is_file() for name in PARTS):
                return {name: _read_file(folder / name) for name in PARTS}
        path = path / ARCHIVE
    if not path.is_file():
        raise DataError(f"{path}: no such file; expected {ARCHIVE} or the folder {FOLDER}")
    try:
        with tarfile.open(path, "r:*") as archive:
            parts = {}
            for member in archive:
                # Members are read in memory under their exact names, so no path can lead outside.
                name = member.name.removeprefix("./").removeprefix(f"{FOLDER}/")
                if name in PARTS and member.isfile() and member.size <= _MAX_PART_BYTES:
                    stream = archive.extractfile(member)
                    parts[name] = b"" if stream is None else stream.read()
    except Exception as error:  # tarfile, gzip and zlib each have their own for a damaged file
        raise DataError(f"{path}: not a readable archive: {error}; fetch it again") from error
    missing = [name for name in PARTS if name not in parts]
    if missing:
        raise DataError(f"{path}: {', '.join(missing)} is missing from the archive")
    return {name: (data, f"{path} ({name})") for name, data in parts.items()}


def _read_file(path: Path) -> tuple[bytes, str]:
    try:
        return path.read_bytes(), str(path)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error


def _class_names(meta: dict[str, Any], where: str) -> tuple[str, ...]:
    names = meta.get("fine_label_names")
    if not isinstance(names, list) or len({_text(name) for name in names}) != CLASSES:
        raise DataError(f"{where}: expected {CLASSES} fine_label_names")
    return tuple(_text(name) for name in names)


def _images(part: dict[str, Any], where: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return images (n, 3, 32, 32) and class numbers (n,) of a part, stored as rows of 3072."""
    missing = [name for name in ("data", "fine_labels") if name not in part]
    if missing:
        raise DataError(f"{where}: {', '.join(missing)} is missing; found {', '.join(part)}")
    data, labels = part["data"], part["fine_labels"]
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.shape[1:] != (3072,):
        found = f"{data.dtype} of {data.shape}" if isinstance(data, np.ndarray) else type(data)
        raise DataError(f"{where}: expected data of shape (n, 3072), uint8; found {found}")
    valid = isinstance(labels, list) and all(
        type(label) is int and 0 <= label < CLASSES for label in labels
    )
    if not valid or len(labels) != len(data) or not labels:
        raise DataError(f"{where}: expected {len(data)} fine_labels from 0 to {CLASSES - 1}")
    return data.reshape(-1, 3, 32, 32), np.array(labels, dtype=np.int64)


def _smallest(
    digests: NDArray[np.uint8], labels: NDArray[np.int64], count: int
) -> NDArray[np.int64]:
    """Return the rows of the ``count`` smallest digests, the smaller label first where equal."""
    order = sorted(range(len(digests)), key=lambda row: (digests[row].tobytes(), labels[row]))
    return np.array(order[:count], dtype=np.int64)
