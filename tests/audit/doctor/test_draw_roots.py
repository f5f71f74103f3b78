"""Every draw of a step that differs, up to where the runs cease to be the same program."""

import json

import pytest

from seedless.audit.doctor.draw_roots import find_draw_roots
from tests.audit.doctor.records import write_run

DRAW = {"op": "aten.uniform_.default", "inputs": [], "settings": [], "draws": "torch"}
PYTHON = {"kind": "draw", "generator": "python", "call": "random.random", "line": "train.py:1"}


@pytest.fixture
def find(tmp_path):
    def find(*ops):
        runs = [write_run(tmp_path / str(index)) for index in range(2)]
        for run, lines in zip(runs, ops, strict=True):
            text = "".join(json.dumps(line) + "\n" for line in lines)
            (run.folder / "ops-0-100-1.jsonl").write_text(text)
        processes = tuple(run.training[0] for run in runs)
        return find_draw_roots(tuple(run.folder for run in runs), processes, 1)

    return find


def test_all_draws_that_differ_are_found(find):
    one = [{**PYTHON, "value": "a"}, {"op": "aten.add"}, {**DRAW, "outputs": ["a"]}]
    two = [{**PYTHON, "value": "b"}, {"op": "aten.add"}, {**DRAW, "outputs": ["b"]}]
    assert [root.draws for root in find(one, two)] == ["python", "torch"]


def test_equal_draws_and_other_operations_are_left_out(find):
    one = [{**DRAW, "outputs": ["a"]}, {"op": "aten.mm", "outputs": ["a"]}]
    two = [{**DRAW, "outputs": ["a"]}, {"op": "aten.mm", "outputs": ["b"]}]
    assert find(one, two) == ()


def test_a_draw_with_other_inputs_is_no_root(find):
    one, two = ({**DRAW, "settings": [f"p={p}"], "outputs": [str(p)]} for p in (1, 2))
    assert find([one], [two]) == ()


def test_the_search_ends_where_the_programs_differ(find):
    one = [{"op": "aten.mm"}, {**DRAW, "outputs": ["a"]}]
    two = [{"op": "aten.add"}, {**DRAW, "outputs": ["b"]}]
    assert find(one, two) == ()
