"""The page on portable arithmetic is in step with the table of ops and with what is recorded."""

import json
import re

import torch

from benchmarks import portable_page as page
from seedless.numerics.environment import capture_environment
from seedless.portable.ops.registry import EXACT, HANDLERS, INTEGER

TEXT = page.PAGE.read_text()


def test_the_ops_on_the_page_are_those_of_the_table():
    assert page.make_page(TEXT) == TEXT, "run python -m benchmarks.portable_page"
    ops = TEXT.split("<!-- ops -->")[1].split("<!-- /ops -->")[0]
    assert set(re.findall(r"`(\w+)`", ops)) == {*HANDLERS, *EXACT, *INTEGER}


def test_a_new_op_must_reach_the_page(monkeypatch):
    monkeypatch.setitem(HANDLERS, "new_op", torch.neg)
    assert page.make_page(TEXT) != TEXT


def test_costs_come_from_the_recorded_results(monkeypatch, tmp_path):
    monkeypatch.setattr(page, "RESULTS", tmp_path)
    assert "No measurement" in page.describe_cost()
    seconds = {"native": 0.5, "portable": 4.0}
    found = {
        "batch": 16,
        "models": {"net": {"seconds": seconds, "ratio": {"native": 1.0, "portable": 8.0}}},
        "ops": {"gelu": {"ratio": 2.34}},
    }
    record = {"results": found, "environment": capture_environment(), "command": "measure it"}
    (tmp_path / "portable-cpu.json").write_text(json.dumps(record))
    lines = page.describe_cost().splitlines()
    assert "| gelu | 2.3 |" in lines
    assert lines[2].endswith("| net, batch 16 | 500 | 4000 | 8.0 |")
    assert lines[-1].startswith("- cpu: ")
    assert lines[-1].endswith("medians of `measure it`")
    graphs = {f"{kind} graph": value / 10 for kind, value in seconds.items()}
    eager = {f"{kind} eager": value for kind, value in seconds.items()}
    ratio = {"native graph": 1.0, "native eager": 10.0, "portable graph": 8.0}
    found["models"]["net"] = {"seconds": graphs | eager, "ratio": ratio}
    (tmp_path / "portable-cuda.json").write_text(json.dumps(record))
    assert "| net, batch 16 | 50 | 400 | 8.0 |" in page.describe_cost()
    del found["models"]["net"]["seconds"]
    (tmp_path / "portable-cuda.json").write_text(json.dumps(record | {"note": "Ratios alone."}))
    assert "| net, batch 16 |  |  | 8.0 |" in page.describe_cost()
    assert page.describe_cost().endswith("Ratios alone.")


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
