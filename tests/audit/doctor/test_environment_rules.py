"""Causes outside the computation, from two records."""

import pytest

from seedless.audit.doctor.environment_rules import (
    judge_files,
    judge_flags,
    judge_program,
    judge_variables,
)
from seedless.audit.doctor.recorded_run import read_run
from tests.audit.doctor.records import make_case, make_process, make_step, write_process


@pytest.fixture
def make(tmp_path):
    """Return a function that makes the case of two processes with these first and other lines."""

    def make(first=({}, {}), lines=((), ()), **values):
        runs = []
        for index in range(2):
            step = make_step(1, loss=str(index))
            write_process(
                tmp_path / str(index), [make_process(**first[index]), *lines[index], step]
            )
            runs.append(read_run(tmp_path / str(index)))
        return make_case(*runs, **values)

    return make


def test_equal_surroundings_explain_nothing(make):
    case = make()
    for judge in (judge_program, judge_variables, judge_flags, judge_files):
        assert list(judge(case)) == []


def test_sources_arguments_and_versions(make):
    sources = [[{"kind": "sources", "files": [{"path": "net.py", "sha256": d}]}] for d in "ab"]
    (found,) = judge_program(make(lines=sources))
    assert (found.cause, found.words["name"]) == ("source-changed", "net.py")
    (found,) = judge_program(make(({"argv": ["a"]}, {"argv": ["b"]})))
    assert found.cause == "settings"
    (found,) = judge_program(make(({"python": "3.11"}, {"python": "3.12"})))
    assert found.cause == "another-program"


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("OMP_NUM_THREADS", "threads"),
        ("PYTHONHASHSEED", "hash-order"),
        ("NVIDIA_TF32_OVERRIDE", "tf32"),
        ("MKL_CBWR", "settings"),
    ],
)
def test_variables(make, name, cause):
    case = make(({"variables": {name: "1"}}, {"variables": {name: "2"}}))
    (found,) = judge_variables(case)
    assert found.cause == cause
    (found,) = judge_variables(make(varied={name: ("1", None)}))
    assert found.cause == cause
    assert f"{name} is 1 in one run and not set in the other" in found.evidence[0]


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("autocast_cpu", "autocast"),
        ("tf32.matmul", "tf32"),
        ("float32_matmul_precision", "tf32"),
        ("default_dtype", "dtype"),
        ("compiled", "compiled"),
        ("threads", "threads"),
        ("cudnn.benchmark", "cudnn-autotune"),
        ("deterministic_algorithms", "settings"),
    ],
)
def test_flags(make, name, cause):
    lines = [[{"kind": "flags", "step": 1, "flags": {name: value}}] for value in (True, False)]
    (found,) = judge_flags(make(lines=lines))
    assert found.cause == cause


def files(**read):
    entry = {"path": "data.csv", "size": 3, "sha256": "a", "mtime_ns": 1, "line": "train.py:3"}
    return {"kind": "files", "read": [{**entry, **read}], "written": []}


@pytest.mark.parametrize(
    "changed", [{"sha256": "b"}, {"sha256": None, "size": 4}, {"sha256": None, "mtime_ns": 2}]
)
def test_a_file_that_changed(make, changed):
    (found,) = judge_files(make(lines=([files()], [files(**changed)])))
    assert (found.cause, found.line) == ("data-changed", "train.py:3")


def test_files_that_the_runs_write_themselves_are_no_cause(make):
    written = {"kind": "files", "read": [], "written": [{"path": "data.csv"}]}
    case = make(lines=([files(), written], [files(sha256="b"), written]))
    assert list(judge_files(case)) == []


def test_the_order_of_a_listing(make):
    listing = {"kind": "listing", "call": "os.listdir", "path": "d", "line": "train.py:9"}
    one, two = ({**listing, "ordered": name, "sorted": "s", "count": 3} for name in "xy")
    (found,) = judge_files(make(lines=([one], [two])))
    assert (found.cause, found.line) == ("listing-order", "train.py:9")
    (found,) = judge_files(make(lines=([one], [{**two, "sorted": "t"}])))
    assert found.cause == "data-changed"
    written = {"kind": "files", "read": [], "written": [{"path": "d/new"}]}
    (found,) = judge_files(make(lines=([one, written], [{**two, "sorted": "t"}])))
    assert found.cause == "leftover-file"
