"""Verify a run: validate its folder, execute it again, and say which of four things is true."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from seedless.audit.reexecute import choose_device, replay
from seedless.audit.validate import validate
from seedless.audit.verdict import Verdict
from seedless.audit.worker import run_worker
from seedless.core.errors import ConfigError, RunError
from seedless.numerics.determinism import preserve_flags
from seedless.proof.bundle import EXTRA, is_bundle, open_bundle
from seedless.proof.receipt import read_receipt
from seedless.proof.signature import SignatureError, check_signature
from seedless.proof.source import digest_source
from seedless.runs.prepare_again import choose_maker
from seedless.runs.user_model import (
    ENTRY_HELP,
    GIVEN,
    Given,
    Model,
    Pair,
    prepare_given,
)


@preserve_flags()
def verify(
    run: str | Path,
    *,
    model: Model | None = None,
    train: Pair | None = None,
    val: Pair | None = None,
    test: Pair | None = None,
    classes: tuple[str, ...] | None = None,
    entry: str | None = None,
    data: str | None = None,
    segment: int | None = None,
    device: str | None = None,
    validate_only: bool = False,
    public_key: str | Path | None = None,
    progress: bool = False,
) -> Verdict:
    """Verify a run folder, or a bundle of one. Nothing in it is changed.

    Args:
        run: the folder or the bundle.
        model: for a run of `fit`: the model, or a function that makes it, with ``train``, ``val``,
            ``test`` and ``classes`` as `fit` had them. It is executed in this process.
        entry: the same as "package.module:function", executed in a process of its own.
        data: where the data lie, if not where they lay when the run was made.
        segment: execute only the K-th stretch between two checkpoints, counted from 1.
        device: "cpu" or "cuda": execute a run of portable arithmetic there, wherever it was made.
        validate_only: compare the files with the receipt, and execute nothing.
        public_key: a PEM file; the receipt must be signed with the key it belongs to.
        progress: show how far the execution is.
    """
    if (model is None) != (train is None):
        raise ConfigError("expected both model and train, got one of them")
    given = None
    if model is not None and train is not None:
        given = Given(model, train, val, test, classes)
    with ExitStack() as stack:
        path = Path(run)
        try:
            if is_bundle(path):
                path = unpack(path, Path(stack.enter_context(TemporaryDirectory())))
                packed = path.parent / "data"
                data = str(packed) if data is None and packed.exists() else data
            if public_key is not None:
                check_signature(path, Path(public_key))
            opened = validate(path)
        except (RunError, SignatureError) as error:
            return Verdict("invalid", str(error))
        if opened.problems:
            return Verdict("invalid", f"{run} is not what its receipt says", opened.problems)
        if validate_only:
            told = "; nothing was executed, no prediction made again"
            if opened.left_out:
                told = f" as far as it is here{told}; left out: {', '.join(opened.left_out)}"
            return Verdict("consistent", f"{run} agrees with its receipt{told}")
        choose_device(opened, device)
        if given is not None:
            return replay(opened, lambda config: prepare_given(config, given), segment, (), device)
        if opened.config.model.name == GIVEN and entry is None:
            raise ConfigError(f"{run} is a run of fit(): {ENTRY_HELP}")
        request = {
            "run": str(path.absolute()),
            "entry": entry,
            "data": data and str(Path(data).absolute()),
            "segment": segment,
            "device": device,
            "progress": progress,
        }
        found = run_worker("verify", request, opened.claims["environment"]["variables"])
        found.pop("code")
        return Verdict(**{**found, "details": tuple(found["details"])})


def unpack(bundle: Path, folder: Path) -> Path:
    """Unpack a bundle and return its run folder; source and data lie beside it, not in it."""
    run = open_bundle(bundle, folder / "run")
    for name in EXTRA:
        if (run / name).exists():
            (run / name).rename(folder / name)
    source = folder / "source" / "seedless"
    claimed = read_receipt(run)["predicate"]["source"]["digest"]
    if source.exists() and digest_source(source) != claimed:
        raise RunError(f"the source in {bundle} is not the source its receipt names: changed")
    return run


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the request of `verify`, in a process of its own."""
    from seedless.runs.progress import TrainingProgress

    opened = validate(Path(request["run"]))
    observers = (TrainingProgress("executing again"),) if request["progress"] else ()
    make = choose_maker(opened.config, request["entry"], request["data"])
    try:
        found = replay(opened, make, request["segment"], observers, request["device"])
        return found.as_dict()
    finally:
        for observer in observers:
            observer.close()
