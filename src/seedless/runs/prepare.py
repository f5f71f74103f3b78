"""Prepare a training problem from a configuration: data, model, first weights, order, device.

configure_execution -> load, sort and scale data -> build the model -> build_problem
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from seedless.core.config import Config
from seedless.core.dataset import ROW_NUMBERS, Dataset
from seedless.core.digests import keys_from_digests
from seedless.core.errors import ConfigError, DataError
from seedless.core.registry import choose
from seedless.core.setting_choices import DEVICES
from seedless.core.threads import count_usable_cores
from seedless.core.weights_file import pin_weights
from seedless.data.loading import load
from seedless.data.model_inputs import Arrays, SortedData
from seedless.data.splits import describe_dataset, group_contents, name_repeated
from seedless.evaluate.auc import macro_auc
from seedless.evaluate.predictions import check_count
from seedless.models import MODELS, build
from seedless.numerics.determinism import make_deterministic
from seedless.ordering import ORDERS, make_order
from seedless.ordering.order import make_digest_order
from seedless.runs.convergence import describe_warmup
from seedless.runs.model_preparation import check_model, initialize_model, move_model
from seedless.runs.user_functions import NO_FUNCTIONS, UserFunctions, make_any_optimizer
from seedless.train.arithmetic import PRECISIONS, check_arithmetic
from seedless.train.draw_check import check_evaluation_draws
from seedless.train.learning_rate import DECAYS
from seedless.train.loop import check_settings
from seedless.train.loss import make_loss
from seedless.train.optimizer import OPTIMIZERS
from seedless.train.step_modes import STEP_MODES
from seedless.train.streamed_evaluation import Metrics
from seedless.train.training_problem import (
    DataSplit,
    StreamedSplit,
    TrainingProblem,
)

# The configuration's name for a user's own model and arrays: data.name and model.name of `fit`.
USER_MODEL = "given"


@dataclass(frozen=True, eq=False)
class Prepared:
    """A training problem, and what a receipt says of how it was made.

    Attributes:
        test: the split that the selected weights are scored on once, at the end.
        kind: "train" for a configuration, "fit" for a user's own model.
        facts: "data", "initialization" and "model" of the receipt, and "callables" where the user
            gave functions, as plain values.
        repeated_record: a record that is in two splits, in words; "" where there is none.
        data_source: in words where the data came from, for a verdict; "" where that needs none.
        metrics: the user's, by which a run with a user-defined loss is scored.
    """

    problem: TrainingProblem
    test: DataSplit | StreamedSplit | None
    classes: tuple[str, ...]
    kind: str
    facts: Mapping[str, Any]
    repeated_record: str = ""
    data_source: str = ""
    metrics: Metrics | None = None

    @property
    def config(self) -> Config:
        """The resolved configuration."""
        return self.problem.config


Preparer = Callable[[Config], Prepared]


def prepare(config: Config, data: Dataset | SortedData | None = None) -> Prepared:
    """Load, check and build everything a configuration names; nothing is trained.

    ``data``: what the configuration would load, where the caller has it already.
    """
    config = configure_execution(config)
    check_names(config)
    config = pin_weights(config)
    if not isinstance(data, SortedData):
        data = SortedData(load(config.data) if data is None else data)
    records = data.data
    config = resolve(config, records)
    # The fields of a section of the configuration are the arguments of what it configures.
    model = build(**config.model.model_dump())
    scale, arrays = data.scale(config.data.normalize or "global")
    facts = {
        "name": Path(config.data.name).name,
        **describe_dataset(records),
        "shape": list(records.X.shape[1:]),
        "leads": None if records.leads is None else list(records.leads),
        "fs": records.fs,
        "scale": {"mean": list(scale.mean), "deviation": list(scale.deviation)},
    }
    prepared = build_problem(
        config,
        model,
        arrays,
        records.task,
        records.classes,
        facts,
        "train",
        notes=records.warnings,
    )
    names = {split: part.ids.tolist() for split, part in arrays.items()}
    repeated = name_repeated(group_contents(records), names)
    if repeated and records.provenance.get("ids") == ROW_NUMBERS:
        repeated += f" (`seedless data check {config.data.name}` says in which rows)"
    return replace(prepared, repeated_record=repeated)


def build_problem(
    config: Config,
    model: nn.Module,
    arrays: Mapping[str, Arrays],
    task: str,
    classes: tuple[str, ...],
    data_facts: Mapping[str, Any],
    kind: str,
    functions: UserFunctions = NO_FUNCTIONS,
    notes: Sequence[str] = (),
) -> Prepared:
    """Initialize the model, order the samples, and move everything to the device.

    Args:
        model: not initialized yet; ``init.basis`` "given" keeps its weights.
        arrays: samples and labels by split; "train" must be there.
        task: "multi-class" or "multi-label".
        data_facts: what the receipt says of the data.
        kind: as in `Prepared`.
        functions: the user's optimizer and scheduler, where there are.
        notes: what a user should know of the data, in words.
    """
    # [Step 1] What will be scored, then the first weights. Without a validation split it is all.
    scored = [arrays[split].X for split in arrays if split != "train" or "val" not in arrays]
    check_count(sum(map(len, scored)), len(classes))
    facts = {"data": dict(data_facts), **initialize_model(config, model)}
    if callables := functions.describe():
        facts["callables"] = callables
    # [Step 2] The batch order over the labelled training samples, and a key for each sample.
    known = arrays["train"] if config.order.keep_unlabelled else keep_labelled(arrays["train"])
    images = known.X.ndim == 4
    if (config.augment.padding or config.augment.flip) and not images:
        raise ConfigError("augment moves images; these samples are signals: leave it out")
    settings = {"labels": known.Y, **config.order.model_dump()}
    if known.values is None:
        order = make_order(X=known.X, **settings)
    else:  # expanded for their digests block by block, and never all at once
        order = make_digest_order(digests=known.digest(), **settings)
    keys = np.empty(len(known.X), dtype=np.int64)
    keys[order.samples.rows] = keys_from_digests(order.samples.digests)
    # [Step 3] Everything on the device.
    device, storage = torch.device(config.execution.device), config.execution.storage
    move_model(model, device, images)
    optimizer, rates = make_any_optimizer(config.train, functions, model, device)
    problem = TrainingProblem(
        config=config,
        model=model,
        optimizer=optimizer,
        order=order,
        loss=make_loss(config.loss, known.Y, task, model, device, config.execution.arithmetic),
        score=macro_auc,
        train=make_split(known, device, storage),
        keys=torch.from_numpy(keys).to(device),
        val=make_split(arrays["val"], device, storage) if "val" in arrays else None,
        rates=rates,
        notes=(
            *notes,
            *_describe_unlabelled(len(arrays["train"].X), len(known.X)),
            *describe_warmup(config, len(known.X)),
        ),
    )
    # [Step 4] Refuse now what would fail in the first step.
    check_settings(problem)
    check_evaluation_draws(problem, partial(check_model, problem, len(classes)))
    test = make_split(arrays["test"], device, storage) if "test" in arrays else None
    return Prepared(problem, test, classes, kind, facts)


def keep_labelled(arrays: Arrays) -> Arrays:
    """Return the samples that have at least one label."""
    labelled = np.flatnonzero(arrays.Y.any(axis=1))
    if len(labelled) == 0:
        raise DataError("expected labelled training samples, found none")
    rows = None if arrays.rows is None else arrays.rows[labelled]
    if len(labelled) == len(arrays.X):
        return arrays
    return replace(
        arrays, X=arrays.X[labelled], Y=arrays.Y[labelled], ids=arrays.ids[labelled], rows=rows
    )


def _describe_unlabelled(records: int, labelled: int) -> list[str]:
    """Return a note on the training records that are left out, where there are any."""
    if labelled == records:
        return []
    return [
        f"{records - labelled:,} of {records:,} training records have no label and are left out; "
        "order.keep_unlabelled = true keeps them"
    ]


def configure_execution(config: Config) -> Config:
    """Set flags and threads; return the configuration with device, mode and threads filled in."""
    execution = config.execution
    choose("device", execution.device, dict.fromkeys(DEVICES))
    has_cuda = torch.cuda.is_available()
    if execution.device == "cuda" and not has_cuda:
        raise ConfigError("execution.device is cuda, and torch finds no CUDA device here; use cpu")
    device = ("cuda" if has_cuda else "cpu") if execution.device == "auto" else execution.device
    threads = execution.threads or count_usable_cores()
    choose("precision", execution.precision, dict.fromkeys(PRECISIONS))
    choose("execution mode", execution.mode, dict.fromkeys((*STEP_MODES, "auto")))
    choose("storage", execution.storage, STORAGE)
    check_arithmetic(config)
    automatic = "graph" if device == "cuda" else "eager"
    mode = automatic if execution.mode == "auto" else execution.mode
    if mode == "graph" and device == "cpu":
        raise ConfigError("execution.mode is graph, which belongs to a CUDA device; use eager")
    if execution.precision == "tf32" and device == "cpu":
        raise ConfigError("execution.precision is tf32, which a CPU does not have; use fp32")
    make_deterministic(threads=threads, tf32=execution.precision == "tf32")
    return config.change(execution={"device": device, "threads": threads, "mode": mode})


def check_names(config: Config) -> None:
    """Refuse an unknown name before any data is read."""
    choose("model", config.model.name, MODELS)
    choose("order", config.order.name, ORDERS)
    choose("optimizer", config.train.optimizer, OPTIMIZERS)
    choose("decay", config.train.decay, dict.fromkeys(DECAYS))
    if config.init.basis == "given":
        raise ConfigError("init.basis is given, which belongs to fit(): a model by name has none")


def resolve(config: Config, data: Dataset) -> Config:
    """Fill in the settings that the data decide; refuse a configuration that contradicts them."""
    input_name = MODELS[config.model.name].input_name
    if (input_name == "leads") != (data.X.ndim == 3):
        kind, advice = "images", "the preset images-small is for them"
        if data.X.ndim == 3:
            kind = "recordings (leads, time)"
            advice = "the preset ecg-small is for them; if they are grey images, store X[:, None]"
        raise ConfigError(
            f"model.name is {config.model.name!r}, which takes {input_name}, but {data.name} holds "
            f"{kind}; {advice}"
        )
    if data.task == "multi-class" and len(data.classes) < 2:
        raise ConfigError(
            f"{data.name}: expected at least two classes in Y, found one, {data.classes[0]!r}: "
            "there is nothing to tell apart"
        )
    sizes = {input_name: data.X.shape[1], "classes": len(data.classes)}
    for key, value in sizes.items():
        setting = getattr(config.model, key)
        if setting is not None and setting != value:
            raise ConfigError(
                f"model.{key} is {setting}, but {data.name} has {value} {key}; leave model.{key} "
                "out, or choose other data"
            )
    # 0..255 is what bytes can be; pixels of other types have any range, such as 0..1.
    of_bytes = data.X.ndim == 4 and data.X.dtype == np.uint8
    normalize = config.data.normalize or ("pixels" if of_bytes else "global")
    loss = config.loss.name or ("cross_entropy" if data.task == "multi-class" else "bce")
    return config.change(model=sizes, data={"normalize": normalize}, loss={"name": loss})


# How samples are stored during a run: their dtype, and whether they are on the device.
STORAGE = {
    "float32": (torch.float32, True),
    "float16": (torch.float16, True),
    "host": (torch.float32, False),
}


def make_split(arrays: Arrays, device: torch.device, storage: str) -> DataSplit:
    """Return a split as tensors, stored as ``execution.storage`` says.

    Their strides do not depend on those of the arrays: torch chooses kernels by them, and kernels
    differ in bits.
    """
    dtype, resident = STORAGE[storage]
    values = None
    if arrays.values is None:
        # -0.0 becomes 0.0, as it is in the digests
        samples = torch.from_numpy(np.add(arrays.X, 0, order="C"))
    else:
        samples = torch.from_numpy(arrays.X).reshape(-1).view(arrays.X.shape)
        values = torch.from_numpy(arrays.values).to(device).to(dtype).float()
    samples = samples.to(device if resident else "cpu")
    if samples.is_floating_point():
        samples = samples.to(dtype)
    if samples.ndim == 4 and device.type == "cuda":  # the layout its convolutions are fastest in
        samples = samples.contiguous(memory_format=torch.channels_last)
    return DataSplit(
        samples=samples,
        labels=torch.from_numpy(arrays.Y.astype(np.float32)).to(device),
        ids=arrays.ids,
        rows=arrays.rows,
        values=values,
    )
