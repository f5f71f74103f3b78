"""A finished run, opened to be used: its selected weights, and the records it was scored on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from seedless.core.config import Config
from seedless.core.digest import digest
from seedless.core.errors import ConfigError, RunError
from seedless.data.normalize import Scale
from seedless.runs.execute import Run
from seedless.runs.fit import load
from seedless.runs.folder import read_config
from seedless.runs.prepare import place, place_model, settle_execution
from seedless.runs.prepare_again import load_moved
from seedless.runs.records import Arrays, sort_records
from seedless.runs.user_model import ENTRY_HELP, GIVEN, load_entry, prepare_given
from seedless.train.loss import Loss, make_loss
from seedless.train.prediction import predict

# What a run is judged on, the best first, under the names that data and metrics have for it.
SPLITS = {"test": "test", "val": "validation"}


@dataclass(frozen=True, eq=False)
class Finished:
    """A run's model on its device, and a split of its data as measured: before normalization.

    Attributes:
        config: the run's, with the device it is opened on: its own, or the CPU where there is none.
        split: "test", or "validation" for a run without one.
        records: (n, ...) in the order in which the run's predictions lie.
        scale: how the model wants them; None where they already are so (a run of `fit`).
        leads: their names, and ``fs`` their rate, where they are recordings.
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

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return torch.device(self.config.execution.device)

    def normalize(self, records: NDArray[Any]) -> NDArray[Any]:
        """Return records as the model receives them."""
        return records if self.scale is None else self.scale.apply(records)

    def predict(self, records: NDArray[Any]) -> NDArray[np.float64]:
        """Return probabilities (n, K) of as many records as the split has, before normalization.

        Of the split's own records they are those the run wrote down, bit for bit where it ran.
        """
        arrays = Arrays(self.normalize(records), self.labels, self.ids)
        split = place(arrays, self.device, self.config.execution.storage)
        return predict(self.run.model, split, self.loss, self.config)


def open_finished(
    run: str | Path, *, entry: str | None = None, data: str | None = None
) -> Finished:
    """Open a run: the weights must be those of its receipt, and the data those it was made of.

    Args:
        run: the run folder.
        entry: for a run of `fit`, "package.module:function" that gives its model and arrays.
        data: where the data lie now, if not where they lay then.
    """
    path = Path(run)
    config = _settle(read_config(path))
    return _open_given(path, config, entry) if entry else _open_named(path, config, data)


def check_out(run: Path, out: Path, force: bool) -> None:
    """Refuse a file that would replace something, or lie in a run folder, which is sealed."""
    if out.exists() and (out.is_dir() or not force):
        raise RunError(f"{out} is there already; choose another file, or --force to replace it")
    if not out.absolute().parent.is_dir():
        raise RunError(f"cannot write {out}: there is no folder {out.absolute().parent}")
    if run.resolve() in out.resolve().parents:
        raise RunError(
            f"{out} would lie in the run folder, whose receipt covers every file in it: "
            "`seedless verify` would find it added. Write it elsewhere"
        )


def _settle(config: Config) -> Config:
    """Set flags and threads as the run had them; a GPU's run is read on the CPU where need be."""
    device = config.execution.device
    if device == "cuda" and not torch.cuda.is_available():
        device = "cpu"
    precision = "fp32" if device == "cpu" else config.execution.precision
    return settle_execution(
        config.change(execution={"device": device, "mode": "eager", "precision": precision})
    )


def _open_named(path: Path, config: Config, place_of_data: str | None) -> Finished:
    if config.model.name == GIVEN:
        raise ConfigError(f"{path} is a run of fit(): {ENTRY_HELP}")
    run = load(path)
    claims = run.claims
    data = sort_records(load_moved(config, place_of_data))
    if data.digest != claims["data"]["digest"]:
        raise RunError(
            f"{path} was made of other data than {config.data.name} holds now: expected "
            f"{claims['data']['digest']}, found {data.digest}"
        )
    split = _choose_split(path, {name for name in data.protocol if len(data.rows(name))})
    part = data.take(data.rows(split))
    place_model(run.model, torch.device(config.execution.device), data.X.ndim == 4)
    scale = claims["data"]["scale"]
    return Finished(
        run=_check_weights(run),
        config=config,
        loss=_make_loss(config, part.Y, data.task, run),
        split=SPLITS[split],
        classes=data.classes,
        task=data.task,
        records=part.X,
        labels=part.Y,
        ids=part.ids,
        scale=Scale(tuple(scale["mean"]), tuple(scale["deviation"])),
        leads=data.leads,
        fs=data.fs,
    )


def _open_given(path: Path, config: Config, entry: str) -> Finished:
    if config.model.name != GIVEN:
        raise ConfigError(f"{path} is not a run of fit(): leave --entry out")
    prepared = prepare_given(config, load_entry(entry))
    run = load(path, model=prepared.problem.model)
    if prepared.facts["data"]["digest"] != run.claims["data"]["digest"]:
        raise RunError(f"{path} was made of other arrays than {entry} gives")
    parts = {"test": prepared.test, "val": prepared.problem.val}
    split = _choose_split(path, {name for name, part in parts.items() if part is not None})
    part = parts[split]
    assert part is not None
    return Finished(
        run=_check_weights(run),
        config=config,
        loss=prepared.problem.loss,
        split=SPLITS[split],
        classes=prepared.classes,
        task=str(prepared.facts["data"]["task"]),
        records=part.samples.cpu().numpy(),
        labels=part.labels.cpu().numpy().astype(np.uint8),
        ids=part.ids,
        scale=None,
    )


def _choose_split(path: Path, found: set[str]) -> str:
    for name in SPLITS:
        if name in found:
            return name
    raise RunError(f"{path} has neither test nor validation records: there is nothing to look at")


def _check_weights(run: Run) -> Run:
    if digest(run.model) != run.digest:
        raise RunError(
            f"{run.path}: the weights are not those its receipt names; they were changed"
        )
    return run


def _make_loss(config: Config, labels: NDArray[np.uint8], task: str, run: Run) -> Loss:
    """Return the run's loss. Only its way to probabilities is used, which labels do not change."""
    execution = config.execution
    device = torch.device(execution.device)
    return make_loss(config.loss, labels, task, run.model, device, execution.arithmetic)


def describe(finished: Finished) -> Mapping[str, Any]:
    """Return what every verb that opens a run says of it, as plain values."""
    return {
        "run": str(finished.run.path),
        "split": finished.split,
        "device": finished.config.execution.device,
        "weights": finished.run.digest,
    }
