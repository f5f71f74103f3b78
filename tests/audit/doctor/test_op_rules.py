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


@pytest.mark.parametrize("op", ["compiled", "mylib.scatter.default"])
def test_kernels_of_ones_own(judge, op):
    assert judge(op=op) == [("atomics", "likely")]


def test_memory_that_nothing_was_written_to(judge):
    names = {"kind": "source", "names": ("uninitialized memory",)}
    assert judge(**names) == [("uninitialized-memory", "likely")]
    assert judge(**names, op="c10d.allgather_.default") == [], "it writes to that memory"


def test_gradients_that_differ_alone_come_from_an_operation(tmp_path):
    runs = [write_run(tmp_path / str(n), step2={"gradients": str(n)}) for n in range(2)]
    (found,) = judge_op(make_case(*runs))
    assert (found.cause, found.confidence) == ("nondeterministic-op", "possible")


def test_other_inputs_and_draws_are_not_judged_here(judge):
    assert judge(kind="source", names=("batch",)) == []
    assert judge(kind="program") == []
    assert judge(draws="torch") == []
