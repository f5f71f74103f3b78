"""The checks of `validate` beyond digests: is the content of a run's files what its receipt says?

Each check returns what is wrong, a sentence each. Someone who changes a file can also write a new
receipt with matching digests; these checks make such a receipt contradict the other files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from seedless.core.bounded_reading import MAX_JSON_BYTES, parse_json, read_file
from seedless.core.config import Config
from seedless.core.errors import SeedlessError
from seedless.core.mismatch import is_same_json
from seedless.evaluate.predictions import FILE as PREDICTIONS
from seedless.evaluate.predictions import MAX_PREDICTIONS_BYTES, parse_predictions
from seedless.evaluate.scores import score_predictions
from seedless.proof.receipt import get_major
from seedless.proof.stripped_run import list_facts
from seedless.proof.trail import summarize_trail
from seedless.runs.data_checks import check_data
from seedless.runs.environment_checks import check_environment
from seedless.runs.prepare import USER_MODEL
from seedless.runs.seal import METRICS, PROMISES
from seedless.runs.state_checks import check_checkpoints, check_weights
from seedless.runs.streamed_results import has_user_loss
from seedless.runs.user_checks import check_functions, check_user_scores, has_user_rates
from seedless.runs.weights_checks import check_weights_file
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

    A run with a user-defined loss keeps no predictions: its metrics are checked for their form
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
