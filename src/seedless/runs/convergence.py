"""Why a run did not converge, in words."""

from collections.abc import Mapping
from math import ceil
from typing import Any

from seedless.core.config import Config
from seedless.evaluate.auc import FEW_POSITIVES


def describe_warmup(config: Config, samples: int) -> list[str]:
    """Return a note on a run of so many training samples that ends before its warm-up does."""
    warmup = config.train.warmup_steps
    steps = config.train.epochs * ceil(samples / config.order.batch_size)
    return [_describe_short_run("never reaches", warmup, steps)] if warmup >= steps else []


def _describe_short_run(verb: str, warmup: int, steps: int) -> str:
    return (
        f"the learning rate {verb} train.rate, since train.warmup_steps is {warmup} and the run "
        f"has {steps} steps at most: lower it, or train longer"
    )


def describe_failure(claims: Mapping[str, Any]) -> str:
    """Return why a run did not converge, in words: its score, the limit, and what to try."""
    split = "validation" if "validation" in claims["metrics"] else "train"
    settings = claims["config"]["values"]["train"]
    scores, limit = claims["metrics"][split], settings["converged_above"]
    score = scores["macro_auc"]
    if score is None:
        return f"the {split} score is not defined: no class has both positives and negatives"
    few = [
        f"{row['positives']} of {name}"
        for name, row in scores["classes"].items()
        if row["auc"] is not None and row["positives"] < FEW_POSITIVES
    ]
    text = f"the {split} score {score:.4f} is not above train.converged_above = {limit:g}"
    if few:
        shown = ", ".join(few[:3]) + (", ..." if len(few) > 3 else "")
        text += f", but it rests on few positives ({shown}): one record can move it far"
    values, warmup = claims["config"]["values"], settings["warmup_steps"]
    batches = ceil(claims["data"]["records"]["train"] / values["order"]["batch_size"])
    steps = settings["epochs"] * batches
    if warmup >= steps:
        return f"{text}; {_describe_short_run('never reached', warmup, steps)}"
    return f"{text}; try {'a lower train.rate' if warmup else 'train.warmup_steps'}"
