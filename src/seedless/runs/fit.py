"""`fit` for your model and your arrays, and `load` for any finished run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load as load_tensors
from torch import nn

from seedless.core.config import Config
from seedless.core.errors import ConfigError, RunError
from seedless.numerics.determinism import preserve_flags
from seedless.proof.light import read_left_out
from seedless.proof.receipt import FILE as RECEIPT
from seedless.proof.receipt import WEIGHTS, read_receipt
from seedless.runs.build import build_model
from seedless.runs.execute import Run, resume_run, train_run
from seedless.runs.folder import CONFIG, read_config
from seedless.runs.prepare import Prepared
from seedless.runs.progress import TrainingProgress
from seedless.runs.user_model import GIVEN, Given, Model, Pair, prepare_given, read_settings
from seedless.train.state_tensors import name_tensors


@preserve_flags()
def fit(
    model: Model,
    train: Pair,
    val: Pair | None = None,
    *,
    test: Pair | None = None,
    classes: Sequence[str] | None = None,
    config: Config | Mapping[str, Any] | str | Path | None = None,
    out: str | Path | None = None,
    force: bool = False,
    resume: bool = False,
    progress: bool = False,
) -> Run:
    """Train your model on your arrays, to the same bits every time, and seal the run.

    Threads and flags are set for the run, and are afterwards what they were.

    Args:
        model: any nn.Module, or a function that makes one. It is initialized without a seed
            (`init.basis` "dct", or "mixed" where stages are marked); `init.basis` "given" keeps
            the weights it has. Use seedless.Dropout in place of nn.Dropout.
        train: (samples, labels): (n, ...) as the model receives them, and class numbers (n,) or
            zeros and ones (n, K).
        val: what epochs are selected on; without it the last one is kept.
        test: what the selected weights are scored on, once.
        classes: names of the classes.
        config: sections of settings, {"train": {"epochs": 20}, "order": {"batch_size": 64}}, a
            TOML file or a preset's name. Its data and model sections are not used.
        out: the run folder; by default the next free runs/fit-001, runs/fit-002, ...
        force: replace a run that is there.
        resume: go on with the run in ``out`` if it was killed; nothing is done if it is finished.
        progress: show how far it is, on standard error.

    Example:
        >>> run = seedless.fit(net, train=(X, Y), val=(Xv, Yv), config={"train": {"epochs": 20}})
        >>> run.digest, run.metrics["validation"]["macro_auc"]
    """
    names = None if classes is None else tuple(classes)
    given = Given(model, train, val, test, names)
    make = partial(prepare_given, given=given)
    place = Path(out) if out is not None else _next_free(Path("runs"))
    shown = TrainingProgress(place.name, shown=progress)
    try:
        if resume and (place / RECEIPT).exists():
            return _match(place, make(read_settings(config)), config is not None)
        if resume and (place / CONFIG).exists():
            return resume_run(place, observers=(shown,), make=make, say=shown.say)
        settings = read_settings(config)
        return train_run(settings, place, force=force, observers=(shown,), make=make)
    finally:
        shown.close()


def _match(place: Path, prepared: Prepared, configured: bool) -> Run:
    """Return the finished run in a folder, if it is the one that was asked for."""
    claims = read_receipt(place)["predicate"]
    other_settings = configured and claims["config"]["digest"] != prepared.config.digest
    if other_settings or claims["data"]["digest"] != prepared.facts["data"]["digest"]:
        raise RunError(
            f"{place} holds a finished run of another configuration or other data; choose another "
            "folder, or replace it with force=True"
        )
    return load(place, model=prepared.problem.model)


def load(run: str | Path, model: nn.Module | None = None) -> Run:
    """Return a finished run with its selected weights in a model.

    A run of `fit` needs the ``model`` to put them into.
    """
    path = Path(run)
    receipt = read_receipt(path)
    chosen = read_config(path).model
    if model is None:
        if chosen.name == GIVEN:
            raise ConfigError(f"{path} is a run of fit(): pass the model to put its weights into")
        model = build_model(chosen)
    if WEIGHTS in read_left_out(path, receipt):
        raise RunError(
            f"{path} is a light run, without its weights: `seedless verify` executes it again, "
            "`seedless study bundle --weights` makes one that keeps them"
        )
    weights = load_tensors((path / WEIGHTS).read_bytes())
    tensors = name_tensors(model)
    if set(weights) != set(tensors):
        odd = sorted(set(weights) ^ set(tensors))
        raise RunError(f"{path / WEIGHTS} does not fit the model: {odd[0]!r} is in one of them")
    with torch.no_grad():
        for name, tensor in tensors.items():
            if tensor.shape != weights[name].shape:
                raise RunError(
                    f"{path / WEIGHTS}: {name} has shape {tuple(weights[name].shape)}, the model's "
                    f"{tuple(tensor.shape)}"
                )
            tensor.copy_(weights[name])
    return Run(path, receipt, model.eval())


def _next_free(folder: Path) -> Path:
    number = 1
    while (folder / f"fit-{number:03d}").exists():
        number += 1
    return folder / f"fit-{number:03d}"
