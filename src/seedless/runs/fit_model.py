"""`fit`: train a user's own model on their own data, into a run folder with a receipt."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from seedless.core.config import Config
from seedless.core.errors import RunError
from seedless.core.notebook import is_notebook
from seedless.core.rendezvous import is_first_process
from seedless.init.trained_signs import warn_of_discarded_weights
from seedless.numerics.saved_flags import run_by_itself
from seedless.proof.receipt import FILE as RECEIPT
from seedless.proof.receipt import get_content_digest
from seedless.runs.convergence import describe_failure
from seedless.runs.finished_run import Run
from seedless.runs.fit_settings import read_settings
from seedless.runs.folder import CONFIG, read_config
from seedless.runs.group import open_group
from seedless.runs.opened_run import load_model
from seedless.runs.prepare import Prepared
from seedless.runs.progress import TrainingProgress
from seedless.runs.resume import move_run, resume_run
from seedless.runs.train import train_run
from seedless.runs.user_functions import UserFunctions
from seedless.runs.user_model import Model, UserModel, prepare_user_model
from seedless.runs.validation import open_validated


@run_by_itself()
def fit(
    model: Model,
    train: Any,
    val: Any = None,
    *,
    test: Any = None,
    loss: Callable[[Any, Any], Any] | None = None,
    metrics: Mapping[str, Callable[[Any, Any], Any]] | None = None,
    optimizer: Callable[[nn.Module], torch.optim.Optimizer] | None = None,
    scheduler: Callable[[int, int], float] | None = None,
    collate: Callable[[list[Any]], Any] | None = None,
    key: Callable[[int], Any] | None = None,
    workers: int = 0,
    epochs: int | None = None,
    batch_size: int | None = None,
    digest_cache: str | Path | None = None,
    classes: Sequence[str] | None = None,
    weights: str | Path | None = None,
    reinitialize: Sequence[str] | None = None,
    config: Config | Mapping[str, Any] | str | Path | None = None,
    out: str | Path | None = None,
    force: bool = False,
    resume: bool = False,
    progress: bool | None = None,
) -> Run:
    """Train your model on your data, to the same bits every time; write and return the run.

    Threads and torch's flags are set for the run and restored afterwards.

    Args:
        model: any nn.Module, or a function that makes one. It is initialized without a seed
            (`init.basis` "canonical_kaiming" where you name none); "given" keeps the weights it
            has, and ``weights`` takes those of a file. Make its dropout seed-free before, with
            seedless.convert(model).
        train: (samples, labels): (n, ...) as the model receives them, and class numbers (n,) or
            zeros and ones (n, K). With ``loss`` also any (inputs, targets) of arrays, tuples and
            dicts of arrays, and any dataset with len(dataset) and dataset[index].
        val: the data that the best epoch is selected on; without them the last one is used.
        test: the data that the selected weights are scored on, once.
        loss: a function of the model's outputs and the targets that returns one loss, or one for
            each sample. Without it the labels decide: cross-entropy, or binary cross-entropy.
        metrics: functions of outputs and targets by name; their means over the samples are stored.
        optimizer: a function of the model that returns its optimizer.
        scheduler: a function of epoch and step, both from 0, that returns a factor on the
            optimizer's learning rates.
        collate: a function that makes (inputs, targets) of a batch from a list of samples.
        key: a function that returns a name for each index of the training data, such as a file
            name. It decides order and dropout, and spares the pass that hashes every sample first.
        workers: processes that read samples. They change the time and no bit.
        epochs: train.epochs of the configuration; ``batch_size`` is its order.batch_size.
        digest_cache: a folder that keeps the digests of the samples, to start sooner next time.
        classes: names of the classes.
        weights: a safetensors file to begin with, for fine-tuning; the receipt says which file it
            was. Every tensor of the model must be in it, except those that ``reinitialize`` names.
        reinitialize: names of tensors that are not taken from the file but started without a seed,
            with `*` for any characters: ["head.*"] for a new head.
        config: sections of settings, {"train": {"epochs": 20}, "order": {"batch_size": 64}}, a
            TOML file or a preset's name. Its model section is not used, and of its data section
            only `repeated`, the number of records that may be in two splits.
        out: the run folder; by default the next free runs/fit-001, runs/fit-002, ...
        force: replace a run that is there.
        resume: continue the run in ``out`` if it was killed; a finished one is returned.
        progress: show progress: a bar in a notebook, where that is the default, or else lines on
            standard error.

    Example:
        >>> run = seedless.fit(net, train=(X, Y), val=(Xv, Yv), epochs=20)
        >>> run.digest, run.metrics["validation"]["macro_auc"]
        >>> run.history["loss"].plot(), run.predict(Xv), run.report()
        >>> run = seedless.fit(unet, train=scans, val=more_scans, loss=dice_loss, workers=4)
    """
    shown = is_notebook() if progress is None else progress
    user = UserModel(
        model,
        train,
        val,
        test,
        None if classes is None else tuple(classes),
        UserFunctions(loss, optimizer, scheduler, collate, key, metrics),
        workers,
        None if digest_cache is None else Path(digest_cache),
        shown=shown,
        weights=weights,
    )
    preparer = partial(prepare_user_model, user=user)
    read = partial(
        read_settings, config, epochs=epochs, batch_size=batch_size, reinitialize=reinitialize
    )
    run = Path(out) if out is not None else _next_free(Path("runs"))
    first = is_first_process()
    display = TrainingProgress(run.name, shown=shown and first, notes=first)
    observers = (display,)
    try:
        if resume and (run / RECEIPT).exists():
            settings = (config, epochs, batch_size, weights, reinitialize)
            configured = any(setting is not None for setting in settings)
            return _load_same(run, preparer(read()), configured)
        if resume and (run / CONFIG).exists():
            with open_group(move_run(read_config(run), None, in_group=True)) as group:
                member = partial(preparer, group=group)
                return resume_run(
                    run, observers=observers, preparer=member, warn=display.say, group=group
                )
        parsed = read()
        if is_first_process() and weights is None and parsed.init.weights is None:
            warn_of_discarded_weights(model, parsed.init.basis, display.say)
        with open_group(parsed) as group:
            member = partial(preparer, group=group)
            finished = train_run(
                parsed, run, force=force, observers=observers, preparer=member, group=group
            )
        if finished.claims["metrics"].get("converged") is False:
            display.say(f"not converged: {describe_failure(finished.claims)}")
        return finished
    finally:
        display.close()


def _load_same(run: Path, prepared: Prepared, configured: bool) -> Run:
    """Return the finished run of a folder, if it has the settings and data of this call."""
    validated = open_validated(run)
    claims = validated.claims
    other_settings = configured and claims["config"]["digest"] != prepared.config.digest
    other_functions = claims.get("callables", []) != prepared.facts.get("callables", [])
    other_data = get_content_digest(claims) != prepared.facts["data"]["content"]
    if other_settings or other_data or other_functions:
        raise RunError(
            f"{run} holds a finished run of another configuration, other data or other functions; "
            "choose another folder, or replace it with force=True"
        )
    return load_model(validated, prepared.problem.model)


def _next_free(folder: Path) -> Path:
    number = 1
    while (folder / f"fit-{number:03d}").exists():
        number += 1
    return folder / f"fit-{number:03d}"
