"""The page on ops of portable arithmetic agrees with the registry and with what is recorded."""

import re

import torch

from benchmarks import portable_page as page
from benchmarks.kernel_resources import ARCHITECTURES, hash_source, read_usage
from seedless.numerics.environment import capture_environment
from seedless.portable.kernels.source import write_source
from seedless.portable.ops.registry import EXACT, INTEGER, REPLACED
from tests.conftest import ROOT

TEXT = page.PAGE.read_text()
HOW_TO = (ROOT / "docs" / "how-to" / "portable.md").read_text()


def test_the_ops_on_the_page_are_those_of_the_registry():
    assert page.make_page() == TEXT, "run python -m benchmarks.portable_page"
    ops = TEXT.split("## Ops")[1].split("## Layers")[0]
    assert set(re.findall(r"`(\w+)`", ops)) == {*REPLACED, *EXACT, *INTEGER}


def test_a_new_op_must_reach_the_page(monkeypatch):
    monkeypatch.setattr(page, "REPLACED", REPLACED | {"new_op"})
    assert page.make_page() != TEXT


def test_costs_come_from_the_recorded_results():
    assert "No measurement" in page.make_page({})
    seconds = {"native": 0.5, "portable": 4.0}
    found = {
        "batch": 16,
        "models": {"net": {"seconds": seconds, "ratio": {"native": 1.0, "portable": 8.0}}},
        "ops": {"gelu": {"ratio": 2.34}},
    }
    record = {"results": found, "environment": capture_environment(), "command": "measure it"}
    lines = page.make_page({"portable-cpu": record}).splitlines()
    assert "| gelu | 2.3 |" in lines
    assert any(line.endswith("| net, batch 16 | 500 | 4000 | 8.0 |") for line in lines)
    assert lines[-1].startswith("- cpu, medians: ")
    assert lines[-1].endswith("`measure it`")

    graphs = {f"{kind} graph": value / 10 for kind, value in seconds.items()}
    eager = {f"{kind} eager": value for kind, value in seconds.items()}
    ratio = {"native graph": 1.0, "native eager": 10.0, "portable graph": 8.0}
    model = {"seconds": graphs | eager, "ratio": ratio}
    cuda = record | {"results": found | {"models": {"net": model}}}
    assert "| net, batch 16 | 50 | 400 | 8.0 |" in page.make_page({"portable-cuda": cuda})
    del model["seconds"]
    cuda["note"] = "Ratios alone."
    assert "| net, batch 16 |  |  | 8.0 |" in page.make_page({"portable-cuda": cuda})
    assert page.make_page({"portable-cuda": cuda}).endswith("Ratios alone.\n")


def test_the_parts_of_a_step_come_from_their_record():
    parts = {"multiply_on_cpu": 0.6, "gelu": 0.1, page.REST: 0.3}
    found = {"parts": parts, "products": {"float64": 0.5}, "seconds": {"native": 0.4}}
    assert page._list_parts(None) == []
    (row,) = page._list_parts({"results": {"models": {"net": found}}})
    shares = [round(row[name], 6) for name in ("products", "kernels", "rest", "floor")]
    assert shares == [0.6, 0.1, 0.3, 1.25]


def test_the_quick_start_runs():
    code = re.search(r"```python\n(.*?)```", HOW_TO, re.DOTALL).group(1)
    model, criterion = torch.nn.Linear(4, 3), torch.nn.CrossEntropyLoss()
    before = model.weight.clone()
    names = {
        "model": model,
        "criterion": criterion,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
        "x": torch.arange(20.0).view(5, 4),
        "y": torch.arange(5) % 3,
    }
    exec(code, names)
    assert not torch.equal(before, model.weight)


def test_what_kernels_need_was_read_from_the_kernels_as_they_are():
    record = page.read_records()["kernel-resources"]
    assert record["source"] == hash_source(), "run python -m benchmarks.kernel_resources"
    assert set(record["architectures"]) == set(ARCHITECTURES)
    kernels = set(re.findall(r"KERNEL (\w+)\(", write_source())) - {"NAME", "multiply_on_cpu"}
    assert {"gelu", "layer_norm", "adam"} <= kernels
    for found in record["architectures"].values():
        assert kernels <= set(found)
        assert found["multiply_f32"]["registers"] * 128 <= 65_536  # of a multiprocessor


def test_what_the_assembler_prints_is_read():
    printed = (
        "ptxas info    : Compiling entry function 'gelu' for 'sm_90'\n"
        "ptxas info    : Function properties for gelu\n"
        "    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads\n"
        "ptxas info    : Used 30 registers, used 1 barriers, 512 bytes smem\n"
        "ptxas info    : Compiling entry function 'relu' for 'sm_90'\n"
        "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Used 24 registers, used 0 barriers\n"
    )
    names = ("registers", "stack_bytes", "spill_store_bytes", "spill_load_bytes", "shared_bytes")
    found = read_usage(printed)
    assert [found["gelu"][name] for name in names] == [30, 8, 4, 12, 512]
    assert [found["relu"][name] for name in names] == [24, 0, 0, 0, 0]
