"""What a receipt states of a user's functions, and of the results of a user-defined loss."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from seedless.core.bounded_reading import MAX_JSON_BYTES, parse_json, read_file
from seedless.core.config import Config
from seedless.core.digests import is_digest
from seedless.core.errors import SeedlessError
from seedless.core.mismatch import is_same_json
from seedless.evaluate.predictions import FILE as PREDICTIONS
from seedless.runs.seal import METRICS
from seedless.runs.streamed_results import CONTENT, METRIC, has_user_loss
from seedless.train.user_optimizer import USER_FUNCTION

if TYPE_CHECKING:
    from seedless.runs.validation import ValidatedRun


def check_functions(run: ValidatedRun) -> list[str]:
    """Compare the functions of the user that a receipt names with the configuration."""
    config, roles = run.config, {item["role"] for item in run.claims.get("callables", [])}
    settings = {
        "loss": config.loss.name,
        "optimizer": config.train.optimizer,
        "scheduler": config.train.decay,
    }
    problems = [
        f"config.toml and the receipt disagree about whether there is a {role} of the user's own"
        for role, value in settings.items()
        if (value == USER_FUNCTION) != (role in roles)
    ]
    if has_user_loss(run.claims) != ("loss" in roles):
        problems.append("the task of the data does not suit the functions in the receipt")
    if "loss" not in roles and roles & {"collate", "key", "metrics"}:
        problems.append("the receipt names functions that belong to a user-defined loss")
    return problems


def has_user_rates(config: Config) -> bool:
    """Whether a user's optimizer or scheduler decided the learning rates of a run."""
    return USER_FUNCTION in (config.train.optimizer, config.train.decay)


def check_user_scores(run: ValidatedRun) -> list[str]:
    """Compare the metrics of a run with a user-defined loss with its receipt."""
    if PREDICTIONS in run.claims["files"]:
        return [f"{PREDICTIONS} is there, and a run with a user-defined loss writes none"]
    try:
        metrics = parse_json(read_file(run.path / METRICS, MAX_JSON_BYTES), METRICS)
    except (SeedlessError, OSError) as error:
        return [f"{METRICS} cannot be read: {error}"]
    problems = check_streamed_metrics(metrics, run.claims)
    if not is_same_json(metrics, run.claims["metrics"]):
        problems.append(f"{METRICS} differs from the metrics in the receipt")
    if metrics["selected"]["epoch"] != run.claims["weights"]["epoch"]:
        problems.append("the scores are of another epoch than the weights")
    return problems


def check_streamed_metrics(metrics: Mapping[str, Any], claims: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with the metrics and digests that a receipt states of such a run."""
    problems = []
    keyed = any(item["role"] == "key" for item in claims["callables"])
    scored = {*metrics} - {"selected", "converged", CONTENT}
    expected = {"validation" if "val" in claims["data"]["records"] else "train"}
    if "test" in claims["data"]["records"]:
        expected.add("test")
    if scored != expected:
        problems.append(f"expected scores of {', '.join(sorted(expected))} in the metrics")
        return problems
    for split in scored:
        values = metrics[split]
        if not {"n", "loss"} <= {*values} or not all(map(_is_finite, values.values())):
            problems.append(f"the {split} scores are not finite numbers with a loss")
            return problems
    if metrics["converged"] is not None or metrics["selected"]["metric"] != METRIC:
        problems.append("the metrics are not those of a run with a user-defined loss")
    if "validation" in metrics and metrics["selected"]["score"] != -metrics["validation"]["loss"]:
        problems.append("the validation loss is not that of the selected epoch")
    if not is_digest(claims["predictions"]):
        problems.append("the receipt does not state a digest of the outputs")
    if is_digest(metrics.get(CONTENT)) != keyed:
        problems.append("a digest of the content that was read belongs to runs with keys, and only")
    return problems


def _is_finite(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)
