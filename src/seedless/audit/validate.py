"""Is a run folder consistent with itself? Files against receipt, chain unbroken, scores recomputed.

Nothing is executed here but the scores: what a receipt claims is compared with what lies beside it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from seedless.core.canonical import canonical_json
from seedless.core.config import Config
from seedless.core.digest import digest, digest_value
from seedless.core.errors import RunError, SeedlessError
from seedless.evaluate.predictions import FILE as PREDICTIONS
from seedless.evaluate.predictions import parse_predictions
from seedless.evaluate.scores import score_predictions
from seedless.proof.light import FACTS, read_left_out
from seedless.proof.receipt import WEIGHTS, check_receipt, read_receipt
from seedless.proof.trail import Entry, digest_tensors, read_trail
from seedless.runs.execute import PROMISES
from seedless.runs.folder import read_config
from seedless.runs.score import METRICS
from seedless.runs.user_model import GIVEN
from seedless.train.checkpoint import list_checkpoints, read_checkpoint
from seedless.train.learning_rate import learning_rate_at
from seedless.train.log import LOG_FILE as LOG
from seedless.train.log import read_log

# What the lines of a trail hold.
_CHAIN = ("kind", "epoch", "step", "state", "previous", "digest")
_START, _EPOCH = {*_CHAIN, "schema", *FACTS}, {*_CHAIN, "schedule", "loss", "score"}

Lines = Sequence[Mapping[str, Any]]  # of a trail or a log

# What a damaged file raises.
_DAMAGE = (OSError, ValueError, RecursionError)


@dataclass(frozen=True, eq=False)
class Opened:
    """A run folder, read and found consistent where ``problems`` is empty.

    ``left_out``: files of a light run that are not here; its trail is empty then.
    """

    path: Path
    claims: Mapping[str, Any]
    config: Config
    trail: Sequence[Entry]
    problems: tuple[str, ...]
    left_out: tuple[str, ...] = ()


def validate(run: Path) -> Opened:
    """Read a finished run and return what is wrong with it; an unreadable one is an error."""
    statement = read_receipt(run)
    claims = statement["predicate"]
    try:
        left_out = read_left_out(run, statement)
        problems = check_receipt(run, statement, left_out)
    except OSError as error:
        raise RunError(f"cannot read {error.filename}: {error.strerror}") from None
    try:
        config = read_config(run)
        trail = [] if left_out else read_trail(run)
    except SeedlessError as error:
        return Opened(run, claims, Config(), (), (str(error), *problems))
    opened = Opened(run, claims, config, trail, (), left_out)
    whole = (_check_trail, _check_weights, _check_log, _check_checkpoints)
    light = (_check_light,)
    for check in (_check_config, _check_scores, *(light if left_out else whole)):
        try:
            problems += check(opened)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            problems.append(f"the run lacks what a run must have, or has it wrong: {error!r}")
    return replace(opened, problems=tuple(problems))


def _check_config(opened: Opened) -> list[str]:
    config, claims = opened.config, opened.claims
    problems = []
    if claims["config"]["digest"] != config.digest:
        problems.append("config.toml is not the configuration whose digest the receipt holds")
    if not _same(claims["config"]["values"], config.identity()):
        problems.append("config.toml is not the configuration the receipt quotes")
    kind = "fit" if config.model.name == GIVEN else "train"
    if claims["kind"] != kind:
        problems.append(f"config.toml is of a run of kind {kind}, the receipt's {claims['kind']!r}")
    promise = claims["promise"]
    honest = {
        "same_bits": not promise["generators_moved"],
        "across": PROMISES[config.execution.arithmetic],
        "generators_moved": promise["generators_moved"],
        "control": config.control.flip_bit,
    }
    if not _same(promise, honest):
        problems.append("the receipt promises something else than its configuration allows")
    return problems


def _check_light(opened: Opened) -> list[str]:
    """Check what a light run has left: the log for the trail, weights only where they are here."""
    claims, config = opened.claims, opened.config
    epochs, problems = config.train.epochs, _check_facts(claims, config)
    lines = read_log(opened.path / LOG)
    told = [[line["epoch"], line["rate"]] for line in lines]
    rates = [
        learning_rate_at(config.train, n, int(line["step"]) - 1) for n, line in enumerate(lines)
    ]
    if not _same(told, [[n + 1, rate] for n, rate in enumerate(rates)]) or len(lines) != epochs:
        problems.append(f"{LOG} is not of the epochs and rates that the configuration asks for")
    if claims["trail"]["entries"] != epochs + 1:
        problems.append(f"expected a trail of epochs 0 to {epochs} in the receipt")
    problems += _check_selected(lines, claims, config)
    if WEIGHTS not in opened.left_out:
        tensors = load((opened.path / WEIGHTS).read_bytes())
        if digest(tensors) != claims["weights"]["digest"]:
            problems.append(f"{WEIGHTS} does not hold the weights whose digest the receipt holds")
    return problems


def _check_facts(claims: Mapping[str, Any], config: Config) -> list[str]:
    """What a run began with, as the receipt alone has it."""
    problems = []
    machine = claims["environment"]
    if claims["settings"] != config.digest:
        problems.append("the run was begun with another configuration than config.toml")
    if not _same(machine["threads"]["intraop"], config.execution.threads):
        problems.append("the threads of the environment are not those of config.toml")
    if not all(isinstance(value, str) for value in machine["variables"].values()):
        problems.append("the variables of the environment are not text")
    return problems


def _check_selected(lines: Lines, claims: Mapping[str, Any], config: Config) -> list[str]:
    """The selected epoch, chosen again from the scores of a trail or a log, line 0 left out."""
    epoch, selected, problems = claims["weights"]["epoch"], claims["metrics"]["selected"], []
    best = _select(lines, config, config.train.epochs)
    if not _same(best, [epoch, selected["score"]]) or selected["metric"] != "macro_auc":
        problems.append(f"the trail's best score is not that of epoch {epoch}, or another one")
    if not re.fullmatch("[0-9a-f]{32}", claims["weights"]["md5"]):
        problems.append("the receipt's md5 is not one")
    return problems


def _check_trail(opened: Opened) -> list[str]:
    trail, config, claims = opened.trail, opened.config, opened.claims
    problems = []
    wanted = list(range(config.train.epochs + 1))
    if not _same([entry.get("epoch") for entry in trail], wanted):
        problems.append(f"expected a trail of epochs 0 to {wanted[-1]}, found {len(trail)} entries")
    for number, entry in enumerate(trail, start=1):
        kind, fields = ("start", _START) if number == 1 else ("epoch", _EPOCH)
        if {*entry} != fields or entry["kind"] != kind or type(entry["step"]) is not int:
            problems.append(f"line {number} of the trail is not of the form such a line has")
    if not _same(claims["trail"], {"head": trail[-1]["digest"], "entries": len(trail)}):
        problems.append("the trail does not end in the head the receipt holds")
    begun = trail[0]
    for fact in FACTS:
        if not _same(begun.get(fact), claims[fact]):
            problems.append(f"the trail's first line and the receipt disagree about {fact!r}")
    if begun.get("step") != 0:
        problems.append("the trail's first line is not of a run before its first step")
    problems += _check_facts(claims, config)
    if claims["schedule"] != digest_value([entry.get("schedule") for entry in trail[1:]]):
        problems.append("the receipt's schedule is not that of the trail")
    return problems


def _check_weights(opened: Opened) -> list[str]:
    trail, config, claims = opened.trail, opened.config, opened.claims
    try:
        tensors = load((opened.path / WEIGHTS).read_bytes())
    except (OSError, SafetensorError) as error:
        return [f"{WEIGHTS} cannot be read: {error}"]
    problems = []
    epoch = claims["weights"]["epoch"]
    if digest(tensors) != claims["weights"]["digest"]:
        problems.append(f"{WEIGHTS} does not hold the weights whose digest the receipt holds")
    if not _holds(trail, epoch, tensors):
        problems.append(f"{WEIGHTS} does not hold the weights the trail has at epoch {epoch}")
    return problems + _check_selected(trail[1:], claims, config)


def _check_scores(opened: Opened) -> list[str]:
    run, config, claims = opened.path, opened.config, opened.claims
    try:
        predictions = parse_predictions((run / PREDICTIONS).read_bytes(), PREDICTIONS)
        metrics = json.loads((run / METRICS).read_bytes())
    except SeedlessError as error:
        return [str(error)]
    except _DAMAGE as error:
        return [f"{PREDICTIONS} or {METRICS} cannot be read: {error}"]
    problems = []
    if not _same(metrics, claims["metrics"]):
        problems.append(f"{METRICS} is not what the receipt holds")
    if predictions.digest != claims["predictions"]:
        problems.append(f"{PREDICTIONS} does not hold the predictions whose digest the receipt has")
    if predictions.weights != claims["weights"]["digest"]:
        problems.append(f"{PREDICTIONS} holds predictions of other weights than the receipt's")
    if not _same([*predictions.classes], claims["data"]["classes"]):
        problems.append(f"{PREDICTIONS} is about other classes than the receipt")
    if predictions.task != claims["data"]["task"]:
        problems.append(f"{PREDICTIONS} is about another task than the receipt")
    if {*predictions.splits} != {*metrics} - {"selected", "converged"}:
        problems.append(f"{PREDICTIONS} and {METRICS} are not about the same splits")
        return problems
    for split, scored in score_predictions(predictions).items():
        if not _same(scored, metrics[split]):
            problems.append(f"the {split} scores are not those of {PREDICTIONS}")
    judged = metrics["validation" if "validation" in metrics else "train"]["macro_auc"]
    if metrics["converged"] is not (judged is not None and judged > config.train.converged_above):
        problems.append("whether the run converged does not follow from its score")
    if "validation" in metrics and judged != metrics["selected"]["score"]:
        problems.append("the validation score is not that of the selected epoch")
    if metrics["selected"]["epoch"] != claims["weights"]["epoch"]:
        problems.append("the scores are of another epoch than the weights")
    return problems


def _check_log(opened: Opened) -> list[str]:
    """The log says what the trail says, but for the seconds, which nothing can check."""
    try:
        lines = read_log(opened.path / LOG)
    except _DAMAGE as error:
        return [f"{LOG} cannot be read: {error}"]
    recorded = [
        {key: entry[key] for key in ("epoch", "step", "loss", "score")}
        | {"rate": learning_rate_at(opened.config.train, entry["epoch"] - 1, entry["step"] - 1)}
        for entry in opened.trail[1:]
    ]
    told = [{key: value for key, value in line.items() if key != "seconds"} for line in lines]
    return [] if _same(told, recorded) else [f"{LOG} does not say what the trail says"]


def _check_checkpoints(opened: Opened) -> list[str]:
    trail, config = opened.trail, opened.config
    problems = []
    found = {place.epoch for place, _ in list_checkpoints(opened.path) if not place.batch}
    epochs, every = config.train.epochs, config.train.checkpoint_every
    for epoch in sorted({*range(every, epochs + 1, every), epochs} ^ found):
        state = "is not one of" if epoch in found else "is missing from"
        problems.append(f"the checkpoint of epoch {epoch} {state} those the configuration asks for")
    moved = tuple(opened.claims["promise"]["generators_moved"])
    for place, path in list_checkpoints(opened.path):
        try:
            checkpoint = read_checkpoint(path, config.digest)
        except SeedlessError as error:
            problems.append(str(error))
            continue
        if place.epoch >= len(trail):
            problems.append(f"{path.name} is of an epoch that the trail does not have")
            continue
        start, entry = checkpoint.start, trail[place.epoch]
        best = None if start.best is None else [start.best.epoch, start.best.score]
        if not _same(best, _select(trail[1:], config, place.epoch)):
            problems.append(f"{path.name} keeps other weights as the best than the trail tells")
        if start.best is not None and not _holds(trail, start.best.epoch, start.best.weights):
            problems.append(f"{path.name} does not keep the weights the trail has at its best")
        if place.batch:
            continue
        if (
            digest_tensors(checkpoint.state) != entry["state"]
            or start.position.step != entry["step"]
        ):
            problems.append(f"{path.name} does not hold the state the trail has at that epoch")
        if place.epoch == config.train.epochs and start.moved != moved:
            problems.append(f"{path.name} and the receipt disagree about the generators that moved")
    return problems


def _select(lines: Lines, config: Config, epoch: int) -> list[Any] | None:
    """Return epoch and score of the weights a run keeps after an epoch, or None before any."""
    scores = {line["epoch"]: line["score"] for line in lines[:epoch] if line["score"] is not None}
    if not scores:
        return [epoch, None] if epoch == config.train.epochs else None
    best = max(scores, key=lambda e: (scores[e], -e))
    return [best, scores[best]]


def _holds(trail: Sequence[Entry], epoch: int, weights: Mapping[str, Tensor]) -> bool:
    """Whether weights are those of the model at an entry of a trail."""
    if not 0 <= epoch < len(trail):
        return False
    state = trail[epoch]["state"]
    recorded = {name: state[name] for name in state if name.startswith("model/")}
    return digest_tensors({f"model/{name}": value for name, value in weights.items()}) == recorded


def _same(one: Any, other: Any) -> bool:
    """Whether two plain values are the same in JSON, where 1, 1.0 and true are three things."""
    return canonical_json(one) == canonical_json(other)
