"""MedMNIST v2 at 28 x 28: seven datasets, each an .npz file with images and labels by split."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seedless.core.dataset import THREE_SPLITS, Dataset
from seedless.core.errors import DataError
from seedless.core.registry import choose
from seedless.data.catalog import CATALOG, DatasetEntry
from seedless.data.readers.content_ids import digest_in_blocks, name_by_content
from seedless.data.readers.npz_files import load_npz

ARRAYS = tuple(f"{split}_{what}" for split in THREE_SPLITS for what in ("images", "labels"))
SETS = {name: entry for name, entry in CATALOG.items() if name.endswith("mnist")}


def read_medmnist(path: str | Path, name: str | None = None) -> Dataset:
    """Return a MedMNIST dataset from its .npz file, or from the folder that holds it.

    Images are uint8 (n, channels, 28, 28). ``name`` is the file's if left out. Binary and ordinal
    tasks become multi-class. ChestMNIST is multi-label; a row of zeros means "no finding". Ids are
    made from the content. If the numbers of images are not the published ones, there is a warning.
    """
    path = Path(path)
    if path.is_dir():
        names = [name] if name is not None else [key for key in SETS if _file(path, key).is_file()]
        if len(names) != 1:
            raise DataError(
                f"{path}: expected the file of one set here, found {', '.join(names) or 'none'}; "
                "give the file's own path or a name"
            )
        path = _file(path, names[0])
    name = path.stem if name is None else name
    entry = choose("MedMNIST set", name, SETS)
    arrays = load_npz(path, ARRAYS)
    images, labels, digests, ids, folds, sizes = [], [], [], [], [], {}
    for split, (fold,) in THREE_SPLITS.items():
        where = f"{path} ({split})"
        pictures = _images(arrays[f"{split}_images"], entry, where)
        hot = _labels(arrays[f"{split}_labels"], len(pictures), entry, where)
        keys = digest_in_blocks(pictures)
        images.append(pictures)
        labels.append(hot)
        digests.append(keys)
        ids.append(name_by_content(keys, hot, f"{split}/"))
        folds.append(np.full(len(pictures), fold, dtype=np.int64))
        sizes[split] = len(pictures)
    official = sizes == entry.sizes
    found, expected = ("/".join(map(str, n.values())) for n in (sizes, entry.sizes))
    warnings = (
        f"{path.name}: {found} images for training, validation and test; {expected} are published: "
        "this is not the official file",
    )
    return Dataset(
        name=name,
        X=np.concatenate(images),
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


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name}.npz"


def _images(raw: NDArray[Any], entry: DatasetEntry, where: str) -> NDArray[np.uint8]:
    """Return (n, channels, 28, 28) from (n, 28, 28) or (n, 28, 28, 3)."""
    channels, *sides = entry.shape or (1, 28, 28)
    shape = (*sides,) if channels == 1 else (*sides, channels)
    if raw.dtype != np.uint8 or raw.shape[1:] != shape or len(raw) == 0:
        raise DataError(
            f"{where}: expected images of shape (n, {', '.join(map(str, shape))}), uint8; "
            f"found {raw.dtype} of {raw.shape}"
        )
    if channels == 1:
        return raw[:, None]
    return np.ascontiguousarray(raw.transpose(0, 3, 1, 2))


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
