"""What the recorders of all frameworks have in common: one table, the same tests."""

from dataclasses import dataclass, field

import pytest

import seedless
from seedless.proof.loop_lines import read_loop
from tests.integrations.parts import BATCHES, EPOCHS, load_loop

pytestmark = pytest.mark.filterwarnings("ignore")  # what frameworks say of loaders and workers


@dataclass(frozen=True)
class Expected:
    """What a framework calls its epochs and parameters, and how it accumulates gradients.

    Attributes:
        first_epoch: the number of the first epoch.
        prefix: of the names of parameters.
        rates: of the optimizer's groups after the last step.
        accumulate: the setting for which a step takes several batches.
        steps: their numbers in the trail with that setting.
        losses: how many losses each of them has.
    """

    first_epoch: int
    prefix: str
    rates: list[float]
    accumulate: dict[str, int]
    steps: list[int] = field(default_factory=lambda: [1, 2, 3, 4, 5, 6])
    losses: list[int] = field(default_factory=lambda: [4, 2, 4, 2, 4, 2])


FRAMEWORKS = {
    "lightning": Expected(0, "network.", [0.0], {"accumulate_grad_batches": 4}),
    # One group has weight decay.
    "transformers": Expected(0, "network.", [0.0, 0.0], {"gradient_accumulation_steps": 4}),
    # The loop gives one loss for each step.
    "accelerate": Expected(0, "", [0.0], {"accumulate": 4}, losses=[1, 1, 1, 1, 1, 1]),
    # A step has the number of its last batch.
    "ignite": Expected(1, "", [0.0], {"accumulate": 3}, [3, 6, 9, 12, 15, 18], [3, 3, 3, 3, 3, 3]),
}
each_framework = pytest.mark.parametrize("framework", FRAMEWORKS)


@each_framework
def test_two_runs_are_identical(framework, train_unbroken, tmp_path):
    expected, unbroken = FRAMEWORKS[framework], train_unbroken(framework)
    assert seedless.diff(unbroken, load_loop(framework)(tmp_path)).identical
    lines = read_loop(unbroken)[0][1:]
    assert [line["step"] for line in lines] == list(range(1, EPOCHS * BATCHES + 1))
    epochs = [expected.first_epoch + batch // BATCHES for batch in range(EPOCHS * BATCHES)]
    assert [line["epoch"] for line in lines] == epochs
    last, prefix = lines[-1], expected.prefix
    assert last["rate"] == {"optimizer": expected.rates}
    assert isinstance(last["loss"], float)
    assert {"python", "numpy", "torch"} <= {*last["generators"]}
    assert "scheduler" in last
    names = {f"model/{prefix}0.weight", f"optimizer/exp_avg/{prefix}0.weight"}
    assert names <= {*last["state"]}


@each_framework
def test_another_seed_is_found_at_its_step(framework, train_unbroken, tmp_path):
    other = load_loop(framework)(tmp_path, reseed_at=9)
    found = seedless.diff(train_unbroken(framework), other)
    epoch = FRAMEWORKS[framework].first_epoch + 1
    assert (found.identical, found.step, found.epoch) == (False, 9, epoch)
    assert "batch" not in found.names


@each_framework
def test_accumulated_gradients_give_a_line_for_each_step(framework, tmp_path):
    expected = FRAMEWORKS[framework]
    lines = read_loop(load_loop(framework)(tmp_path, **expected.accumulate))[0][1:]
    assert [line["step"] for line in lines] == expected.steps
    losses = [line["loss"] if isinstance(line["loss"], list) else [line["loss"]] for line in lines]
    assert [len(given) for given in losses] == expected.losses
