"""Operations of one run that do not matter are left out; all others stay, and are found."""

from dataclasses import replace

import torch
from torch import nn

from seedless.audit.first_difference import find_first_difference
from seedless.audit.op_alignment import align_operations
from seedless.script_recorder.op_record import OpRecord
from seedless.script_recorder.script_ops import ScriptOps


def train(*, show=False, draw=False, scale=False, more=False, seed=0):
    """Record two small steps, with or without something in between."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(seed)
    x = torch.ones(3, 4)
    lines = []
    ops = ScriptOps(lines.append, lambda: False)
    ops.start()
    try:
        for _ in range(3 if more else 2):
            out = model(x)
            loss = out.pow(2).mean()
            if show:
                f"{loss.item():.3f} {out} {out.detach().abs().max()}"
            if draw:
                torch.rand(3)
            if scale:
                out.data.mul_(2)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    finally:
        ops.stop()
    return [OpRecord.from_dict(line) for line in lines]


def test_equal_runs_are_equal():
    assert find_first_difference(train(), train(), aligned=True) is None


def test_printed_values_are_no_difference():
    plain, shown = train(), train(show=True)
    assert len(shown) > len(plain) + 8
    assert find_first_difference(plain, shown, aligned=True) is None
    assert find_first_difference(shown, plain, aligned=True) is None
    # Negative control: paired by position, they do not perform the same operations.
    assert find_first_difference(plain, shown).kind == "program"


def test_what_differs_is_found_behind_printed_values():
    found = find_first_difference(train(), train(show=True, seed=1), aligned=True)
    assert (found.kind, found.draws, found.op) == ("draw", "torch", "aten.bernoulli_.float")
    assert found.module == "Sequential.2"
    assert "test_op_alignment.py:" in found.line
    assert found.line in found.describe()
    assert "drew from the generator 'torch'" in found.describe()


def test_a_draw_in_one_run_alone_matters():
    found = find_first_difference(train(), train(draw=True), aligned=True)
    assert (found.kind, found.op, found.draws) == ("program", "aten.rand.default", "torch")


def test_a_change_in_one_run_alone_matters():
    found = find_first_difference(train(), train(scale=True), aligned=True)
    assert (found.kind, found.op) == ("program", "aten.detach.default")


def test_a_step_in_one_run_alone_matters():
    short, long = train(), train(more=True)
    found = find_first_difference(short, long, aligned=True)
    assert (found.kind, found.index) == ("program", len(short))


def test_programs_that_never_meet_again_are_paired_as_they_come():
    one = [OpRecord("", "", f"aten.a{at}.default") for at in range(4)]
    two = [OpRecord("", "", f"aten.b{at}.default") for at in range(3)]
    assert align_operations(one, two) == [*zip(one, two, strict=False), (one[3], None)]
    assert find_first_difference(one, two, aligned=True).index == 0


def test_draws_of_one_call_at_two_lines_are_two_draws():
    draw = OpRecord("draw", "", "random.random", outputs=("1",), line="a.py:1", draws="python")
    found = find_first_difference([draw], [replace(draw, line="a.py:2")], aligned=True)
    assert found.kind == "program"
    found = find_first_difference([draw], [replace(draw, outputs=("2",))], aligned=True)
    assert (found.kind, found.draws, found.line) == ("draw", "python", "a.py:1")
