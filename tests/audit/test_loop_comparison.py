"""Loops are compared by step: resumed ones with unbroken ones, and in every process."""

import pytest

from seedless.audit.loop_comparison import compare_loops
from seedless.core.errors import RunError


def line(step, state="a", epoch=None, **fields):
    generators = {"python": fields.pop("python", "p")}
    state = {"model/w": state}
    return {"step": step, "epoch": epoch, "state": state, "generators": generators, **fields}


def trail(*steps, start="s"):
    return [{"step": None, "state": {"model/w": start}}, *steps]


def compare(a, b):
    found, notes = compare_loops({0: a}, {0: b})
    place = None if found is None else (found.step, found.epoch, found.names, found.ranks)
    swapped, _ = compare_loops({0: b}, {0: a})
    assert (swapped is None) == (found is None)
    assert swapped is None or swapped.step == found.step
    return place, notes


def test_equal_loops_are_equal():
    loop = trail(line(1), line(2, "b"))
    assert compare(loop, trail(line(1), line(2, "b"))) == (None, [])


def test_the_first_step_that_differs_is_named_with_its_epoch():
    a = trail(line(10, epoch=0), line(20, "b", epoch=1), line(30, "c", epoch=1))
    b = trail(line(10, epoch=0), line(20, "x", epoch=1), line(30, "y", epoch=1))
    assert compare(a, b)[0] == (20, 1, ("model/w",), (0,))


@pytest.mark.parametrize(
    "field", ["loss", "batch", "rate", "options", "scheduler", "scaler", "sampler"]
)
def test_every_field_counts(field):
    a, b = trail(line(1), line(2, **{field: 1})), trail(line(1), line(2, **{field: 2}))
    assert compare(a, b)[0] == (2, None, (field,), (0,))


def test_a_resumed_loop_is_compared_with_an_unbroken_one_by_step():
    whole = trail(*(line(step, f"s{step}") for step in range(1, 7)))
    resumed = trail(line(4, "s4"), line(5, "s5"), line(6, "s6"), start="a checkpoint")
    place, notes = compare(whole, resumed)
    assert place is None
    assert "3 steps from 1 to 3 are in one trail only" in notes[0]
    inexact = trail(line(4, "s4"), line(5, "x"), line(6, "y"), start="a checkpoint")
    assert compare(whole, inexact)[0] == (5, None, ("model/w",), (0,))


def test_steps_that_were_recorded_at_other_intervals_are_compared_where_both_are():
    every = trail(*(line(step, f"s{step}") for step in range(1, 7)))
    some = trail(line(2, "s2"), line(4, "x"), line(6, "s6"))
    assert compare(every, some)[0] == (4, None, ("model/w",), (0,))


def test_a_loop_that_ends_before_the_other_differs_in_length():
    a, b = trail(line(1), line(2, epoch=3)), trail(line(1))
    assert compare(a, b)[0] == (2, 3, ("length",), (0,))


def test_loops_without_a_common_step_cannot_be_compared():
    with pytest.raises(RunError, match="no step in common: one has steps 1 to 2, the other 3 to 3"):
        compare(trail(line(1), line(2)), trail(line(3)))


def test_the_state_before_the_first_step_counts_if_the_first_step_differs():
    a, b = trail(line(1, "a")), trail(line(1, "b"), start="t")
    assert compare(a, b)[0] == (None, None, ("model/w",), (0,))
    place, notes = compare(a, trail(line(1, "a"), start="t"))
    assert place is None
    assert "it was set after the trail had begun" in notes[0]


def test_a_generator_that_nobody_draws_from_is_no_difference():
    a, b = trail(line(1), line(2)), trail(line(1), line(2, python="q"))
    place, notes = compare(a, b)
    assert place is None
    assert notes == [
        "the state of python differs from step 2 on, and no value does: nothing drew from it"
    ]


def test_the_earliest_step_of_all_processes_is_named():
    a = {rank: trail(line(1), line(2), line(3)) for rank in (0, 1, 2)}
    b = {
        0: trail(line(1), line(2), line(3, "x")),
        1: trail(line(1), line(2, "x"), line(3, "x")),
        2: trail(line(1), line(2, loss=1), line(3)),
    }
    found, _ = compare_loops(a, b)
    assert (found.step, found.ranks, found.names) == (2, (1, 2), ("model/w", "loss"))


def test_other_processes_are_a_difference():
    found, _ = compare_loops({0: trail(line(1))}, {0: trail(line(1)), 1: trail(line(1))})
    assert (found.names, found.ranks) == (("ranks",), (1,))
