"""The zoo of other libraries' networks: its starts, its comparisons and its record."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from benchmarks.zoo import page, run
from benchmarks.zoo.catalog import NETWORKS, find_networks
from benchmarks.zoo.columns import COLUMNS, answer_plain, answer_portable, answer_threads
from benchmarks.zoo.network import Given, Network, compute_loss
from benchmarks.zoo.weights import fill_from_counter, switch_dropout_off
from seedless.numerics.environment import capture_environment


def make_small() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 64), nn.BatchNorm1d(64), nn.Dropout(0.3), nn.Linear(64, 3))


SMALL = Network("small", make_small, (Given((4, 6)),))


def test_the_catalog_has_at_least_200_networks_of_six_libraries():
    libraries = {name.partition("/")[0] for name in NETWORKS}
    assert libraries == {"timm", "transformers", "torchvision", "monai", "smp", "torch_ecg"}
    assert len(NETWORKS) >= 200
    assert find_networks("timm/resnet10t") == ["timm/resnet10t"]
    assert set(run.CPU_COLUMNS) == set(COLUMNS)


def test_weights_from_the_counter_depend_on_names_and_shapes_alone():
    filled = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        model = make_small()
        fill_from_counter(model)
        filled.append(model)
    first, second = (dict(model.named_parameters()) for model in filled)
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert bool((first["1.weight"] == 1).all())  # a constant of the library stays
    weight = first["0.weight"]
    assert len({tuple(row) for row in weight.tolist()}) == len(weight)


def test_dropout_is_switched_off():
    model = make_small().train()
    switch_dropout_off(model)
    assert model[2].p == 0.0


def test_steps_repeat_with_other_threads_and_the_negative_control_does_not(monkeypatch):
    before = torch.get_num_threads()
    try:
        answer = answer_portable(SMALL)
        assert answer["finite"]
        assert answer_threads(SMALL) == {"same": True}
        assert answer_plain(SMALL)["loss"] == pytest.approx(answer["losses"][0], rel=1e-5)
        noisy = Network("noisy", make_small, (Given((4, 6)),))
        loss = "benchmarks.zoo.columns.compute_loss"
        monkeypatch.setattr(loss, lambda y: compute_loss(y) * (1.0 + 0.1 * torch.get_num_threads()))
        assert answer_threads(noisy) == {"same": False}
    finally:
        torch.set_num_threads(before)


def test_a_digest_is_compared_with_the_row_of_the_cpu():
    row = {"portable": {"start": "s", "digest": "d"}}
    assert run.compare({"start": "s", "digest": "d"}, row) == {"same start": True, "same": True}
    assert run.compare({"start": "t", "digest": "e"}, row) == {"same start": False, "same": False}
    assert run.compare({"error": "no"}, row) == {}


def test_an_error_is_recorded_with_its_text(monkeypatch):
    def fail(network: Network) -> dict[str, object]:
        raise ValueError("too small, at /home/me/lib/python3/site-packages/timm/layers.py:3")

    monkeypatch.setitem(NETWORKS, "small", SMALL)
    monkeypatch.setitem(COLUMNS, "init", fail)
    found = run.answer("small", "init", "cpu", 60)
    assert found["error"] == "ValueError: too small, at timm/layers.py:3"


def test_a_record_does_not_name_folders_of_the_machine(monkeypatch):
    monkeypatch.setattr(sys, "path", ["", "/opt", "/opt/libraries"])
    assert run.remove_paths("at /opt/libraries/timm/layers.py:3") == "at timm/layers.py:3"


def test_a_network_that_takes_too_long_is_recorded_so(monkeypatch):
    def wait(network: Network) -> dict[str, object]:
        while True:
            pass

    monkeypatch.setitem(NETWORKS, "small", SMALL)
    monkeypatch.setitem(COLUMNS, "init", wait)
    assert "more than 0.2 s" in run.answer("small", "init", "cpu", 0.2)["error"]


def test_unknown_columns_and_names_are_refused(capsys, tmp_path: Path):
    for arguments in (["--columns", "speed"], ["--only", "nobody/*"]):
        with pytest.raises(SystemExit):
            run.main([*arguments, "--out", str(tmp_path / "zoo.json")])
    shown = capsys.readouterr().err
    assert "expected columns of init" in shown
    assert "no network matches --only 'nobody/*'" in shown


def test_a_record_is_read_back_as_it_was_written(tmp_path: Path):
    path = tmp_path / "zoo.json"
    record = run.read_record(path)
    record["results"]["small"] = {"init": {"error": "no"}}
    run.write_record(path, record)
    assert run.read_record(path)["results"] == {"small": {"init": {"error": "no"}}}
    assert json.loads(path.read_text())["libraries"]["torch"]


def make_record(results: dict[str, object]) -> dict[str, object]:
    environment = capture_environment()
    return {"command": "run it", "environment": environment, "libraries": {}, "results": results}


def test_the_page_is_written_from_the_records():
    assert page.make_page() == page.PAGE.read_text(), "run python -m benchmarks.zoo.page"


def test_the_page_counts_what_was_asked_and_joins_records():
    fast = {"portable": {"digest": "d", "losses": [2.0], "seconds": 3.0, "finite": True}}
    fast |= {"plain": {"same": False, "seconds": 1.0, "loss": 2.0}, "float64": {"loss": 2.0}}
    refused = {"portable": {"error": "NumericsError: aten.acos is not portable, at x.py:1: no"}}
    gpu = {"timm/a": {"cuda": {"same start": True, "same": True}}}
    gpu |= {"timm/b": {"cuda": {"same start": False, "same": False}}}
    on_gpu = make_record(gpu)
    on_gpu["environment"] = on_gpu["environment"] | {"devices": [{"name": "a GPU"}]}
    text = page.make_page(
        {
            "zoo-cpu16": make_record({"timm/a": fast, "timm/b": refused}),
            "zoo-cuda": on_gpu,
            "other": make_record({}),
        }
    )
    assert "| timm | 2 |  |  |  |  | 1 of 2 |  | 0 of 1 | 1 of 1 | 3.0 | 1 of 1 |" in text
    assert "| portable | NumericsError: aten.acos is not portable | 1 | timm/b |" in text
    assert "| timm/b |  |  |  | no |  |  | other start |  |  |" in text
    assert "| portable | 97% | missed: 1 of 2, 50.0% |" in text
    assert "| same bits on an H200 | 100% | met: 1 of 1, 100.0% |" in text
    assert "zoo-cuda.json): a GPU; torch" in text


def test_a_machine_without_the_library_has_not_answered():
    absent = {"init": {"error": "ModuleNotFoundError: No module named 'torch_ecg'"}}
    rows = page.merge_rows(
        [make_record({"torch_ecg/a": absent}), make_record({"torch_ecg/a": {"init": {"ratio": 2}}})]
    )
    assert rows == {"torch_ecg/a": {"init": {"ratio": 2}}}


def test_a_network_that_was_mended_has_its_new_answer():
    before = make_record({"timm/a": {"portable": {"error": "NumericsError: no"}}})
    after = make_record({"timm/a": {"portable": {"finite": True}}})
    text = page.make_page({"zoo-cpu16": before, "zoo-mended": after})
    assert "| portable | 97% | met: 1 of 1, 100.0% |" in text


def test_two_machines_are_compared_where_their_starts_are_equal():
    def record(**digests):
        rows = {name: {"portable": {"start": "s", "digest": one}} for name, one in digests.items()}
        return make_record(rows)

    assert page.compare_processors(record(a="1", b="2", c="3"), record(a="1", b="9")) == (1, 2)
    other = record(a="1")
    other["results"]["a"]["portable"]["start"] = "t"
    assert page.compare_processors(record(a="1"), other) == (0, 0)
    assert page.compare_processors(None, other) == (0, 0)


def test_a_network_with_other_code_on_the_gpu_is_compared_under_equal_versions():
    def record(version: str, row: dict) -> dict:
        return {"libraries": {"timm": version}, "results": {"timm/x": row}}

    gpu = record("2", {"cuda": {"digest": "b", "start": "s", "same": False, "same start": True}})
    again = record("2", {"portable": {"digest": "b", "start": "s"}})
    rows = {"timm/x": dict(gpu["results"]["timm/x"])}
    found = {"zoo-cuda": gpu, "zoo-cpu-gpu-versions": again}
    assert page.compare_equal_versions(rows, found) == "timm/x"
    assert page.describe_row(rows["timm/x"])["cuda"] == "yes"
    again["results"]["timm/x"]["portable"]["digest"] = "c"
    page.compare_equal_versions(rows, found)
    assert page.describe_row(rows["timm/x"])["cuda"] == "no"
    with pytest.raises(ValueError, match="two versions of timm"):
        page.compare_equal_versions(
            rows, found | {"zoo-cpu-gpu-versions": again | {"libraries": {"timm": "1"}}}
        )


def test_gradients_far_from_the_librarys_are_listed_with_other_starts():
    ratios = {"timm/near": 29.0, "timm/far": 31.0, "timm/small": 0.01, "timm/nan": math.nan}
    rows = {name: {"init": {"ratio": ratio}} for name, ratio in ratios.items()}
    starts = {"timm/far": {"own": 2.0, "scrambled": 3.0}}
    far = page.list_far_gradients(rows, starts)
    assert far[0] == ("timm/far", 31.0, {"scrambled": 1.5})
    assert [name for name, *_ in far] == ["timm/far", "timm/small", "timm/nan"]
