"""Open a finished run to use it: `load` its model, or `open_run` with the records it was scored on.

The folder is validated first, and the weights that are used are the bytes that were validated. The
data must have the digest that the receipt names.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load as load_tensors
from torch import nn

from seedless.core.config import FILE_KEYS, Config
from seedless.core.digests import name_tensors
from seedless.core.errors import FORCE, ConfigError, RunError
from seedless.core.files import AnyPath
from seedless.data.model_inputs import Arrays, are_too_large, scale_samples, sort_records
from seedless.data.normalize import Scale
from seedless.models import build
from seedless.proof.receipt import WEIGHTS, get_content_digest
from seedless.runs.finished_run import Run
from seedless.runs.model_preparation import move_model
from seedless.runs.prepare import USER_MODEL, configure_execution, make_split
from seedless.runs.run_data import load_run_data
from seedless.runs.streamed_results import has_user_loss
from seedless.runs.user_model import ENTRY_HELP, UserModel, load_entry, prepare_user_model
from seedless.runs.validation import ValidatedRun, open_validated
from seedless.train.loss import Loss, make_loss
from seedless.train.prediction import predict
from seedless.train.training_problem import DataSplit

# The splits a run can be opened with, in order of preference: name in the data -> in the metrics.
SPLITS = {"test": "test", "val": "validation"}


@dataclass(frozen=True, eq=False)
class OpenRun:
    """A run's model on its device, and a split of its data before normalization.

    Attributes:
        config: the run's, with the device it is opened on: the CPU where the run's own is missing.
        split: "test", or "validation" for a run without a test split.
        records: (n, ...) in the order of the run's predictions.
        scale: the normalization the model expects; None for a run of `fit`, which has none.
        leads: names of the leads, ``fs`` the sampling rate in Hz, and ``units`` the unit of the
            samples, where records are signals and the data say so.
    """

    run: Run
    config: Config
    loss: Loss
    split: str
    classes: tuple[str, ...]
    task: str
    records: NDArray[Any]
    labels: NDArray[np.uint8]
    ids: NDArray[np.str_]
    scale: Scale | None
    leads: tuple[str, ...] | None = None
    fs: float | None = None
    units: str | None = None

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return torch.device(self.config.execution.device)

    def normalize(self, records: NDArray[Any]) -> NDArray[Any]:
        """Return records as the model receives them."""
        return records if self.scale is None else self.scale.apply(records)

    def predict(self, records: NDArray[Any]) -> NDArray[np.float64]:
        """Return probabilities (n, K), float64, of n = len(self.records) records.

        Pass the records before normalization. For the split's own records the result equals the
        run's predictions, bit for bit on the kind of machine it ran on.
        """
        arrays = Arrays(records, self.labels, self.ids)
        if self.scale is not None:
            large = are_too_large(records)
            arrays = scale_samples(self.scale, records, self.labels, self.ids, large)
        split = make_split(arrays, self.device, self.config.execution.storage)
        return predict(self.run.model, split, self.loss, self.config)


def load(run: AnyPath, model: nn.Module | None = None) -> Run:
    """Return a finished run with its selected weights in a model.

    Args:
        run: the run folder.
        model: for a run of `fit`, the model to put the weights into.

    Example:
        >>> seedless.load("runs/demo").model(samples)
    """
    return load_model(open_validated(run), model)


def load_model(run: ValidatedRun, model: nn.Module | None = None) -> Run:
    """Return a run that was validated with its selected weights in a model, as `load` does."""
    path, settings = run.path, run.config.model
    if model is None:
        if settings.name == USER_MODEL:
            raise ConfigError(f"{path} is a run of fit(): pass the model to put its weights into")
        model = build(**settings.model_dump())
    weights = load_tensors(run.read_file(WEIGHTS))
    tensors = name_tensors(model)
    if set(weights) != set(tensors):
        name = min(set(weights) ^ set(tensors))
        raise RunError(f"{path / WEIGHTS} does not fit the model: only one of them has {name!r}")
    with torch.no_grad():
        for name, tensor in tensors.items():
            if tensor.shape != weights[name].shape:
                raise RunError(
                    f"{path / WEIGHTS}: {name} has shape {tuple(weights[name].shape)}, the model's "
                    f"{tuple(tensor.shape)}"
                )
            tensor.copy_(weights[name])
    return Run(path, run.receipt, model.eval())


def open_run(
    run: AnyPath,
    *,
    entry: str | None = None,
    data: str | None = None,
    user: UserModel | None = None,
) -> OpenRun:
    """Return a run's model and the records it was scored on; both must match the receipt.

    Args:
        run: the run folder.
        entry: for a run of `fit`, "package.module:function" that returns its model and arrays.
        data: where the data are now, if they were moved.
        user: for a run of `fit`, its model and arrays themselves, in place of ``entry``.

    Example:
        >>> opened = open_run("runs/demo")
        >>> opened.predict(opened.records)
    """
    validated = open_validated(run)
    config = _configure(validated.config)
    if entry is not None or user is not None:
        return _open_user_model(validated, config, user or load_entry(entry or ""))
    return _open_named(validated, config, data)


def check_output_file(run: Path, out: Path, force: bool) -> None:
    """Refuse an output file that would replace another, or be inside the run folder."""
    if out.exists() and (out.is_dir() or not force):
        raise RunError(f"{out} is there already; choose another file, or replace it with {FORCE}")
    if not out.absolute().parent.is_dir():
        raise RunError(f"cannot write {out}: there is no folder {str(out.absolute().parent)!r}")
    if run.resolve() in out.resolve().parents:
        raise RunError(
            f"{out} would be inside the run folder, whose receipt covers every file in it: "
            "`seedless verify` would find it added. Write it elsewhere"
        )


def _configure(config: Config) -> Config:
    """Set flags and threads as the run had them; without a GPU, open its runs on the CPU."""
    device = config.execution.device
    if device == "cuda" and not torch.cuda.is_available():
        device = "cpu"
    precision = "fp32" if device == "cpu" else config.execution.precision
    return configure_execution(
        config.change(execution={"device": device, "mode": "eager", "precision": precision})
    )


def _open_named(validated: ValidatedRun, config: Config, moved_to: str | None) -> OpenRun:
    path = validated.path
    if config.model.name == USER_MODEL:
        raise ConfigError(f"{path} is a run of fit(): {ENTRY_HELP}")
    run = load_model(validated)
    claims = run.claims
    data = sort_records(load_run_data(config, moved_to).data)
    if data.digest != (expected := get_content_digest(claims)):
        raise RunError(
            f"{path} was made of other data than {config.data.name} holds now: expected "
            f"{expected}, found {data.digest}"
        )
    split = _choose_split(path, {name for name in data.protocol if len(data.rows(name))})
    part = data.take(data.rows(split))
    device = torch.device(config.execution.device)
    move_model(run.model, device, data.X.ndim == 4)
    scale = claims["data"]["scale"]
    return OpenRun(
        run=run,
        config=config,
        # Only its map to probabilities is used, which does not depend on the labels.
        loss=make_loss(
            config.loss, part.Y, data.task, run.model, device, config.execution.arithmetic
        ),
        split=SPLITS[split],
        classes=data.classes,
        task=data.task,
        records=part.X,
        labels=part.Y,
        ids=part.ids,
        scale=Scale(tuple(scale["mean"]), tuple(scale["deviation"])),
        leads=data.leads,
        fs=data.fs,
        units=data.units,
    )


def _open_user_model(validated: ValidatedRun, config: Config, user: UserModel) -> OpenRun:
    path = validated.path
    if config.model.name != USER_MODEL:
        raise ConfigError(f"{path} is not a run of fit(): leave --entry out, and model=")
    if has_user_loss(validated.claims):
        raise RunError(
            f"{path} is a run with a loss of its own: its outputs are no probabilities of classes, "
            "which this needs. `seedless.load(run, model=...)` gives its model"
        )
    if config.init.weights_digest is not None:  # its own weights come next: no file is needed
        config = config.change(init={"basis": "given", **dict.fromkeys(FILE_KEYS)})
        user = replace(user, weights=None)
    prepared = prepare_user_model(config, user)
    run = load_model(validated, prepared.problem.model)
    if prepared.facts["data"]["content"] != get_content_digest(run.claims):
        raise RunError(f"{path} was made of other arrays than those given")
    parts = {"test": prepared.test, "val": prepared.problem.val}
    split = _choose_split(path, {name for name, part in parts.items() if part is not None})
    part, loss = parts[split], prepared.problem.loss
    assert isinstance(part, DataSplit)
    assert isinstance(loss, Loss)
    return OpenRun(
        run=run,
        config=config,
        loss=loss,
        split=SPLITS[split],
        classes=prepared.classes,
        task=str(prepared.facts["data"]["task"]),
        records=part.samples.cpu().numpy(),
        labels=part.labels.cpu().numpy().astype(np.uint8),
        ids=part.ids,
        scale=None,
    )


def _choose_split(path: Path, available: set[str]) -> str:
    for name in SPLITS:
        if name in available:
            return name
    raise RunError(f"{path} has neither test nor validation records: there is nothing to open")


def describe_run(opened: OpenRun) -> Mapping[str, Any]:
    """Return what every command that opens a run prints of it, as plain values."""
    return {
        "run": str(opened.run.path),
        "split": opened.split,
        "device": opened.config.execution.device,
        "weights": opened.run.digest,
    }
