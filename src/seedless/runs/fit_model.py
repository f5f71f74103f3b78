"""`fit`: train a user's own model on their own arrays, into a run folder with a receipt."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from seedless.core.config import Config
from seedless.core.errors import RunError
from seedless.numerics.determinism import preserve_flags
from seedless.proof.receipt import FILE as RECEIPT
from seedless.proof.receipt import get_content_digest
from seedless.runs.folder import CONFIG, Run
from seedless.runs.opened_run import load_model
from seedless.runs.prepare import Prepared
from seedless.runs.progress import TrainingProgress
from seedless.runs.resume import resume_run
from seedless.runs.train import train_run
from seedless.runs.user_model import Model, Pair, UserModel, prepare_user_model, read_settings
from seedless.runs.validation import open_validated


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
    """Train your model on your arrays, to the same bits every time; write and return the run.

    Threads and torch's flags are set for the run and restored afterwards.

    Args:
        model: any nn.Module, or a function that makes one. It is initialized without a seed
            (`init.basis` "dct", or "mixed" where stages are marked); `init.basis` "given" keeps
            the weights it has. Use seedless.Dropout in place of nn.Dropout.
        train: (samples, labels): (n, ...) as the model receives them, and class numbers (n,) or
            zeros and ones (n, K).
        val: the pair that the best epoch is selected on; without it the last one is used.
        test: the pair that the selected weights are scored on, once.
        classes: names of the classes.
        config: sections of settings, {"train": {"epochs": 20}, "order": {"batch_size": 64}}, a
            TOML file or a preset's name. Its model section is not used, and of its data section
            only `repeated`, the number of records that may be in two splits.
        out: the run folder; by default the next free runs/fit-001, runs/fit-002, ...
        force: replace a run that is there.
        resume: continue the run in ``out`` if it was killed; a finished one is returned.
        progress: show progress on standard error.

    Example:
        >>> run = seedless.fit(net, train=(X, Y), val=(Xv, Yv), config={"train": {"epochs": 20}})
        >>> run.digest, run.metrics["validation"]["macro_auc"]
    """
    names = None if classes is None else tuple(classes)
    user = UserModel(model, train, val, test, names)
    preparer = partial(prepare_user_model, user=user)
    run = Path(out) if out is not None else _next_free(Path("runs"))
    display = TrainingProgress(run.name, shown=progress)
    observers = (display,)
    try:
        if resume and (run / RECEIPT).exists():
            return _load_same(run, preparer(read_settings(config)), config is not None)
        if resume and (run / CONFIG).exists():
            return resume_run(run, observers=observers, preparer=preparer, warn=display.say)
        settings = read_settings(config)
        return train_run(settings, run, force=force, observers=observers, preparer=preparer)
    finally:
        display.close()


def _load_same(run: Path, prepared: Prepared, configured: bool) -> Run:
    """Return the finished run of a folder, if it has the settings and data of this call."""
    validated = open_validated(run)
    claims = validated.claims
    other_settings = configured and claims["config"]["digest"] != prepared.config.digest
    if other_settings or get_content_digest(claims) != prepared.facts["data"]["content"]:
        raise RunError(
            f"{run} holds a finished run of another configuration or other data; choose another "
            "folder, or replace it with force=True"
        )
    return load_model(validated, prepared.problem.model)


def _next_free(folder: Path) -> Path:
    number = 1
    while (folder / f"fit-{number:03d}").exists():
        number += 1
    return folder / f"fit-{number:03d}"
