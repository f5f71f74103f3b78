"""Differences that come from outside torch's operations."""

from dataclasses import replace

import pytest

from seedless.audit import first_difference
from seedless.audit.doctor import value_rules
from seedless.audit.doctor.recorded_run import read_run
from seedless.audit.doctor.value_rules import judge_foreign_writes, judge_python_value
from seedless.script_recorder import memory_access, tensor_sources
from tests.audit.doctor.records import make_case, make_end, make_process, make_step, write_process
from tests.audit.doctor.test_op_rules import OP

CLOCK = "import time\nnoise = time.time() % 1\nx = torch.full((2,), noise)\n"
FULL = replace(
    OP,
    kind="setting",
    op="aten.full.default",
    line="train.py:3",
    left=("fill_value=0.25",),
    right=("fill_value=0.5",),
)


@pytest.fixture
def make(tmp_path):
    """Return a function that makes the case of two runs of a source, with an operation."""

    def make(op, source=CLOCK, lines=(), **values):
        (tmp_path / "train.py").write_text(source)
        files = [{"path": path, "sha256": "0" * 64} for path in lines]
        runs = []
        for name in ("one", "two"):
            step, imported = make_step(1, input=name), {"kind": "sources", "files": files}
            process = make_process(cwd=str(tmp_path))
            write_process(tmp_path / name, [process, step, imported, make_end(1)])
            runs.append(read_run(tmp_path / name))
        return make_case(*runs, op=op, **values)

    return make


def test_a_number_that_comes_from_a_clock(make):
    (found,) = judge_python_value(make(FULL))
    assert (found.cause, found.line, found.confidence) == ("python-value", "train.py:2", "likely")
    assert "fill_value=0.25 in one run and fill_value=0.5 in the other" in found.evidence[0]
    assert "it comes from time.time() at train.py:2" in found.evidence


def test_a_number_of_unknown_origin_is_only_possible(make):
    (found,) = judge_python_value(make(FULL, "\n\nx = torch.full((2,), compute())\n"))
    assert (found.cause, found.line, found.confidence) == ("python-value", "train.py:3", "possible")


def test_a_tensor_made_of_python_values_has_the_line_that_made_it(make):
    op = replace(
        FULL, kind="source", names=("unnamed argument 'self'",), origins=("train.py:3",), line=""
    )
    (found,) = judge_python_value(make(op))
    assert (found.cause, found.line) == ("python-value", "train.py:2")


def test_tensors_that_have_another_source_are_no_python_values(make):
    assert list(judge_python_value(make(replace(FULL, kind="source", names=("Net.weight",))))) == []
    assert list(judge_python_value(make(replace(FULL, draws="torch")))) == []


def test_memory_whose_address_was_taken_is_changed_by_a_foreign_kernel(make):
    name = "memory whose address data_ptr() gave away"
    op = replace(OP, kind="source", names=(name,), origins=("train.py:7",))
    (found,) = judge_foreign_writes(make(op))
    assert (found.cause, found.line) == ("atomics", "train.py:7")


def test_threads_explain_a_tensor_that_no_operation_changed(make):
    op = replace(OP, kind="source", names=(value_rules.CHANGED_OUTSIDE,))
    (found,) = judge_foreign_writes(make(op, thread_lines=("train.py:9",)))
    assert (found.cause, found.line) == ("thread-order", "train.py:9")
    assert list(judge_foreign_writes(make(op))) == []
    assert list(judge_foreign_writes(make(OP, thread_lines=("train.py:9",)))) == []


def test_threads_are_possible_for_a_value_from_outside(make):
    op = replace(OP, kind="source", names=("unnamed argument 'self'",))
    (found,) = judge_foreign_writes(make(op, thread_lines=("train.py:9",)))
    assert (found.cause, found.confidence) == ("thread-order", "possible")


def test_arrays_without_content_are_possible_and_can_be_tried_out(make):
    op = replace(FULL, kind="source", names=("unnamed argument 'self'",), origins=(), line="")
    first, second = judge_python_value(make(op, "import numpy as np\ncanvas = np.empty((4, 4))\n"))
    assert (first.cause, first.line) == ("uninitialized-memory", "train.py:2")
    assert first.experiment == "deterministic"
    assert second.cause == "python-value"


def test_a_call_that_changes_in_another_file_is_the_line(make, tmp_path):
    op = replace(FULL, line="other.py:1")
    (tmp_path / "other.py").write_text("x = torch.full((2,), compute())\n")
    source = "def compute():\n    return id(object()) % 7\n"
    found = next(iter(judge_python_value(make(op, source, lines=["train.py"]))))
    assert (found.line, found.confidence) == ("train.py:2", "possible")


def test_the_names_are_those_of_the_recorder():
    assert value_rules.CHANGED_OUTSIDE == first_difference.CHANGED_OUTSIDE
    assert value_rules.UNNAMED == tensor_sources.UNNAMED
    assert memory_access.describe_address("numpy").startswith(value_rules.ADDRESS)
