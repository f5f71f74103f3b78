"""Operations whose inputs are equal and whose outputs are not."""

from dataclasses import replace

import pytest

from seedless.audit.doctor.op_rules import judge_op
from tests.audit.doctor.records import make_case, write_run
from tests.audit.doctor.test_draw_rules import DRAW

OP = replace(DRAW, op="aten.mm.default", draws="", module="fc")


@pytest.fixture
def judge(tmp_path):
    """Return a function that judges the case of two runs whose output differs at an operation."""

    def judge(flags=None, **changed):
        lines = [{"kind": "flags", "step": 1, "flags": flags or {}}]
        runs = [
            write_run(tmp_path / str(index), lines, step1={"output": str(index)})
            for index in range(2)
        ]
        case = make_case(*runs, op=replace(OP, **changed))
        return [(found.cause, found.confidence) for found in judge_op(case)]

    return judge


def test_operations_without_a_fixed_order(judge):
    add = {"op": "aten.index_add_.default", "device": "cuda:0"}
    assert judge(**add) == [("nondeterministic-op", "likely")]
    assert judge({"deterministic_algorithms": True}, **add) == []


def test_autotuning(judge):
    found = judge({"cudnn.benchmark": True}, op="aten.convolution.default", device="cuda:0")
    assert found == [("cudnn-autotune", "likely")]


def test_threads_are_only_possible_until_an_experiment_confirms_them(judge):
    assert judge() == [("threads", "possible")]


@pytest.mark.parametrize("op", ["compiled", "mylib.scatter.default", "triton.add_rows"])
def test_kernels_of_ones_own(judge, op):
    assert judge(op=op) == [("atomics", "likely")]


def test_memory_that_nothing_was_written_to(judge):
    names = {"kind": "source", "names": ("uninitialized memory",)}
    assert judge(**names) == [("uninitialized-memory", "likely")]
    assert judge(**names, op="c10d.allgather_.default") == [], "it writes to that memory"


def test_a_named_tensor_that_nothing_was_written_to(tmp_path):
    op = replace(
        OP,
        kind="source",
        names=("Net.state, uninitialized memory",),
        origins=("model.py:8",),
        line="model.py:20",
    )
    runs = [write_run(tmp_path / str(n), step1={"output": str(n)}) for n in range(2)]
    (found,) = judge_op(make_case(*runs, op=op))
    assert (found.cause, found.line) == ("uninitialized-memory", "model.py:8")
    assert found.experiment == "deterministic"


def test_the_deterministic_switch_is_tried_where_it_has_an_effect(tmp_path):
    runs = [write_run(tmp_path / str(n), step1={"output": str(n)}) for n in range(2)]

    def find_experiment(**changed):
        (found,) = judge_op(make_case(*runs, op=replace(OP, **changed)))
        return found.experiment

    assert find_experiment(op="aten.index_put.default", device="cuda:0") == "deterministic"
    assert find_experiment(op="compiled") == "deterministic"
    assert find_experiment(op="triton.add_rows") == "", "no kernel of the script's own obeys it"
    assert find_experiment(op="aten.mm.default") == "one-thread"


def test_gradients_that_differ_alone_come_from_an_operation(tmp_path):
    runs = [write_run(tmp_path / str(n), step2={"gradients": str(n)}) for n in range(2)]
    (found,) = judge_op(make_case(*runs))
    assert (found.cause, found.confidence) == ("nondeterministic-op", "possible")


def test_other_inputs_and_draws_are_not_judged_here(judge):
    assert judge(kind="source", names=("batch",)) == []
    assert judge(kind="program") == []
    assert judge(draws="torch") == []
