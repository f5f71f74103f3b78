"""Execute a validated run again, in this process, and compare it with its trail as it goes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from seedless.audit.validate import Opened
from seedless.audit.verdict import Verdict
from seedless.core.config import Config
from seedless.core.errors import ConfigError, DataError, RunError
from seedless.core.registry import choose
from seedless.numerics.environment import capture_environment
from seedless.proof.light import ChainReplay
from seedless.proof.receipt import list_unknown
from seedless.proof.replay import (
    DivergenceError,
    Replay,
    compare_values,
    describe_difference,
    judge_environment,
)
from seedless.proof.source import describe_source
from seedless.runs.execute import describe_promise
from seedless.runs.prepare import Prepared
from seedless.runs.prepare_again import Make
from seedless.runs.score import finish
from seedless.train.checkpoint import Checkpoint, list_checkpoints, read_checkpoint
from seedless.train.log import LOG_FILE as LOG
from seedless.train.log import read_log
from seedless.train.loop import train
from seedless.train.progress_state import Observer, Position
from seedless.train.state_tensors import restore_state


def replay(
    opened: Opened,
    make: Make,
    segment: int | None = None,
    observers: Sequence[Observer] = (),
    device: str | None = None,
) -> Verdict:
    """Execute a run, or one stretch of it, and return the verdict.

    ``device`` may name another than the run had if its arithmetic is portable.
    """
    config = choose_device(opened, device)
    if config is None:
        return Verdict("cannot judge", "the run was made on a CUDA device, and there is none here")
    begin, end = find_segment(opened, segment)
    began = time.perf_counter()
    try:
        prepared = make(config)
    except DataError as error:
        if opened.claims["kind"] == "fit":
            raise
        raise DataError(f"{error}; if the data lie elsewhere now, --data says where") from None
    if prepared.kind != opened.claims["kind"]:
        raise ConfigError(
            f"{opened.path} is a run of `seedless train`, which prepares itself: give no model and "
            "no --entry"
        )
    if prepared.config.digest != opened.config.digest:
        found = compare_values(opened.config.identity(), prepared.config.identity())
        return _differ(
            opened, [f"the configuration resolves differently: {item}" for item in found], {}, began
        )
    check_given(opened, prepared)
    facts = {key: opened.claims[key] for key in ("data", "initialization", "model")}
    odd = compare_values(facts, dict(prepared.facts))
    if odd:
        return _differ(opened, [str(item) for item in odd], {"epoch": 0, "names": []}, began)
    problem, start = prepared.problem, None
    if begin is not None:
        restore_state(begin.state, problem.model, problem.optimizer, problem.order)
        start = begin.start
    watch: Replay | ChainReplay = Replay(opened.trail)
    if opened.left_out:
        watch = ChainReplay(opened.claims, read_log(opened.path / LOG))
    try:
        outcome = train(problem, (watch, *observers), start=start, until=end)
    except DivergenceError as found:
        return _differ(
            opened,
            [describe_difference(found.epoch, found.names)],
            {"epoch": found.epoch, "names": found.names},
            began,
        )
    stretch = f"{watch.compared} trail entries"
    if segment is not None:
        stretch += f" of segment {segment}"
    if end is None or end.epoch == opened.config.train.epochs:
        claims = finish(prepared, outcome.best, None)
        claims["promise"] = describe_promise(prepared.config, outcome.last)
        if isinstance(watch, ChainReplay):
            claims |= watch.claims
        recorded = {key: opened.claims[key] for key in claims}
        odd = compare_values(recorded, claims)
        if odd:
            return _differ(opened, [str(item) for item in odd], {}, began)
        stretch += ", weights, predictions and scores"
    elsewhere, _ = compare_environment(opened)
    notes = [f"identical although {item}" for item in elsewhere]
    if opened.config.is_portable:
        notes.insert(0, f"made {name_processor(opened.claims['environment'], opened.config)}")
        notes.insert(1, f"executed {name_processor(capture_environment(), prepared.config)}")
    if unknown := list_unknown({"predicate": opened.claims}):
        notes.append(f"this version does not know, and did not check, {', '.join(unknown)}")
    seconds = round(time.perf_counter() - began, 1)
    return Verdict(
        "identical", f"executed again, identical in every bit: {stretch}", tuple(notes), {}, seconds
    )


def choose_device(opened: Opened, device: str | None) -> Config | None:
    """Return the configuration to execute: as it was, or where its arithmetic allows, elsewhere.

    None where a run can only be judged on a device that is not here.
    """
    config = opened.config
    if device is not None:
        choose("device", device, dict.fromkeys(("cpu", "cuda")))
    missing = config.execution.device == "cuda" and not torch.cuda.is_available()
    if not config.is_portable:
        if device not in (None, config.execution.device):
            raise ConfigError(
                f"{opened.path} was made on {config.execution.device} in native arithmetic, whose "
                f"bits belong to it; only a portable run can be executed on {device}"
            )
        return None if missing else config
    if device is None and not missing:
        return config
    return config.change(execution={"device": device or "cpu", "mode": "auto"})


def check_given(opened: Opened, prepared: Prepared) -> None:
    """Refuse a model whose own weights a run began with, if it comes with others now."""
    recorded, found = opened.claims["initialization"], prepared.facts["initialization"]
    if recorded["basis"] == "given" and recorded["weights"] != found["weights"]:
        raise ConfigError(
            f"{opened.path} began with the weights its model was given with, "
            f"{recorded['weights'][:23]}...; this one has {found['weights'][:23]}... Give the "
            "model as it was before training: best a function that makes it"
        )


def name_processor(environment: Mapping[str, Any], config: Config) -> str:
    """Say what computes: a GPU by its name, or a CPU with its number of threads."""
    if config.execution.device == "cuda":
        return f"on {environment['devices'][0]['name']}"
    count = config.execution.threads
    return f"on {environment['cpu']['model']}, {count} thread{'s' * (count != 1)}"


def find_segment(opened: Opened, segment: int | None) -> tuple[Checkpoint | None, Position | None]:
    """Return the checkpoint before the K-th stretch and where it ends; (None, None) for all."""
    if segment is None:
        return None, None
    whole = [item for item in list_checkpoints(opened.path) if not item[0].batch]
    if not 1 <= segment <= len(whole):
        if opened.left_out:
            raise RunError(
                f"{opened.path} is a light run, without checkpoints: leave --segment out and "
                "execute all of it"
            )
        raise RunError(
            f"{opened.path} has {len(whole)} segments between checkpoints, numbered from 1; got "
            f"{segment}"
        )
    begin = None
    if segment > 1:
        begin = read_checkpoint(whole[segment - 2][1], opened.config.digest)
    return begin, whole[segment - 1][0]


def compare_environment(opened: Opened) -> tuple[list[Any], list[Any]]:
    """Return what differs between the recorded machine and this one: decisive, and harmless."""
    recorded = opened.claims["environment"]
    decisive, harmless = judge_environment(recorded, capture_environment(), opened.config.execution)
    recorded_source = {"source": opened.claims["source"]}
    decisive += compare_values(recorded_source, {"source": describe_source()})
    return decisive, harmless


def _differ(
    opened: Opened, details: Sequence[str], difference: dict[str, Any], began: float
) -> Verdict:
    """A difference: of the run, or perhaps only of the machine."""
    seconds = round(time.perf_counter() - began, 1)
    decisive, _ = compare_environment(opened)
    if decisive:
        return Verdict(
            "cannot judge",
            "executed again, it differs; but this machine is not like the one it was made on",
            (*details, *(str(item) for item in decisive)),
            difference,
            seconds,
        )
    if not opened.claims["promise"]["same_bits"]:
        moved = ", ".join(opened.claims["promise"]["generators_moved"])
        details = (*details, f"the run used {moved}; its receipt promises no repetition")
    return Verdict(
        "differs",
        "executed again, the run differs from its receipt",
        tuple(details),
        difference,
        seconds,
    )
