"""Your model and your arrays as a problem, for `fit` and for whoever executes its runs again."""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import nn

from seedless.core.config import Config, parse_config
from seedless.core.config_files import open_config
from seedless.core.digests import as_rows, digest_samples, digest_value, to_numpy
from seedless.core.errors import ConfigError, DataError
from seedless.core.marks import read_stages
from seedless.runs.prepare import Prepared, assemble, settle_execution
from seedless.runs.records import Arrays

GIVEN = "given"
Pair = tuple[ArrayLike, ArrayLike]
Model = nn.Module | Callable[[], nn.Module]
ENTRY_HELP = (
    "give what it was trained on: seedless.verify(run, model=make_model, train=(X, Y), ...), or "
    "--entry package.module:function, a function that returns {'model': ..., 'train': (X, Y), ...}"
)


def read_settings(config: Config | Mapping[str, Any] | str | Path | None) -> Config:
    """Return a configuration from whatever `fit` was given: sections of plain values, or a file."""
    if isinstance(config, Config):
        return config
    if isinstance(config, str | Path):
        return open_config(str(config))
    return parse_config(dict(config or {}), source="fit's config")


@dataclass(frozen=True, eq=False)
class Given:
    """The arguments of `fit` that are not settings."""

    model: Model
    train: Pair
    val: Pair | None = None
    test: Pair | None = None
    classes: tuple[str, ...] | None = None


def prepare_given(config: Config, given: Given) -> Prepared:
    """Turn a model and arrays into a problem.

    Samples are taken as they are: scale them before. Labels are class numbers (n,), or zeros and
    ones (n, K). Within each split they are sorted by content, so their order does not show.
    """
    network = given.model if isinstance(given.model, nn.Module) else given.model()
    if not isinstance(network, nn.Module):
        raise ConfigError(f"expected a model or a function that makes one, got {network!r}")
    basis = config.init.basis
    if "basis" not in config.init.model_fields_set:  # left open, so the model decides
        staged = any(stage is not None for stage in read_stages(network).values())
        basis = "mixed" if staged else "dct"
    # Rows without a one are an answer here, not records whose label is unknown.
    keep = "keep_unlabelled" not in config.order.model_fields_set or config.order.keep_unlabelled
    config = settle_execution(config)
    splits = {"train": given.train, "val": given.val, "test": given.test}
    pairs = {split: pair for split, pair in splits.items() if pair is not None}
    task, width = _read_task(given.train[1], given.classes)
    names = given.classes or tuple(f"class {k}" for k in range(width))
    arrays = {split: _read(split, pair, width, task) for split, pair in pairs.items()}
    config = config.change(
        data={"name": GIVEN},
        model={"name": GIVEN, "classes": width},
        init={"basis": basis},
        order={"keep_unlabelled": keep},
    )
    facts = {
        "name": GIVEN,
        "digest": digest_value({split: _identify(part) for split, part in arrays.items()}),
        "records": {split: len(part.X) for split, part in arrays.items()},
        "task": task,
        "scale": None,
    }
    return assemble(config, network, arrays, task, names, facts, "fit")


def load_entry(entry: str) -> Given:
    """Call "package.module:function" and return the arguments of `fit` it gives."""
    module, _, function = entry.partition(":")
    if not module or not function:
        raise ConfigError(f"expected --entry as package.module:function, got {entry!r}")
    if "" not in sys.path:
        sys.path.insert(0, "")  # a module beside you is found, as with `python -m`
    try:
        made = getattr(importlib.import_module(module), function)()
    except Exception as error:  # the code is not ours: whatever it raises is the message
        raise ConfigError(
            f"--entry {entry} cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    known = {item.name for item in fields(Given)}
    if not isinstance(made, Mapping) or not {"model", "train"} <= set(made) <= known:
        raise ConfigError(
            f"expected {entry} to return a mapping with 'model' and 'train', and where used 'val', "
            f"'test' and 'classes'; got {sorted(made) if isinstance(made, Mapping) else made!r}"
        )
    return Given(**made)


def _read_task(labels: ArrayLike, classes: tuple[str, ...] | None) -> tuple[str, int]:
    array = to_numpy(labels, "labels")
    if array.ndim == 1:
        found = int(array.max(initial=0)) + 1
        width = found if classes is None else len(classes)
        if found > width:
            raise DataError(f"expected class numbers below {width}, got {found - 1}")
        return "multi-class", max(width, 2)
    if array.ndim != 2:
        raise DataError(f"expected labels (n,) or (n, K), got shape {array.shape}")
    if classes is not None and len(classes) != array.shape[1]:
        raise DataError(f"{len(classes)} class names for {array.shape[1]} columns of labels")
    return "multi-label", array.shape[1]


def _read(split: str, pair: Pair, width: int, task: str) -> Arrays:
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise DataError(f"expected {split} as a pair (samples, labels), got {type(pair).__name__}")
    samples, labels = as_rows(pair[0]), to_numpy(pair[1], f"{split} labels")
    if len(samples) != len(labels):
        raise DataError(f"{split}: {len(samples)} samples but {len(labels)} labels")
    if samples.dtype.kind == "f":
        samples = samples.astype(np.float32)
    if task == "multi-class":
        if labels.ndim != 1 or (labels != np.floor(labels)).any() or labels.min(initial=0) < 0:
            raise DataError(f"expected {split} labels as class numbers from 0, one a sample")
        if labels.max(initial=0) >= width:
            raise DataError(f"{split} holds class {int(labels.max())}; there are {width} classes")
        hot = np.zeros((len(labels), width), dtype=np.uint8)
        hot[np.arange(len(labels)), labels.astype(np.int64)] = 1
    else:
        if labels.shape != (len(samples), width) or not np.isin(labels, (0, 1)).all():
            raise DataError(f"expected {split} labels of 0 and 1, shape ({len(samples)}, {width})")
        hot = labels.astype(np.uint8)
    digests = digest_samples(samples)
    keys = [row.tobytes() + label.tobytes() for row, label in zip(digests, hot, strict=True)]
    order = np.array(sorted(range(len(keys)), key=keys.__getitem__))
    ids = _name([digests[row].tobytes().hex()[:16] for row in order])
    return Arrays(samples[order], hot[order], ids, order)


def _name(names: list[str]) -> NDArray[np.str_]:
    """Number the names that occur more than once: equal samples are still several records."""
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return np.array(found)


def _identify(arrays: Arrays) -> str:
    """Return a digest of a split's samples and labels, which are in the order of their contents."""
    rows: NDArray[np.uint8] = np.concatenate([digest_samples(arrays.X), arrays.Y], axis=1)
    return digest_value(rows.tobytes().hex())
