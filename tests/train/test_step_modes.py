"""Compiled steps, with a compiler that only counts which batches it makes kernels for."""

import pytest
import torch

from seedless.train.loop import train
from seedless.train.step_modes import CompiledStep
from tests.train.problems import make_problem, small_conformer


@pytest.fixture
def sizes(monkeypatch):
    """The sizes of the batches that compiled kernels saw."""
    seen = []

    def compile_nothing(forward, **_):
        def call(module, x, *rest):
            seen.append(len(x))
            return forward(module, x, *rest)

        return call

    monkeypatch.setattr(torch, "compile", compile_nothing)
    return seen


@pytest.mark.parametrize(
    ("count", "microbatch", "expected"),
    [(24, None, {5}), (3, None, {3}), (25, None, {5}), (24, 2, {2}), (24, 100, {5})],
)
def test_full_batches_alone_are_compiled(sizes, count, microbatch, expected):
    model = small_conformer if count > 3 else None
    problem = make_problem(
        **({"model": model} if model else {}),
        count=count,
        val=0,
        train={"epochs": 1, "microbatch": microbatch},
    )
    train(problem, step=CompiledStep(problem))
    assert set(sizes) == expected


def test_every_region_is_compiled_for_a_full_batch(sizes):
    problem = make_problem(model=small_conformer, count=10, val=0, train={"epochs": 1})
    step = CompiledStep(problem)
    train(problem, step=step)
    assert len(sizes) == 2 * len(step.compiled)
