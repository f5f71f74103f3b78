"""After a step, the first use of a global generator is refused with line and module."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from seedless.core.errors import NumericsError
from seedless.numerics.generator_guard import GeneratorGuard
from seedless.train.draw_check import check_step_draws

MODEL = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))


def make_progress(step=1, guard="refuse", device="cpu"):
    config = SimpleNamespace(train=SimpleNamespace(guard=guard))
    problem = SimpleNamespace(config=config, device=torch.device(device), model=MODEL, group=None)
    return SimpleNamespace(problem=problem, position=SimpleNamespace(step=step))


def run_step():
    MODEL(torch.ones(3, 2))


def check(progress, repeat=run_step):
    guard = GeneratorGuard()
    run_step()
    check_step_draws(progress, guard, repeat)


@pytest.mark.parametrize("step", [1, 7])
def test_line_and_module_are_in_the_message(step):
    with pytest.raises(
        NumericsError,
        match=rf"torch's CPU generator moved in step {step}, at .*{__name__.split('.')[-1]}\.py:"
        r"\d+, in module '1'",
    ):
        check(make_progress(step))


def test_a_step_that_cannot_be_repeated_is_refused_without_a_line():
    def fail():
        raise RuntimeError("these batches were read once")

    with pytest.raises(NumericsError, match="moved in step 1, so the same bits"):
        check(make_progress(), fail)


def test_what_is_reported_at_the_end_is_not_refused_here():
    check(make_progress(guard="report"))
    check(make_progress(step=2, device="cuda"))  # whose first step alone is checked here
    with pytest.raises(NumericsError):
        check(make_progress(step=1, device="cuda"))


def test_a_step_without_draws_passes():
    guard = GeneratorGuard()
    check_step_draws(make_progress(), guard, lambda: pytest.fail("repeated"))
