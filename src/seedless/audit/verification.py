"""Verify a run: validate its folder, execute it again, and return the verdict.

The folder is validated once, here. What was validated (receipt, configuration, trail) is handed to
the process that executes the run, which reads none of it from the disk again.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from seedless.audit.reexecution import choose_device, execute_again
from seedless.audit.script.reexecution import choose_execution
from seedless.audit.script.verification import (
    check_execution_options,
    check_script_options,
    judge_script,
)
from seedless.audit.spot_check import Sample, check_options, execute_sample, plan_sample
from seedless.audit.verdict import Verdict
from seedless.audit.weights_file_check import check_weights_present
from seedless.audit.worker import run_worker
from seedless.core.errors import ConfigError, RunError, StorageError
from seedless.core.files import AnyPath, hash_file
from seedless.core.rendezvous import check_group_settings, is_first_process
from seedless.data.splits import describe_repeated
from seedless.numerics.saved_flags import run_by_itself
from seedless.proof.bundle import is_bundle, open_bundle
from seedless.proof.keys import SignatureError, is_ecdsa_public, read_ed25519_public
from seedless.proof.model_signing import FILE as MODEL_SIGNATURE
from seedless.proof.model_signing import check_model_signature
from seedless.proof.provenance import digest_receipt
from seedless.proof.receipt import FILE as RECEIPT
from seedless.proof.receipt import SIGNATURE as ENVELOPE
from seedless.proof.receipt import WEIGHTS, describe_schema, get_major
from seedless.proof.signature import read_signature
from seedless.runs.attestation_checks import list_signed_files
from seedless.runs.class_names import take_class_names
from seedless.runs.group import open_group, prepare_member
from seedless.runs.prepare import USER_MODEL, Preparer
from seedless.runs.script_run import ScriptRun, is_script_run, validate_script
from seedless.runs.user_functions import UserFunctions
from seedless.runs.user_model import (
    ENTRY_HELP,
    Model,
    UserModel,
    choose_preparer,
    prepare_user_model,
)
from seedless.runs.validation import ValidatedRun, validate
from seedless.train.progress_state import Observer


@run_by_itself()
def verify(
    run: AnyPath,
    *,
    model: Model | None = None,
    train: Any = None,
    val: Any = None,
    test: Any = None,
    classes: tuple[str, ...] | None = None,
    loss: Callable[[Any, Any], Any] | None = None,
    metrics: Mapping[str, Callable[[Any, Any], Any]] | None = None,
    optimizer: Callable[..., Any] | None = None,
    scheduler: Callable[[int, int], float] | None = None,
    collate: Callable[[list[Any]], Any] | None = None,
    key: Callable[[int], Any] | None = None,
    workers: int = 0,
    entry: str | None = None,
    data: str | None = None,
    weights: AnyPath | None = None,
    segment: int | None = None,
    sample: int | None = None,
    sample_token: str | None = None,
    device: str | None = None,
    processes: int = 1,
    validate_only: bool = False,
    public_key: str | Path | None = None,
    progress: bool = False,
    execute_script: bool = False,
    sources: AnyPath | None = None,
    python: str | None = None,
) -> Verdict:
    """Verify a run folder, or a bundle of one, and return the verdict. Nothing in it is changed.

    Args:
        run: the folder or the bundle.
        model: for a run of `fit`: the model, or a function that makes it, with ``train``, ``val``
            and ``test`` as `fit` had them. It is executed in this process. The names of the
            ``classes`` are those of the receipt unless you give others.
        loss: the function that `fit` had, and so are ``metrics``, ``optimizer``, ``scheduler``,
            ``collate`` and ``key``; the receipt has a digest of each. Without ``metrics`` their
            values are not compared.
        workers: processes that read samples. They change the time and no bit.
        entry: the same as "package.module:function", executed in a process of its own.
        data: where the data are now, if they were moved.
        weights: where the weights file that the run began with is now, if it was moved.
        segment: execute only the K-th part between two checkpoints, counted from 1.
        sample: execute so many of those parts, chosen at random, and check start, data and scores.
        sample_token: repeat the choice of an earlier sample by the token it printed.
        device: "cpu" or "cuda": execute a run of portable arithmetic there, wherever it was made.
        processes: execute a run of portable arithmetic on so many processes of this machine; not
            for one of `fit` that is executed in this process.
        validate_only: compare the files with the receipt, and execute nothing.
        public_key: a PEM file; the receipt must be signed with the key it belongs to. With a key
            over P-256, P-384 or P-521, ``model.sig`` must be a signature of the run's files.
        progress: show progress on standard error.
        execute_script: for the run of a script: run its command again, with your rights.
        sources: the folder that holds the script; by default the current one.
        python: the interpreter that executes it; by default the one that runs this.

    Example:
        >>> verdict = seedless.verify("runs/demo")
        >>> verdict.outcome, verdict.ok
        ('identical', True)
    """
    functions = UserFunctions(loss, optimizer, scheduler, collate, key, metrics)
    if (model is None) != (train is None):
        raise ConfigError("expected both model and train, got one of them")
    check_options(sample, sample_token, segment=segment, validate_only=validate_only)
    check_execution_options(execute_script, validate_only, sources, python)
    # A key that cannot be used says nothing about the run: that is an error, and not a verdict.
    signer = None if public_key is None else Path(public_key)
    if signer is not None and not is_ecdsa_public(signer):
        read_ed25519_public(signer)
    with ExitStack() as stack:
        # [Step 1] Unpack a bundle, validate the files against the receipt, check the signature.
        path = Path(run)
        try:
            if is_bundle(path):
                folder = Path(stack.enter_context(make_temporary_folder()))
                path = open_bundle(path, folder / "bundle")
                packed = path.parent / "data"
                data = str(packed) if data is None and packed.exists() else data
            is_of_script = is_script_run(path)
            validated = validate_script(path) if is_of_script else validate(path)
        except RunError as error:
            return Verdict("invalid", str(error))
        try:
            signature = check_who_signed(validated, signer)
        except SignatureError as error:
            broken = {"state": "invalid", "keyid": None}
            return Verdict("invalid", str(error), validated.problems, signature=broken)
        user = None
        if model is not None and train is not None:
            user = UserModel(model, train, val, test, classes, functions, workers, weights=weights)
        request: dict[str, Any] = {
            "entry": entry,
            "data": data and str(Path(data).absolute()),
            "weights": None if weights is None else str(Path(weights).absolute()),
            "segment": segment,
            "sample": sample,
            "sample_token": sample_token,
            "device": device,
            "progress": progress,
        }
        # [Step 2] Judge it, and say with the result who signed it.
        if processes != 1:
            check_processes(validated, processes, user, validate_only)
        known = not validated.problems and isinstance(validated, ValidatedRun)
        if user is not None and known and "data" in validated.claims:
            user = take_class_names(user, validated.claims["data"].get("classes", ()))
        subject = describe_subject(validated, signature) if known else {}
        if validated.problems:
            verdict = Verdict("invalid", f"{run} is not what its receipt says", validated.problems)
        elif isinstance(validated, ScriptRun):
            check_script_options(run, user=user, **request)
            chosen = choose_execution(path, sources, python) if execute_script else None
            verdict = judge_script(run, validated, validate_only=validate_only, request=chosen)
        elif execute_script:
            raise ConfigError(f"{run} is not the run of a script: leave --execute out")
        elif validate_only:
            verdict = describe_consistent(run, validated)
        elif validated.config.model.name == USER_MODEL and user is None and entry is None:
            raise ConfigError(f"{run} is a run of fit(): {ENTRY_HELP}")
        else:
            verdict = execute(validated, request, user, processes)
        limits = describe_schema(validated.claims) if validated.receipt else ""
        remarks = (*verdict.remarks, limits) if limits else verdict.remarks
        return replace(verdict, signature=signature, remarks=remarks, subject=subject)


def check_who_signed(run: ValidatedRun | ScriptRun, key: Path | None) -> dict[str, Any]:
    """Return {"state", "keyid"} of a run's signature, as `Verdict` has it.

    A key over an elliptic curve is one that signs models: then ``model.sig`` is checked.
    """
    if key is None or not is_ecdsa_public(key):
        return read_signature(run.path, key)
    found = read_signature(run.path)  # it must be well-formed, whatever signs the files
    if run.problems:
        return found
    keyid = check_model_signature(run.path, list_signed_files(run), key)
    return {"state": "files checked", "keyid": keyid}


def describe_subject(run: ValidatedRun | ScriptRun, signature: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a verdict on a valid run is about: see `Verdict.subject`."""
    signed = {"checked": ENVELOPE, "files checked": MODEL_SIGNATURE}.get(signature["state"])
    attestations = {} if signed is None else {signed: hash_file(run.path / signed)}
    return {
        "weights": run.claims["files"][WEIGHTS],
        "receipt": run.claims["digest"],
        "attestations": {RECEIPT: digest_receipt(run.receipt), **attestations},
    }


def check_processes(
    run: ValidatedRun | ScriptRun, processes: int, user: UserModel | None, validate_only: bool
) -> None:
    """Refuse several processes where the run cannot be executed on them."""
    if not isinstance(run, ScriptRun) and run.config is not None and not run.problems:
        check_group_settings(run.config, processes)
    if isinstance(run, ScriptRun) or user is not None or validate_only:
        raise ConfigError(
            f"{processes} processes execute runs of `seedless train`, and those of fit() with "
            "--entry: leave --processes out"
        )


def execute(
    run: ValidatedRun, request: Mapping[str, Any], user: UserModel | None, processes: int = 1
) -> Verdict:
    """Execute a valid run: a user's model in this process, everything else in a fresh one.

    Args:
        run: consistent with its receipt.
        request: the keyword arguments of `verify` that say how to execute it.
        user: what a run of `fit` was made from, if the caller has it.
        processes: how many execute it together.
    """
    # [Step 1] Refuse what cannot be executed, before anything is started.
    choose_device(run, request["device"])
    check_weights_present(run, request["weights"])
    if request["sample"] is not None:
        sample = plan_sample(run, request["sample"], request["sample_token"])
        request = {**request, "sample": asdict(sample)}
    if user is not None:
        return execute_part(run, partial(prepare_user_model, user=user), request)
    # [Step 2] Hand over what was validated; the process reads none of it from the disk again.
    variables = run.claims["environment"]["variables"]
    found = run_worker("verify", {"run": run.as_dict(), **request}, variables, processes)
    return Verdict.from_dict(found)


def make_temporary_folder() -> TemporaryDirectory[str]:
    """Return a temporary folder to unpack a bundle in, or raise an error about this machine."""
    try:
        return TemporaryDirectory()
    except OSError as error:
        raise StorageError(f"cannot make a temporary folder: {error}; set TMPDIR") from None


def execute_part(
    run: ValidatedRun,
    preparer: Preparer,
    request: Mapping[str, Any],
    observers: Sequence[Observer] = (),
) -> Verdict:
    """Execute what a request names: a sample of segments, one segment, or all of a run."""
    device = request["device"]
    if request["sample"] is not None:
        sample = Sample.from_dict(request["sample"])
        return execute_sample(run, preparer, sample, observers=observers, device=device)
    segment = request["segment"]
    return execute_again(run, preparer, segment=segment, observers=observers, device=device)


def describe_consistent(run: AnyPath, validated: ValidatedRun) -> Verdict:
    """Return the verdict on a run that agrees with its receipt and was not executed."""
    limits = "; nothing was executed, and the predictions were not computed again"
    if validated.left_out:
        limits = f", except for files left out of it ({', '.join(validated.left_out)}){limits}"
    claims = validated.claims
    counts = {} if get_major(claims["schema"]) == "1" else claims["data"]["repeated"]
    repeated = describe_repeated(counts, validated.config.data)
    remarks = (repeated,) if repeated else ()
    return Verdict("consistent", f"{run} agrees with its receipt{limits}", remarks=remarks)


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Execute the run of a request by `verify`, in the process started for it."""
    from seedless.runs.progress import TrainingProgress

    run = ValidatedRun.from_dict(request["run"])
    shown = request["progress"] and is_first_process()
    observers = (TrainingProgress("executing again"),) if shown else ()
    preparer = choose_preparer(run.config, request["entry"], request["data"], request["weights"])
    try:
        with open_group(run.config) as group:
            member = preparer if group is None else partial(prepare_member, preparer, group)
            verdict = execute_part(run, member, request, observers)
        return verdict.as_dict()
    finally:
        for observer in observers:
            observer.close()
