"""A user's model and data as a training problem: for `fit`, and to execute its runs again."""

import importlib
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from torch import nn

from seedless.core.config import Config
from seedless.core.digests import as_rows, digest_samples, digest_value
from seedless.core.errors import ConfigError, DataError
from seedless.core.files import AnyPath
from seedless.core.weights_file import pin_weights, set_weights_path
from seedless.data.label_notes import describe_labels
from seedless.data.model_inputs import Arrays
from seedless.data.readers.content_ids import name_by_content
from seedless.data.splits import Contents, count_repeated, digest_facts, name_repeated
from seedless.init.starts import DEFAULT_START
from seedless.models.generator_layers import refuse_generator_layers
from seedless.runs.prepare import (
    USER_MODEL,
    Prepared,
    Preparer,
    build_problem,
    configure_execution,
    prepare,
)
from seedless.runs.prepare_streamed import prepare_streamed
from seedless.runs.run_data import load_run_data
from seedless.runs.user_data import refuse_without_loss
from seedless.runs.user_functions import NO_FUNCTIONS, UserFunctions, take_over_settings
from seedless.runs.user_labels import GIVE_LOSS, read_labels, read_task
from seedless.train.process_group import TrainingGroup

Pair = tuple[ArrayLike, ArrayLike]
Model = nn.Module | Callable[[], nn.Module]
_DATA = ("train", "val", "test")
_FUNCTIONS = tuple(item.name for item in fields(UserFunctions))
ENTRY_OPTION_HELP = (
    "--entry package.module:function, a function that returns {'model': ..., 'train': (X, Y), ...} "
    "with loss and the other functions that fit() had"
)
ENTRY_HELP = (
    "give what it was trained on: in Python model=make_model, train=(X, Y), ...; in the shell "
    f"{ENTRY_OPTION_HELP}"
)


@dataclass(frozen=True, eq=False)
class UserModel:
    """The arguments of `fit` that are not settings.

    Attributes:
        train, val, test: pairs of arrays; with a user-defined loss also datasets.
        workers: processes that read samples; they change no bit.
        digest_cache: a folder that keeps the digests of the samples.
        shown: whether progress is shown while samples are hashed.
        weights: the place of the file that the run begins with, before that of the configuration.
    """

    model: Model
    train: Any
    val: Any = None
    test: Any = None
    classes: tuple[str, ...] | None = None
    functions: UserFunctions = NO_FUNCTIONS
    workers: int = 0
    digest_cache: Path | None = None
    shown: bool = False
    weights: AnyPath | None = None


def prepare_user_model(
    config: Config, user: UserModel, group: TrainingGroup | None = None
) -> Prepared:
    """Return a training problem from a user's model and data.

    Samples are used unchanged: scale them before. Without a user-defined loss, labels are class
    numbers (n,), or zeros and ones (n, K). Each split is sorted by content, so the result does not
    depend on the order of the samples. The processes of a ``group`` hash samples that are not in
    arrays together.
    """
    makes_one = not isinstance(user.model, nn.Module) and callable(user.model)
    network = user.model() if makes_one else user.model
    if not isinstance(network, nn.Module):
        raise ConfigError(f"expected a model or a function that makes one, got {network!r}")
    if config.train.guard == "refuse":  # before samples are hashed, which may take minutes
        refuse_generator_layers(network)
    basis = config.init.basis
    if "basis" not in config.init.model_fields_set:  # the default of `Config` is for our networks
        basis = DEFAULT_START
    # A row of zeros is a label here ("none of the classes"), not a record without one.
    keep = "keep_unlabelled" not in config.order.model_fields_set or config.order.keep_unlabelled
    functions = user.functions
    config = take_over_settings(config, functions)
    if config.execution.mode == "auto" and (functions.loss or functions.optimizer):
        config = config.change(execution={"mode": "eager"})  # a CUDA graph needs our own
    config = configure_execution(config).change(
        data={"name": USER_MODEL}, init={"basis": basis}, order={"keep_unlabelled": keep}
    )
    config = pin_weights(set_weights_path(config, user.weights))
    splits = {"train": user.train, "val": user.val, "test": user.test}
    data = {split: part for split, part in splits.items() if part is not None}
    if functions.loss is None:
        return _prepare_classification(config, network, data, user)
    if user.classes is not None:
        raise ConfigError("classes= names the classes of our own losses: leave it out with loss=")
    return prepare_streamed(
        config.change(model={"name": USER_MODEL}),
        network,
        data,
        functions,
        workers=user.workers,
        cache=user.digest_cache,
        shown=user.shown,
        group=group,
    )


def _prepare_classification(
    config: Config, network: nn.Module, pairs: Mapping[str, Any], user: UserModel
) -> Prepared:
    """Return a problem with the configuration's own loss, from pairs of arrays in memory."""
    for name in ("collate", "key"):
        if getattr(user.functions, name) is not None:
            raise ConfigError(f"{name}= goes with datasets, which need loss= as well")
    for split, pair in pairs.items():
        refuse_without_loss(split, pair)
        _check_pair(split, pair)
    task, width = read_task(user.train[1], user.classes)
    names = user.classes or tuple(f"class {k}" for k in range(width))
    arrays = {split: _read_split(split, pair, width, task) for split, pair in pairs.items()}
    config = config.change(model={"name": USER_MODEL, "classes": width})
    contents = {split: digest_samples(part.X) for split, part in arrays.items()}
    facts = _describe_data(arrays, contents, task, names)
    notes = describe_labels(arrays["train"].Y, task, "labels") if user.classes is None else []
    prepared = build_problem(
        config, network, arrays, task, names, facts, "fit", user.functions, notes
    )
    rows = {
        split: [f"row {row}" for row in (part.ids if part.rows is None else part.rows)]
        for split, part in arrays.items()
    }
    return replace(prepared, repeated_record=name_repeated(contents, rows))


def choose_preparer(
    config: Config, entry: str | None, data: str | None, weights: AnyPath | None = None
) -> Preparer:
    """Return the function that prepares a run again.

    Args:
        config: the run's.
        entry: for a run of `fit`, "package.module:function" that returns its model and arrays.
        data: for any other run, where its data are now, if they were moved.
        weights: where the weights file that it began with is now, if it was moved.
    """
    if entry is not None:
        user = load_entry(entry)
        return partial(
            prepare_user_model, user=user if weights is None else replace(user, weights=weights)
        )
    if config.model.name == USER_MODEL:
        raise ConfigError(f"this is a run of fit(): {ENTRY_HELP}")
    return partial(_prepare_from, moved_to=data, weights=weights)


def _prepare_from(config: Config, moved_to: str | None, weights: AnyPath | None) -> Prepared:
    """Prepare a run again from its data and weights, wherever they are now."""
    found = load_run_data(config, moved_to)
    prepared = prepare(set_weights_path(config, weights), found.data)
    return replace(prepared, data_source=found.source)


def load_entry(entry: str) -> UserModel:
    """Call "package.module:function" and return the arguments of `fit` that it returns."""
    module, _, function = entry.partition(":")
    if not module or not function:
        raise ConfigError(f"expected --entry as package.module:function, got {entry!r}")
    # The module may be in the current directory. That comes last on the import path: a file there
    # must not take the place of a package that we import, now or later.
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        made = getattr(importlib.import_module(module), function)()
    except Exception as error:  # the code is not ours: whatever it raises is the message
        raise ConfigError(
            f"--entry {entry} cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    known = {"model", *_DATA, "classes", "workers", "weights", *_FUNCTIONS}
    if not isinstance(made, Mapping) or not {"model", "train"} <= set(made) <= known:
        raise ConfigError(
            f"expected {entry} to return a mapping with 'model' and 'train', and where used "
            f"{', '.join(map(repr, sorted(known - {'model', 'train'})))}; got "
            f"{sorted(made) if isinstance(made, Mapping) else repr(made)}"
        )
    functions = {name: made[name] for name in _FUNCTIONS if name in made}
    rest = {name: value for name, value in made.items() if name not in _FUNCTIONS}
    return UserModel(**rest, functions=UserFunctions(**functions))


def _check_pair(split: str, pair: Any) -> None:
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise DataError(
            f"expected {split} as a pair (samples, labels), got {type(pair).__name__}; for "
            f"example {split}=(X, y)"
        )


def _read_split(split: str, pair: Pair, width: int, task: str) -> Arrays:
    """Check one split and return it with labels as zeros and ones (n, K), sorted by content."""
    samples, labels = as_rows(pair[0]), read_labels(pair[1], f"{split} labels")
    if len(samples) != len(labels):
        raise DataError(f"{split}: {len(samples)} samples but {len(labels)} labels")
    if samples.dtype.kind == "f":
        samples = samples.astype(np.float32)
    if task == "multi-class":
        if labels.ndim != 1:
            raise DataError(f"expected {split} labels (n,), got shape {labels.shape}")
        wrong = (labels != np.floor(labels)) | (labels < 0)
        if wrong.any():
            raise DataError(
                f"expected {split} labels as class numbers from 0, one a sample, got "
                f"{labels[wrong][0]}: for a regression and other targets {GIVE_LOSS}"
            )
        if labels.max(initial=0) >= width:
            raise DataError(f"{split} holds class {int(labels.max())}; there are {width} classes")
        hot = np.zeros((len(labels), width), dtype=np.uint8)
        hot[np.arange(len(labels)), labels.astype(np.int64)] = 1
    else:
        if labels.shape != (len(samples), width) or not np.isin(labels, (0, 1)).all():
            raise DataError(
                f"expected {split} labels of 0 and 1, shape ({len(samples)}, {width}), got shape "
                f"{labels.shape} with values from {labels.min(initial=0):g} to "
                f"{labels.max(initial=0):g}; class numbers have the shape ({len(labels)},)"
                + (": labels.ravel()" if labels.shape[1:] == (1,) else "")
            )
        hot = labels.astype(np.uint8)
    digests = digest_samples(samples)
    keys = [row.tobytes() + label.tobytes() for row, label in zip(digests, hot, strict=True)]
    order = np.array(sorted(range(len(keys)), key=keys.__getitem__))
    ids = name_by_content(digests[order], hot[order])
    return Arrays(samples[order], hot[order], ids, order)


def _describe_data(
    arrays: Mapping[str, Arrays], contents: Contents, task: str, classes: tuple[str, ...]
) -> dict[str, Any]:
    """Return what a receipt states of the arrays of `fit`; each split is sorted by content."""
    rows = {
        split: np.concatenate([contents[split], part.Y], axis=1) for split, part in arrays.items()
    }
    splits = {split: digest_value(part.tobytes().hex()) for split, part in rows.items()}
    facts = {
        "name": USER_MODEL,
        "content": digest_value(splits),
        "protocol": None,  # the splits were given one by one
        "splits": splits,
        "records": {split: len(part) for split, part in rows.items()},
        "repeated": count_repeated(contents),
        "task": task,
        "classes": list(classes),
        "scale": None,
    }
    return {**facts, "digest": digest_facts(facts)}
