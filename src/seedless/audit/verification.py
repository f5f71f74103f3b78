"""Verify a run: validate its folder, execute it again, and return one of four verdicts.

The folder is validated once, here. What was validated (receipt, configuration, trail) is handed to
the process that executes the run, which reads none of it from the disk again.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from seedless.audit.reexecution import Verdict, choose_device, execute_again
from seedless.audit.worker import run_worker
from seedless.core.errors import ConfigError, RunError
from seedless.core.files import AnyPath
from seedless.data.splits import describe_repeated
from seedless.numerics.determinism import preserve_flags
from seedless.proof.bundle import EXTRA, is_bundle, open_bundle
from seedless.proof.keys import SignatureError
from seedless.proof.receipt import describe_schema, read_receipt
from seedless.proof.signature import check_signature
from seedless.proof.source_digest import digest_source
from seedless.runs.prepare import USER_MODEL
from seedless.runs.user_model import (
    ENTRY_HELP,
    Model,
    Pair,
    UserModel,
    choose_preparer,
    prepare_user_model,
)
from seedless.runs.validation import ValidatedRun, validate


@preserve_flags()
def verify(
    run: AnyPath,
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
    """Verify a run folder, or a bundle of one, and return the verdict. Nothing in it is changed.

    Args:
        run: the folder or the bundle.
        model: for a run of `fit`: the model, or a function that makes it, with ``train``, ``val``,
            ``test`` and ``classes`` as `fit` had them. It is executed in this process.
        entry: the same as "package.module:function", executed in a process of its own.
        data: where the data are now, if they were moved.
        segment: execute only the K-th part between two checkpoints, counted from 1.
        device: "cpu" or "cuda": execute a run of portable arithmetic there, wherever it was made.
        validate_only: compare the files with the receipt, and execute nothing.
        public_key: a PEM file; the receipt must be signed with the key it belongs to.
        progress: show progress on standard error.

    Example:
        >>> verdict = seedless.verify("runs/demo")
        >>> verdict.outcome, verdict.ok
        ('identical', True)
    """
    if (model is None) != (train is None):
        raise ConfigError("expected both model and train, got one of them")
    with ExitStack() as stack:
        # [Step 1] Unpack a bundle, check the signature, and validate the files against the receipt.
        path = Path(run)
        try:
            if is_bundle(path):
                path = unpack(path, Path(stack.enter_context(TemporaryDirectory())))
                packed = path.parent / "data"
                data = str(packed) if data is None and packed.exists() else data
            if public_key is not None:
                check_signature(path, Path(public_key))
            validated = validate(path)
        except (RunError, SignatureError) as error:
            return Verdict("invalid", str(error))
        if validated.problems:
            sentence = f"{run} is not what its receipt says{describe_schema(validated.claims)}"
            return Verdict("invalid", sentence, validated.problems)
        if validate_only:
            return describe_consistent(run, validated)
        # [Step 2] Refuse what cannot be executed, before anything is started.
        choose_device(validated, device)
        # [Step 3] Execute: a user's model in this process, everything else in a fresh one.
        if model is not None and train is not None:
            user = UserModel(model, train, val, test, classes)
            preparer = partial(prepare_user_model, user=user)
            return execute_again(validated, preparer, segment=segment, device=device)
        if validated.config.model.name == USER_MODEL and entry is None:
            raise ConfigError(f"{run} is a run of fit(): {ENTRY_HELP}")
        request = {
            "run": validated.as_dict(),
            "entry": entry,
            "data": data and str(Path(data).absolute()),
            "segment": segment,
            "device": device,
            "progress": progress,
        }
        variables = validated.claims["environment"]["variables"]
        return Verdict.from_dict(run_worker("verify", request, variables))


def describe_consistent(run: AnyPath, validated: ValidatedRun) -> Verdict:
    """Return the verdict on a run that agrees with its receipt and was not executed."""
    limits = "; nothing was executed, and the predictions were not computed again"
    if validated.left_out:
        limits = f", except for files left out of it ({', '.join(validated.left_out)}){limits}"
    claims, data = validated.claims, validated.config.data
    limits += describe_repeated(claims["data"].get("repeated", {}), data) + describe_schema(claims)
    return Verdict("consistent", f"{run} agrees with its receipt{limits}")


def unpack(bundle: Path, folder: Path) -> Path:
    """Unpack a bundle and return its run folder; source and data are moved next to it."""
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
    """Execute the run of a request by `verify`, in the process started for it."""
    from seedless.runs.progress import TrainingProgress

    run = ValidatedRun.from_dict(request["run"])
    observers = (TrainingProgress("executing again"),) if request["progress"] else ()
    preparer = choose_preparer(run.config, request["entry"], request["data"])
    try:
        verdict = execute_again(
            run,
            preparer,
            segment=request["segment"],
            observers=observers,
            device=request["device"],
        )
        return verdict.as_dict()
    finally:
        for observer in observers:
            observer.close()
