"""The same start trained several times by the step most people write: what does the device do?

Without deterministic mode a GPU may add in another order every time. A CPU with a fixed number of
threads does not, so there repeats end in the same score.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import torch

from seedless.bench.flags import run_with_flags, use_plain_flags
from seedless.bench.rivals import make_plain_runner
from seedless.core.config import Config
from seedless.core.errors import StudyError
from seedless.evaluate.ranking import macro_auc
from seedless.runs.prepare import Prepared, prepare
from seedless.train.learning_rate import learning_rate_at
from seedless.train.loop import evaluate, merge_single_sample_batch, select
from seedless.train.prediction import predict
from seedless.train.progress_state import BestWeights
from seedless.train.state_tensors import name_tensors


def repeat_plain(config: Config, count: int) -> list[float]:
    """Return the test macro AUC of each of ``count`` trainings that differ in nothing we set.

    Weights, batches, rates and selection are those of the run the configuration names; the model is
    its twin of torch's own layers, and torch's flags are those it comes with.
    """
    prepared = prepare(config.change(execution={"mode": "eager", "precision": "fp32"}))
    threads = prepared.config.execution.threads or 1
    scores = []
    for _ in range(count):
        with run_with_flags(partial(use_plain_flags, threads=threads)):
            scores.append(_train_plain(prepared))
    return scores


def _train_plain(prepared: Prepared) -> float:
    problem, train = prepared.problem, prepared.config.train
    runner = make_plain_runner(problem, problem.train.samples.contiguous())
    turn = replace(problem, model=runner.model)
    best: BestWeights | None = None
    steps = 0
    for epoch in range(train.epochs):
        for rows in merge_single_sample_batch(problem.order.schedule(epoch).batches):
            for group in runner.groups:
                group["lr"] = learning_rate_at(train, epoch, steps)
            runner.step(torch.from_numpy(rows).to(problem.device))
            steps += 1
        if (epoch + 1) % train.evaluate_every == 0 or epoch + 1 == train.epochs:
            best = select(turn, best, epoch + 1, evaluate(turn))
    if best is None or prepared.test is None:
        raise StudyError("repeats need a test set to be scored on; the data have none")
    with torch.no_grad():
        for name, tensor in name_tensors(runner.model).items():
            tensor.copy_(best.weights[name])
    said = predict(runner.model, prepared.test, problem.loss, prepared.config)
    score = macro_auc(said, prepared.test.labels.cpu().numpy().astype(np.uint8))
    if score is None:
        raise StudyError("repeats cannot be scored: no class of the test set has both kinds")
    return score
