"""The checks of `validate` beyond digests: is the content of a run's files what its receipt says?

Each check returns what is wrong, a sentence each. Someone who changes a file can also write a new
receipt with matching digests; these checks make such a receipt contradict the other files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from seedless.core.bounded_reading import MAX_JSON_BYTES, parse_json, read_file
from seedless.core.config import Config
from seedless.core.digests import digest, digest_each
from seedless.core.errors import SeedlessError
from seedless.core.mismatch import is_same_json
from seedless.core.tensor_files import load_tensors
from seedless.evaluate.predictions import FILE as PREDICTIONS
from seedless.evaluate.predictions import MAX_PREDICTIONS_BYTES, parse_predictions
from seedless.evaluate.scores import score_predictions
from seedless.proof.receipt import WEIGHTS, get_major
from seedless.proof.stripped_run import list_facts
from seedless.proof.trail import TrailEntry, summarize_trail
from seedless.runs.data_checks import check_data
from seedless.runs.environment_checks import check_environment
from seedless.runs.prepare import USER_MODEL
from seedless.runs.seal import METRICS, PROMISES, WEIGHTS_METADATA
from seedless.runs.streamed_results import METRIC, has_user_loss
from seedless.runs.user_checks import check_functions, check_user_scores, has_user_rates
from seedless.runs.weights_checks import check_weights_file
from seedless.train.checkpoint import Checkpoint, list_checkpoints, read_checkpoint
from seedless.train.learning_rate import learning_rate_at
from seedless.train.log import LOG_FILE

if TYPE_CHECKING:
    from seedless.runs.validation import ValidatedRun

# What reading a damaged file raises.
DAMAGE = (OSError, ValueError)

# The fields of a trail's first line, and of those after it.
_CHAIN = ("kind", "epoch", "step", "state", "previous", "digest")
_START, _EPOCH = {*_CHAIN, "schema"}, {*_CHAIN, "schedule", "loss", "score"}

_LOGGED = ("epoch", "step", "loss", "score")  # of a line of the trail, besides the rate

SCORED_SPLITS = {"train", "validation", "test"}

Lines = Sequence[Mapping[str, Any]]  # of a trail or a log


def check_content(run: ValidatedRun) -> list[str]:
    """Return what is wrong with the content of a run whose receipt, trail and log were read."""
    checks = [check_config, check_data, check_functions, check_weights_file]
    checks += [check_scores, check_seconds]
    if run.left_out:
        checks += [check_stripped, check_weights]
    else:
        checks += [check_trail, check_weights, check_log, check_checkpoints]
    problems = []
    for check in checks:
        try:
            problems += check(run)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            # A forged file may have any form: an error here means that no run wrote it.
            problems.append(f"a file of the run does not have the form it must have: {error!r}")
    return problems


def check_config(run: ValidatedRun) -> list[str]:
    """Compare the configuration, the kind of run and the promise with the receipt."""
    config, claims = run.config, run.claims
    problems = []
    if claims["config"]["digest"] != config.digest:
        problems.append("config.toml does not have the digest that the receipt names")
    if not is_same_json(claims["config"]["values"], config.identity()):
        problems.append("config.toml is not the configuration the receipt quotes")
    kind = "fit" if config.model.name == USER_MODEL else "train"
    if claims["kind"] != kind:
        problems.append(f"config.toml is of a run of kind {kind}, the receipt's {claims['kind']!r}")
    promise = claims["promise"]
    allowed = {
        "same_bits": not promise["generators_moved"],
        "across": PROMISES[config.execution.arithmetic],
        "generators_moved": promise["generators_moved"],
        "control": config.control.flip_bit,
    }
    if not is_same_json(promise, allowed):
        problems.append("the receipt promises something else than its configuration allows")
    return problems


def check_scores(run: ValidatedRun) -> list[str]:
    """Compute the scores again from the predictions; compare them with metrics and receipt.

    A run with a loss of the user's own keeps no predictions: its metrics are checked for their form
    and against the trail, and the rest is found by executing it again.
    """
    claims = run.claims
    if has_user_loss(claims):
        return check_user_scores(run)
    try:
        content = read_file(run.path / PREDICTIONS, MAX_PREDICTIONS_BYTES)
        predictions = parse_predictions(content, PREDICTIONS)
        metrics = parse_json(read_file(run.path / METRICS, MAX_JSON_BYTES), METRICS)
    except SeedlessError as error:
        return [str(error)]
    except OSError as error:
        return [f"{PREDICTIONS} or {METRICS} cannot be read: {error}"]
    problems = []
    if not is_same_json(metrics, claims["metrics"]):
        problems.append(f"{METRICS} differs from the metrics in the receipt")
    if predictions.digest != claims["predictions"]:
        problems.append(f"{PREDICTIONS} does not have the digest that the receipt names")
    if predictions.weights != claims["weights"]["digest"]:
        problems.append(f"{PREDICTIONS} holds predictions of other weights than the receipt's")
    if not is_same_json([*predictions.classes], claims["data"]["classes"]):
        problems.append(f"{PREDICTIONS} is about other classes than the receipt")
    if predictions.task != claims["data"]["task"]:
        problems.append(f"{PREDICTIONS} is about another task than the receipt")
    if {*predictions.splits} != {*metrics} - {"selected", "converged"}:
        problems.append(f"{PREDICTIONS} and {METRICS} are not about the same splits")
        return problems
    if not {*predictions.splits} <= SCORED_SPLITS:  # each takes seconds to score
        problems.append(f"{PREDICTIONS} has splits that no run scores: they were added")
        return problems
    for split, scored in score_predictions(predictions).items():
        if not is_same_json(scored, metrics[split]):
            problems.append(f"the {split} scores are not those of {PREDICTIONS}")
    score = metrics["validation" if "validation" in metrics else "train"]["macro_auc"]
    converged = score is not None and score > run.config.train.converged_above
    if metrics["converged"] is not converged:
        problems.append("whether the run converged does not follow from its score")
    if "validation" in metrics and score != metrics["selected"]["score"]:
        problems.append("the validation score is not that of the selected epoch")
    if metrics["selected"]["epoch"] != claims["weights"]["epoch"]:
        problems.append("the scores are of another epoch than the weights")
    return problems


def check_trail(run: ValidatedRun) -> list[str]:
    """Compare the trail, whose chain is intact, with configuration and receipt."""
    trail, config, claims = run.trail, run.config, run.claims
    problems = []
    # [Step 1] One entry for each epoch, with the fields such an entry has and no others.
    numbers, epochs = [entry.get("epoch") for entry in trail], config.train.epochs
    if len(trail) != epochs + 1 or not is_same_json(numbers, list(range(len(trail)))):
        problems.append(f"expected a trail of epochs 0 to {epochs}, found {len(trail)} entries")
    first = {*_START, *list_facts(claims)}
    for number, entry in enumerate(trail, start=1):
        kind, fields = ("start", first) if number == 1 else ("epoch", _EPOCH)
        if {*entry} != fields or entry["kind"] != kind or type(entry["step"]) is not int:
            problems.append(f"line {number} of the trail does not have the fields of such a line")
    # [Step 2] The first entry says what the receipt says the run began with.
    begun = trail[0]
    for fact in list_facts(claims):
        if not is_same_json(begun.get(fact), claims[fact]):
            problems.append(f"the trail's first line and the receipt disagree about {fact!r}")
    if begun.get("step") != 0:
        problems.append("the trail's first line does not have step 0")
    problems += check_facts(claims, config)
    # [Step 3] The receipt names the digest of the last entry, and so all entries before it.
    summary = summarize_trail(trail)
    if not is_same_json(claims["trail"], summary["trail"]):
        problems.append("the trail's last digest is not the head that the receipt names")
    if claims["schedule"] != summary["schedule"]:
        problems.append("the receipt's schedule is not that of the trail")
    return problems


def check_facts(claims: Mapping[str, Any], config: Config) -> list[str]:
    """Compare what the receipt says the run began with to its configuration."""
    problems = check_environment(claims, config)
    if claims["settings"] != config.digest:
        problems.append("the run was begun with another configuration than config.toml")
    return problems


def check_selected(lines: Lines, claims: Mapping[str, Any], config: Config) -> list[str]:
    """Select the best epoch again from the scores of a trail or a log, without its line 0."""
    epoch, selected, problems = claims["weights"]["epoch"], claims["metrics"]["selected"], []
    best = _select(lines, config, config.train.epochs)
    metric = METRIC if has_user_loss(claims) else "macro_auc"
    if not is_same_json(best, [epoch, selected["score"]]) or selected["metric"] != metric:
        problems.append(f"the best recorded score is not that of the selected epoch, {epoch}")
    if not re.fullmatch("[0-9a-f]{32}", claims["weights"]["md5"]):
        problems.append("the receipt's md5 does not have the form of an MD5")
    return problems


def check_weights(run: ValidatedRun) -> list[str]:
    """Compare the weights with the receipt and with the trail's entry of the selected epoch.

    A stripped run has no trail, and may have no weights: its log says which epoch was selected.
    """
    lines = run.log if run.left_out else run.trail[1:]
    problems = check_selected(lines, run.claims, run.config)
    if WEIGHTS in run.left_out:
        return problems
    try:
        tensors, metadata = load_tensors(run.path / WEIGHTS)
    except (OSError, SeedlessError) as error:
        return [*problems, f"{WEIGHTS} cannot be read: {error}"]
    epoch = run.claims["weights"]["epoch"]
    if metadata != WEIGHTS_METADATA:
        # Nothing that is executed again could contradict it, and others would read it as checked.
        problems.append(f"{WEIGHTS} has other metadata than a run writes: they were added")
    if digest(tensors) != run.claims["weights"]["digest"]:
        problems.append(f"{WEIGHTS} does not have the weights that the receipt names")
    if not run.left_out and not _is_model_at(run.trail, epoch, tensors):
        problems.append(f"{WEIGHTS} does not have the weights that the trail has at epoch {epoch}")
    return problems


def check_log(run: ValidatedRun) -> list[str]:
    """Compare the log with the trail, except for the seconds, which nothing can check."""
    if len(run.log) != len(run.trail) - 1:
        return [f"{LOG_FILE} has {len(run.log)} lines for {len(run.trail) - 1} epochs of the trail"]
    recorded = [{key: entry[key] for key in _LOGGED} for entry in run.trail[1:]]
    logged = [{key: value for key, value in line.items() if key != "seconds"} for line in run.log]
    if has_user_rates(run.config):  # only the user's functions know the rates
        logged = [{key: value for key, value in line.items() if key != "rate"} for line in logged]
    else:
        for entry in recorded:
            rate = learning_rate_at(run.config.train, entry["epoch"] - 1, entry["step"] - 1)
            entry["rate"] = rate
    if is_same_json(logged, recorded):
        return []
    return [f"{LOG_FILE} does not say what the trail says"]


def check_seconds(run: ValidatedRun) -> list[str]:
    """Refuse an epoch of less than 0 seconds, which a clock could write before schema 2."""
    if get_major(run.claims["schema"]) == "1" or all(line["seconds"] >= 0 for line in run.log):
        return []
    return [f"{LOG_FILE} has an epoch of less than 0 seconds"]


def check_checkpoints(run: ValidatedRun) -> list[str]:
    """Compare every checkpoint with the trail, and their epochs with the configuration."""
    config = run.config
    problems: list[str] = []
    present = {place.epoch for place, _ in list_checkpoints(run.path) if not place.batch}
    epochs, every = config.train.epochs, config.train.checkpoint_every
    if len(run.trail) != epochs + 1:  # which is said already; it may be a million checkpoints
        return problems
    for epoch in sorted({*range(every, epochs + 1, every), epochs} ^ present):
        state = "is not one of" if epoch in present else "is missing from"
        problems.append(f"the checkpoint of epoch {epoch} {state} those that config.toml demands")
    for _, path in list_checkpoints(run.path):
        try:
            checkpoint = read_checkpoint(path, config.digest)
        except SeedlessError as error:
            problems.append(str(error))
            continue
        problems += [f"{path.name} {problem}" for problem in _check_checkpoint(run, checkpoint)]
    return problems


def _check_checkpoint(run: ValidatedRun, checkpoint: Checkpoint) -> list[str]:
    """Return what is wrong with one checkpoint; each sentence lacks its subject."""
    trail, config, start = run.trail, run.config, checkpoint.start
    place, problems = start.position, []
    if place.epoch >= len(trail):
        return ["is of an epoch that the trail does not have"]
    # [Step 1] The best weights so far, selected again from the trail's scores.
    best = None if start.best is None else [start.best.epoch, start.best.score]
    if not is_same_json(best, _select(trail[1:], config, place.epoch)):
        problems.append("has the best weights of another epoch than the trail's scores select")
    if start.best is not None and not _is_model_at(trail, start.best.epoch, start.best.weights):
        problems.append("has other best weights than the trail records for their epoch")
    # [Step 2] The whole state. Within an epoch the trail has no entry to compare it with.
    if place.batch:
        return problems
    entry = trail[place.epoch]
    if digest_each(checkpoint.state) != entry["state"] or place.step != entry["step"]:
        problems.append("does not have the state that the trail records for its epoch")
    moved = tuple(run.claims["promise"]["generators_moved"])
    if place.epoch == config.train.epochs and start.moved != moved:
        problems.append("and the receipt disagree about the generators that moved")
    return problems


def check_stripped(run: ValidatedRun) -> list[str]:
    """Check the log of a stripped run in place of its trail."""
    claims, config = run.claims, run.config
    epochs, problems = config.train.epochs, check_facts(claims, config)
    rates = [
        line["rate"]
        if has_user_rates(config)
        else learning_rate_at(config.train, number, int(line["step"]) - 1)
        for number, line in enumerate(run.log)
    ]
    logged = [[line["epoch"], line["rate"]] for line in run.log]
    expected = [[number + 1, rate] for number, rate in enumerate(rates)]
    if not is_same_json(logged, expected) or len(run.log) != epochs:
        problems.append(f"{LOG_FILE} has other epochs or rates than config.toml")
    if claims["trail"]["entries"] != epochs + 1:
        problems.append(f"expected a trail of epochs 0 to {epochs} in the receipt")
    return problems


def _select(lines: Lines, config: Config, epoch: int) -> list[Any] | None:
    """Return epoch and score of the weights a run keeps after an epoch, or None before any."""
    scores = {line["epoch"]: line["score"] for line in lines[:epoch] if line["score"] is not None}
    if not scores:
        return [epoch, None] if epoch == config.train.epochs else None
    best = max(scores, key=lambda e: (scores[e], -e))
    return [best, scores[best]]


def _is_model_at(trail: Sequence[TrailEntry], epoch: int, weights: Mapping[str, Tensor]) -> bool:
    """Whether weights are those that the model had at an entry of a trail."""
    if not 0 <= epoch < len(trail):
        return False
    state = trail[epoch]["state"]
    recorded = {name: state[name] for name in state if name.startswith("model/")}
    return digest_each({f"model/{name}": value for name, value in weights.items()}) == recorded
