"""The results of a run with a user-defined loss: scores and digests, and no predictions file.

Outputs may be whole volumes, so a run keeps the digest of its outputs and its scores.
"""

import math
from collections.abc import Mapping
from typing import Any

from seedless.core.dataset import NEGATIVE_LOSS
from seedless.core.digests import digest_value
from seedless.core.errors import TrainingDivergedError
from seedless.data.splits import count_repeated, refuse_repeated
from seedless.ordering.samples import sort_bytes
from seedless.runs.prepare import Prepared
from seedless.runs.prepare_streamed import TASK
from seedless.train.loop import ADVICE
from seedless.train.progress_state import BestWeights
from seedless.train.streamed_evaluation import evaluate_split
from seedless.train.training_problem import StreamedSplit

METRIC = NEGATIVE_LOSS  # the score that selects weights: higher is better
CONTENT = "content"  # in the metrics of a run with keys: the digests of what was read


def has_user_loss(claims: Mapping[str, Any]) -> bool:
    """Whether a receipt is of a run with a user-defined loss."""
    return bool(claims["data"]["task"] == TASK)


def score_streamed(prepared: Prepared, best: BestWeights) -> tuple[dict[str, Any], str]:
    """Return the metrics of the selected weights, which are in the model, and the outputs' digest.

    With keys of the user's own, the metrics state the digest of the content that was read: it is
    known only now.
    """
    problem = prepared.problem
    splits = {"validation": problem.val, "test": prepared.test}
    if problem.val is None:
        splits["train"] = problem.train  # some split must show what the run learned
    metrics: dict[str, Any] = {}
    outputs = {}
    for name, split in splits.items():
        if split is None:
            continue
        assert isinstance(split, StreamedSplit)
        scores = evaluate_split(problem, split, prepared.metrics, with_digest=True)
        values = {"loss": scores.loss, **scores.metrics}
        for metric, value in values.items():
            if not math.isfinite(value):
                raise TrainingDivergedError(
                    f"{metric} of the selected weights is {value} on the {name} split. {ADVICE}"
                )
        metrics[name] = {"n": len(split), **values}
        outputs[name] = scores.outputs
    metrics["selected"] = {"epoch": best.epoch, "metric": METRIC, "score": best.score}
    metrics["converged"] = None  # a user-defined loss has no value that means chance
    if any(item["role"] == "key" for item in prepared.facts["callables"]):
        metrics[CONTENT] = digest_read_content(prepared)
    return metrics, digest_value(outputs)


def digest_read_content(prepared: Prepared) -> str:
    """Return the digest of the training samples as they were read.

    Samples that another split has too are counted now: their content was not known before.
    """
    problem = prepared.problem
    splits = {"train": problem.train, "val": problem.val, "test": prepared.test}
    contents = {}
    for name, split in splits.items():
        if isinstance(split, StreamedSplit):
            contents[name] = split.reader.digest_content()
    facts = {"repeated": count_repeated(contents)}
    refuse_repeated(facts, prepared.config.data, "a training sample")
    return digest_value(contents["train"][sort_bytes(contents["train"])].tobytes().hex())
