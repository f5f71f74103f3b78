"""The page on portable arithmetic is in step with the table of ops and with what is recorded."""

import json
import re

import torch

from benchmarks import portable as page
from seedless.numerics.portable.table import EXACT, HANDLERS, INTEGER
from seedless.pipeline.portable import make_model

TEXT = page.PAGE.read_text()


def test_the_ops_on_the_page_are_those_of_the_table():
    assert page.make_page(TEXT) == TEXT, "run python -m benchmarks.portable --page"
    ops = TEXT.split("<!-- ops -->")[1].split("<!-- /ops -->")[0]
    assert set(re.findall(r"`(\w+)`", ops)) == {*HANDLERS, *EXACT, *INTEGER}


def test_a_new_op_must_reach_the_page(monkeypatch):
    monkeypatch.setitem(HANDLERS, "new_op", torch.neg)
    assert page.make_page(TEXT) != TEXT


def test_costs_come_from_the_recorded_results(monkeypatch, tmp_path):
    monkeypatch.setattr(page, "RESULTS", tmp_path)
    assert "No measurement" in page.describe_cost()
    row = {"shape": [2, 3], "plain": 0.5, "portable": 4.0}
    (tmp_path / "portable-cpu.json").write_text(json.dumps({"results": {"net": row}}))
    assert page.describe_cost().splitlines()[-1].endswith("| net, 2 x 3 | 500 | 4000 | 8.0 |")


def test_the_quick_start_runs():
    code = re.search(r"```python\n(.*?)```", TEXT, re.DOTALL).group(1)
    model, criterion = torch.nn.Linear(4, 3), torch.nn.CrossEntropyLoss()
    before = model.weight.clone()
    given = {
        "model": model,
        "criterion": criterion,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
        "x": torch.arange(20.0).view(5, 4),
        "y": torch.arange(5) % 3,
    }
    exec(code, given)
    assert not torch.equal(before, model.weight)


def test_both_steps_that_are_measured_train(monkeypatch):
    monkeypatch.setattr(page, "SHAPES", {"baseline": (2, 12, 60)})
    monkeypatch.setattr(page, "make_model", lambda name, small: make_small(name))
    for context in (page.nullcontext, page.seedless.portable):
        page.make_step("baseline", "cpu", context)()


def make_small(name):
    return make_model(name, True)
