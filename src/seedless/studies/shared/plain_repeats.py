"""The same training several times with torch's own layers and flags: what does the device change?

Without deterministic mode a GPU may add in another order in every run. A CPU with a fixed number of
threads does not, so there all repeats have the same score.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import torch

from seedless.bench.flags import run_with_flags, use_plain_flags
from seedless.bench.rivals import make_plain_runner
from seedless.core.config import Config
from seedless.core.digests import name_tensors
from seedless.core.errors import StudyError
from seedless.evaluate.auc import macro_auc
from seedless.runs.prepare import Prepared, prepare
from seedless.train.loop import train
from seedless.train.loss import Loss
from seedless.train.prediction import predict
from seedless.train.training_problem import DataSplit


def repeat_plain(config: Config, count: int) -> list[float]:
    """Return the test macro AUC of each of ``count`` trainings from the same start.

    Weights, batches, rates and selection are those of the run that the configuration describes. The
    model has torch's own layers, and torch's flags have their default values.
    """
    settings = {"mode": "eager", "precision": "fp32"}
    # torch's dropout uses a generator, which our own runs never do.
    prepared = prepare(config.change(execution=settings, train={"guard": "report"}))
    set_flags = partial(use_plain_flags, threads=prepared.config.execution.threads or 1)
    scores = []
    for _ in range(count):
        with run_with_flags(set_flags):
            scores.append(_train_plain(prepared))
    return scores


def _train_plain(prepared: Prepared) -> float:
    problem, test = prepared.problem, prepared.test
    if not isinstance(test, DataSplit):
        raise StudyError("repeats need a test set to be scored on; the data have none")
    assert isinstance(problem.loss, Loss)
    runner = make_plain_runner(problem, problem.in_memory.expand().contiguous())
    assert runner.optimizer is not None
    plain = replace(problem, model=runner.model, optimizer=runner.optimizer)
    best = train(plain, step=lambda rows, _: runner.step(rows)).best
    with torch.no_grad():
        for name, tensor in name_tensors(runner.model).items():
            tensor.copy_(best.weights[name])
    probabilities = predict(runner.model, test, problem.loss, prepared.config)
    score = macro_auc(probabilities, test.labels.cpu().numpy().astype(np.uint8))
    if score is None:
        raise StudyError("repeats cannot be scored: no class of the test set has both kinds")
    return score
