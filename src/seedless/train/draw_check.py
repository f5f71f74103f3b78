"""The check that a training step, or a first call of the model, used no global generator."""

from collections.abc import Callable
from typing import Any

from seedless.numerics.first_draw import find_first_draw
from seedless.numerics.generator_guard import GeneratorGuard
from seedless.train.progress_state import ProgressState
from seedless.train.training_problem import TrainingProblem


def check_step_draws(
    progress: ProgressState, guard: GeneratorGuard, repeat: Callable[[], Any]
) -> None:
    """Raise NumericsError where a step used a global generator and train.guard is "refuse".

    The message names the line and the module that drew first, which is found by ``repeat``, the
    same step once more: the run ends here in any case. On a GPU only the first step is checked
    here, because reading a generator there takes as long as a short step; the end of the epoch
    checks all.
    """
    problem, step = progress.problem, progress.position.step
    on_gpu = problem.device.type != "cpu"
    if problem.config.train.guard != "refuse" or (on_gpu and step > 1) or not guard.moved():
        return
    # The processes of a group cannot repeat a step: one that drew would wait for the others.
    draw = find_first_draw(repeat, problem.model) if problem.group is None else None
    guard.check(f"in step {step}" + ("" if draw is None else f", {draw}"))


def check_evaluation_draws(problem: TrainingProblem, evaluate: Callable[[], Any]) -> None:
    """Call ``evaluate``; raise NumericsError where it draws and train.guard is "refuse".

    Scores of the validation split select the weights of a run. A model that draws in evaluation
    mode gives other scores each time, and no training step would show it. A run without that split
    is not refused here: some models draw a number that they do not use in evaluation mode.
    """
    guard = GeneratorGuard()
    evaluate()
    if problem.config.train.guard != "refuse" or problem.val is None or not guard.moved():
        return
    draw = find_first_draw(evaluate, problem.model)
    place = "" if draw is None else f", {draw}"
    guard.check(f"where the model was called in evaluation mode{place}")
