"""The first step and value that differ, by rank and in causal order."""

import pytest

from seedless.audit.doctor import first_step, resume_check
from seedless.audit.doctor.first_step import (
    CAUSAL_ORDER,
    compare_generators,
    find_differing_ranks,
    find_first_step,
    has_effect,
)
from seedless.audit.doctor.recorded_run import read_run
from seedless.report import recorded_steps
from seedless.report.recorded_steps import VALUE_NAMES
from tests.audit.doctor.records import VALUES, make_process, make_step, write_process, write_run


def write_ranks(folder, *ranks):
    """Write a run whose ranks have these steps."""
    for rank, steps in enumerate(ranks):
        write_process(folder, [make_process(rank), *steps])
    return read_run(folder)


def test_equal_runs_do_not_differ(tmp_path):
    assert find_first_step(write_run(tmp_path / "a"), write_run(tmp_path / "b")) is None


@pytest.mark.parametrize("name", VALUES)
def test_every_value_counts(tmp_path, name):
    first = find_first_step(
        write_run(tmp_path / "a"), write_run(tmp_path / "b", step2={name: "other"})
    )
    assert (first.step, first.what, first.names) == (2, name, (name,))


def test_the_first_in_causal_order_is_named(tmp_path):
    changed = {"weights": "x", "gradients": "x", "loss": "x", "output": "x"}
    first = find_first_step(
        write_run(tmp_path / "a"), write_run(tmp_path / "b", step3=changed, step2=changed)
    )
    assert (first.step, first.what) == (2, "output")
    assert first.names == ("output", "loss", "gradients", "weights")
    assert CAUSAL_ORDER.index("output") < CAUSAL_ORDER.index("loss")


def test_weights_before_the_first_step_are_the_initial_ones(tmp_path):
    first = find_first_step(
        write_run(tmp_path / "a"), write_run(tmp_path / "b", step1={"weights_before": "x"})
    )
    assert (first.step, first.what) == (1, "initial weights")


def test_a_value_that_only_one_run_has_differs(tmp_path):
    first = find_first_step(
        write_run(tmp_path / "a"), write_run(tmp_path / "b", step1={"scale": "x"})
    )
    assert first.what == "scale"


def test_generators_alone_are_no_difference(tmp_path):
    other = {**make_step(1), "generators": {"torch": "x", "numpy": "y"}}
    write_process(tmp_path / "a", [make_process(), make_step(1)])
    write_process(tmp_path / "b", [make_process(), other])
    a, b = read_run(tmp_path / "a"), read_run(tmp_path / "b")
    assert find_first_step(a, b) is None
    assert compare_generators(a.training[0], b.training[0]) == {"torch": 1}


def test_another_number_of_steps_or_processes_differs(tmp_path):
    a, b = write_run(tmp_path / "a", steps=3), write_run(tmp_path / "b", steps=2)
    first = find_first_step(a, b)
    assert (first.step, first.what) == (3, "number of steps")
    both = write_ranks(tmp_path / "c", [make_step(1)], [make_step(1)])
    alone = write_ranks(tmp_path / "d", [make_step(1)])
    assert find_first_step(both, alone).what == "processes"


def test_ranks_are_paired_and_the_earliest_difference_wins(tmp_path):
    same = [make_step(1), make_step(2)]
    a = write_ranks(tmp_path / "a", same, same, same)
    b = write_ranks(
        tmp_path / "b",
        [make_step(1), make_step(2, loss="x")],
        [make_step(1, loss="x"), make_step(2)],
        [make_step(1, loss="y"), make_step(2)],
    )
    first = find_first_step(a, b)
    assert (first.step, first.what, first.ranks) == (1, "loss", (1, 2))


def test_ranks_that_share_gradients_must_share_weights(tmp_path):
    good = write_ranks(tmp_path / "a", [make_step(1)], [make_step(1)])
    assert find_differing_ranks(good) is None
    started = {"weights_before": "x", "weights": "y"}
    bad = write_ranks(tmp_path / "b", [make_step(1)], [make_step(1, **started)])
    assert find_differing_ranks(bad) == (1, "initial weights", (1,))
    drifted = write_ranks(
        tmp_path / "c", [make_step(1), make_step(2)], [make_step(1), make_step(2, weights="x")]
    )
    assert find_differing_ranks(drifted) == (2, "weights", (1,))


def test_ranks_that_hold_parts_of_a_model_are_not_compared(tmp_path):
    parts = {"weights_before": "x", "weights": "y", "gradients": "z"}
    run = write_ranks(tmp_path, [make_step(1)], [make_step(1, **parts)])
    assert find_differing_ranks(run) is None
    assert find_differing_ranks(write_run(tmp_path / "alone")) is None


def test_the_page_shows_the_values_in_the_same_order():
    assert tuple(VALUE_NAMES) == CAUSAL_ORDER
    assert recorded_steps.LOADER_VALUES == resume_check.LOADER_VALUES
    assert recorded_steps.OBSERVED_VALUES == first_step.OBSERVED


def test_an_effect_in_any_process_counts(tmp_path):
    def write(name, **changed):
        steps = [make_step(1, input=name)], [make_step(1, **changed)]
        return write_ranks(tmp_path / name, *steps)

    runs = write("a"), write("b"), write("c", weights="other")
    assert not has_effect(runs[0], runs[1])
    assert has_effect(runs[0], runs[2])
