"""Execute a validated run again, in this process, and compare it with its records as it goes.

    execute_again: choose_device -> find_segment -> prepare_again -> train_again -> verdict

A step that finds a difference raises `DivergenceError`; one place turns it into a verdict.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from seedless.audit.function_checks import check_functions, lacks_metrics, leave_out_metrics
from seedless.audit.trail_comparison import (
    ChainComparison,
    DivergenceError,
    TrailComparison,
    compare_left_out,
)
from seedless.audit.verdict import PART, Verdict
from seedless.audit.verdict_notes import explain_divergence, list_notes, list_remarks
from seedless.core.config import Config
from seedless.core.digests import digest_bytes
from seedless.core.errors import ConfigError, DataError, RunError
from seedless.core.mismatch import compare_values
from seedless.core.registry import choose
from seedless.proof.receipt import WEIGHTS, state_data
from seedless.runs.initial_weights import use_recorded_name
from seedless.runs.prepare import Prepared, Preparer
from seedless.runs.seal import describe_promise, score_selected, serialize_weights
from seedless.runs.validation import ValidatedRun
from seedless.train.checkpoint import Checkpoint, list_checkpoints, read_checkpoint
from seedless.train.loop import TrainingOutcome, train
from seedless.train.progress_state import Observer, Position
from seedless.train.state_tensors import restore_state

# What a run began with, as its receipt states it and as preparing it again finds it.
START_FACTS = ("data", "initialization", "model")


@dataclass(frozen=True, eq=False)
class Segment:
    """The part of a run to execute: all of it, or the part before one checkpoint.

    Attributes:
        number: counted from 1; None for all of the run.
        count: how many segments there are between checkpoints.
        begin: the checkpoint to start from; None for the beginning of the run.
        end: where to stop; None for its end.
    """

    number: int | None = None
    count: int = 1
    begin: Checkpoint | None = None
    end: Position | None = None

    @property
    def checked(self) -> dict[str, Any]:
        """Which segments are executed, as a verdict says it; empty for all of the run."""
        return {} if self.number is None else {"segments": [self.number], "of": self.count}


def execute_again(
    run: ValidatedRun,
    preparer: Preparer,
    *,
    segment: int | None = None,
    observers: Sequence[Observer] = (),
    device: str | None = None,
) -> Verdict:
    """Execute a run, or one segment of it, and return the verdict.

    Args:
        run: consistent with its receipt.
        preparer: turns its configuration into a training problem.
        segment: the K-th part between two checkpoints, counted from 1; None executes all.
        observers: further observers of the loop.
        device: "cpu" or "cuda", also another than the run had if its arithmetic is portable.
    """
    config = choose_device(run, device)
    if config is None:
        return Verdict("cannot judge", "the run was made on a CUDA device, and there is none here")
    part = find_segment(run, segment)
    began = time.perf_counter()
    try:
        prepared = prepare_again(run, config, preparer)
        compared = train_again(run, prepared, part, observers)
    except DivergenceError as error:
        verdict = explain_divergence(run, error)
    else:
        sentence = f"executed again, identical in every bit: {compared}"
        if part.checked:
            sentence += "; the rest of the run was not executed"
        outcome = PART if part.checked else "identical"
        verdict = Verdict(
            outcome,
            sentence,
            tuple(list_notes(run, prepared)),
            remarks=list_remarks(run, prepared),
        )
    seconds = round(time.perf_counter() - began, 1)
    return replace(verdict, checked=part.checked, seconds=seconds)


def choose_device(run: ValidatedRun, device: str | None) -> Config | None:
    """Return the configuration to execute: the run's, on another device where that is allowed.

    None where a run can only be compared on a device that is missing here.
    """
    config = run.config
    if device is not None:
        choose("device", device, dict.fromkeys(("cpu", "cuda")))
    missing = config.execution.device == "cuda" and not torch.cuda.is_available()
    if not config.is_portable:
        if device not in (None, config.execution.device):
            raise ConfigError(
                f"{run.path} was made on {config.execution.device} in native arithmetic, whose "
                f"bits depend on the device; only a portable run can be executed on {device}"
            )
        return None if missing else config
    if device is None and not missing:
        return config
    return config.change(execution={"device": device or "cpu", "mode": "auto"})


def find_segment(run: ValidatedRun, segment: int | None) -> Segment:
    """Return the K-th part between two checkpoints, or all of the run.

    The checkpoint is read after the validation. That is safe: the state it holds is compared with
    the trail before the first step, and its best weights with the receipt at the end.
    """
    if segment is None:
        return Segment()
    epochs = [item for item in list_checkpoints(run.path) if not item[0].batch]
    if not 1 <= segment <= len(epochs):
        if run.left_out:
            raise RunError(
                f"{run.path} is a stripped run, without checkpoints: leave --segment out and "
                "execute all of it"
            )
        raise RunError(
            f"{run.path} has {len(epochs)} segments between checkpoints, numbered from 1; got "
            f"{segment}"
        )
    end = epochs[segment - 1][0]
    if len(epochs) == 1 and end.epoch == run.config.train.epochs:
        return Segment()  # the one segment is all of the run
    begin = None
    if segment > 1:
        begin = read_checkpoint(epochs[segment - 2][1], run.config.digest)
    return Segment(segment, len(epochs), begin, end)


def prepare_again(run: ValidatedRun, config: Config, preparer: Preparer) -> Prepared:
    """Prepare the run's problem; data, model and first weights must be those of the receipt."""
    # [Step 1] Prepare from the configuration, or from the user's model.
    try:
        prepared = preparer(config)
    except DataError as error:
        if run.claims["kind"] == "fit":
            raise
        if "--data" in str(error):
            raise
        raise DataError(f"{error}; if the data were moved, give their place with --data") from None
    if prepared.kind != run.claims["kind"]:
        raise ConfigError(
            f"{run.path} is a run of `seedless train`, which prepares itself: give no model and "
            "no --entry"
        )
    # [Step 2] The settings must resolve to those of the run.
    if prepared.config.digest != run.config.digest:
        changed = compare_values(run.config.identity(), prepared.config.identity())
        raise DivergenceError([f"the configuration resolves differently: {i}" for i in changed])
    # [Step 3] A user's model that keeps its own weights must still have them: if not, the caller
    # passed the wrong model, and nothing is known of the run.
    recorded, first = run.claims["initialization"], prepared.facts["initialization"]
    if recorded["basis"] == "given" and recorded["weights"] != first["weights"]:
        raise ConfigError(
            f"{run.path} began with the model's own weights, {recorded['weights'][:23]}...; this "
            f"model has {first['weights'][:23]}... Pass the model as it was before training: best "
            "a function that makes it"
        )
    # [Step 4] The same holds for the user's functions.
    check_functions(run, prepared)
    # [Step 5] Everything else the run began with.
    facts = {key: run.claims[key] for key in START_FACTS}
    if changed := compare_values(facts, derive_facts(run, prepared)):
        raise DivergenceError(map(str, changed), {"epoch": 0, "names": []})
    return prepared


def derive_facts(run: ValidatedRun, prepared: Prepared) -> dict[str, Any]:
    """Return the `START_FACTS` as prepared here, in the form of the run's receipt."""
    data = state_data(prepared.facts["data"], run.claims["schema"])
    return {**_name_alike(prepared.facts, run), "data": data}


def read_facts(run: ValidatedRun, other: ValidatedRun) -> dict[str, Any]:
    """Return the `START_FACTS` of a run's receipt, to be compared with those of another run."""
    return _name_alike(run.claims, other)


def _name_alike(facts: Mapping[str, Any], run: ValidatedRun) -> dict[str, Any]:
    """Return the `START_FACTS`, a weights file with the name that a run has for it."""
    start = use_recorded_name(facts["initialization"], run.claims["initialization"])
    return {**{key: facts[key] for key in START_FACTS}, "initialization": start}


def train_again(
    run: ValidatedRun,
    prepared: Prepared,
    segment: Segment,
    observers: Sequence[Observer],
) -> str:
    """Train a segment, comparing every epoch; return in words what was compared and agreed."""
    problem, start = prepared.problem, None
    if segment.begin is not None:
        restore_state(segment.begin.state, problem.model, problem.optimizer, problem.order)
        start = segment.begin.start
    comparison: TrailComparison | ChainComparison = TrailComparison(run.trail)
    if run.left_out:
        comparison = ChainComparison(run.claims, run.log)
    outcome = train(problem, (comparison, *observers), start=start, until=segment.end)
    compared = f"{comparison.compared} trail entries"
    if segment.number is not None:
        compared += f" of segment {segment.number}"
    if segment.end is not None and segment.end.epoch < run.config.train.epochs:
        return compared
    compare_results(run, prepared, outcome, comparison.claims)
    if isinstance(comparison, ChainComparison):
        weights = digest_bytes(serialize_weights(outcome.best))
        compare_left_out(run.claims, run.left_out, {**comparison.files, WEIGHTS: weights})
    return f"{compared}, weights, predictions and scores"


def compare_results(
    run: ValidatedRun, prepared: Prepared, outcome: TrainingOutcome, trail_claims: Mapping[str, Any]
) -> None:
    """Score the selected weights and compare everything with what the receipt says of them."""
    results = score_selected(prepared, outcome.best, None)
    results["promise"] = describe_promise(prepared.config, outcome.last)
    results |= trail_claims
    claimed = {key: run.claims[key] for key in results}
    if lacks_metrics(run, prepared):
        claimed["metrics"] = leave_out_metrics(claimed["metrics"])
    changed = compare_values(claimed, results)
    if changed:
        raise DivergenceError(map(str, changed))
