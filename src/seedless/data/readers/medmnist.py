"""MedMNIST v2: seven sets of images, each an .npz file for a size, with images by split."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seedless.core.dataset import THREE_SPLITS, Dataset
from seedless.core.errors import DataError
from seedless.core.registry import choose
from seedless.data.catalog import CATALOG, DatasetEntry, find_entry
from seedless.data.medmnist_catalog import SIZES, SMALLEST, name_file
from seedless.data.readers.content_ids import digest_in_blocks, name_by_content
from seedless.data.readers.npz_files import load_npz

ARRAYS = tuple(f"{split}_{what}" for split in THREE_SPLITS for what in ("images", "labels"))
SETS = {name: entry for name, entry in CATALOG.items() if name.endswith("mnist")}


def read_medmnist(path: str | Path, name: str | None = None, size: int | None = None) -> Dataset:
    """Return a MedMNIST dataset from its .npz file, or from the folder that holds it.

    Images are uint8 (n, channels, size, size). A set that is named has ``size`` 28 if that is left
    out; without a name, set and size are those of the file. Binary and ordinal tasks become
    multi-class. ChestMNIST is multi-label; a row of zeros means "no finding". Ids are made from the
    content. If the numbers of images are not the published ones, there is a warning.
    """
    path = Path(path)
    if path.is_dir():
        path = _find_file(path, name, size or SMALLEST)
    arrays = load_npz(path)
    _refuse_other_file(path, arrays)
    if name is None:
        name = guess_set(path, arrays)
        size = arrays["train_images"].shape[1] if size is None else size
    choose("MedMNIST set", name, SETS)
    entry = find_entry(name, size or SMALLEST)
    # Each array is dropped once it is copied: a set of large images is in memory once, not twice.
    total = sum(len(arrays[f"{split}_images"]) for split in THREE_SPLITS)
    images = np.empty((total, *(entry.shape or ())), dtype=np.uint8)
    labels, digests, ids, folds = [], [], [], []
    sizes: dict[str, int] = {}
    fitting = _list_fitting(arrays)
    for split, (fold,) in THREE_SPLITS.items():
        where, begin = f"{path} ({split})", sum(sizes.values())
        try:
            pictures = _images(arrays.pop(f"{split}_images"), entry, where)
            hot = _labels(arrays[f"{split}_labels"], len(pictures), entry, where)
        except DataError as error:
            raise DataError(f"{error}{_name_other_set(name, fitting)}") from None
        images[begin : begin + len(pictures)] = pictures
        keys = digest_in_blocks(images[begin : begin + len(pictures)])
        labels.append(hot)
        digests.append(keys)
        ids.append(name_by_content(keys, hot, f"{split}/"))
        folds.append(np.full(len(pictures), fold, dtype=np.int64))
        sizes[split] = len(pictures)
        del pictures
    official = sizes == entry.sizes
    found, expected = ("/".join(map(str, n.values())) for n in (sizes, entry.sizes))
    warnings = (
        f"{path.name}: {found} images for training, validation and test; {expected} are published: "
        "this is not the official file",
    )
    return Dataset(
        name=name,
        X=images,
        Y=np.concatenate(labels),
        classes=entry.classes,
        folds=np.concatenate(folds),
        ids=np.concatenate(ids),
        protocol=THREE_SPLITS,
        task=entry.task or "multi-class",
        provenance={
            "source": "MedMNIST v2",
            "licence": entry.licence,
            "file": path.name,
            "sizes": sizes,
            "published_sizes": official,
            "ids": "by content",
        },
        warnings=() if official else warnings,
        content=np.concatenate(digests),
    )


def is_medmnist(names: Iterable[str]) -> bool:
    """Whether arrays of these names are those of a MedMNIST file."""
    return {*ARRAYS} <= {*names}


def guess_set(path: Path, arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return the set that a file holds, from its name or else from images and labels."""
    fitting = _list_fitting(arrays)
    named = [name for name in SETS if path.stem.lower().startswith(name)]
    if named and (named[0] in fitting or not fitting):
        return named[0]
    if len(fitting) == 1:
        return fitting[0]
    raise DataError(
        f"{path}: these are the arrays of a MedMNIST file, and its images and labels fit "
        f"{' and '.join(fitting) or 'no set known here'}: say which it is, such as "
        f"data.name={(fitting or list(SETS))[0]} with data.path={path}"
    )


def _list_fitting(arrays: Mapping[str, NDArray[Any]]) -> list[str]:
    """Return the sets whose images and labels have these shapes and class numbers."""
    images, labels = arrays["train_images"], arrays["train_labels"]
    if labels.dtype.kind not in "iu" or labels.size == 0:
        return []
    found = []
    for name, entry in SETS.items():
        shapes = [_stored_shape(find_entry(name, size)) for size in SIZES]
        many = entry.task == "multi-label"
        width = len(entry.classes) if many else 1
        top = 1 if many else len(entry.classes) - 1
        if images.shape[1:] in shapes and labels.shape[1:] == (width,) and labels.max() == top:
            found.append(name)
    return found


def _refuse_other_file(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    if is_medmnist(arrays):
        return
    missing = [name for name in ARRAYS if name not in arrays]
    own = {"X", "Y", "folds"} <= {*arrays}
    advice = f"; it holds arrays of your own: say data.name={path} and leave data.path out" * own
    found = ", ".join(arrays) or "none"
    raise DataError(f"{path}: {', '.join(missing)} is missing; found {found}{advice}")


def _name_other_set(name: str, fitting: list[str]) -> str:
    """Return which other sets the arrays would fit, as the end of a message."""
    others = [other for other in fitting if other != name]
    return f". The file fits {' and '.join(others)}: say data.name={others[0]}" if others else ""


def _find_file(folder: Path, name: str | None, size: int) -> Path:
    """Return the file of a set in a folder: of the one that is named, or that is there."""
    files = {key: folder / name_file(key, size) for key in SETS}
    names = [name] if name is not None else [key for key in SETS if files[key].is_file()]
    if len(names) != 1:
        raise DataError(
            f"{folder}: expected the file of one set here, found {', '.join(names) or 'none'}; "
            "give the file's own path or a name"
        )
    return folder / name_file(names[0], size)


def _stored_shape(entry: DatasetEntry) -> tuple[int, ...]:
    """Return the shape of one image in a file: (height, width), or with the channels last."""
    assert entry.shape is not None
    channels, *sides = entry.shape
    return (*sides,) if channels == 1 else (*sides, channels)


def _images(raw: NDArray[Any], entry: DatasetEntry, where: str) -> NDArray[np.uint8]:
    """Return a view (n, channels, side, side) of images (n, side, side) or (n, side, side, 3)."""
    shape = _stored_shape(entry)
    if raw.dtype != np.uint8 or raw.shape[1:] != shape or len(raw) == 0:
        found = [
            side for side in SIZES if _stored_shape(find_entry(entry.name, side)) == raw.shape[1:]
        ]
        fits = found and len(raw) > 0 and found[0] != shape[0]
        advice = (
            f". These images have {found[0]} pixels on a side: say data.size={found[0]}"
            if fits
            else ""
        )
        raise DataError(
            f"{where}: expected images of shape (n, {', '.join(map(str, shape))}), uint8; "
            f"found {raw.dtype} of {raw.shape}{advice}"
        )
    return raw[:, None] if len(shape) == 2 else raw.transpose(0, 3, 1, 2)


def _labels(raw: NDArray[Any], count: int, entry: DatasetEntry, where: str) -> NDArray[np.uint8]:
    """Return multi-hot (n, K) from (n, 1) class numbers or (n, K) zeros and ones."""
    many = entry.task == "multi-label"
    shape = (count, len(entry.classes) if many else 1)
    top = 1 if many else len(entry.classes) - 1
    if raw.dtype.kind not in "iu" or raw.shape != shape:
        raise DataError(
            f"{where}: expected whole-number labels of shape {shape}, "
            f"found {raw.dtype} of {raw.shape}"
        )
    if raw.min() < 0 or raw.max() > top:
        raise DataError(
            f"{where}: expected labels from 0 to {top}, found {raw.min()} to {raw.max()}"
        )
    if many:
        return raw.astype(np.uint8)
    hot = np.zeros((count, len(entry.classes)), dtype=np.uint8)
    hot[np.arange(count), raw[:, 0]] = 1
    return hot
