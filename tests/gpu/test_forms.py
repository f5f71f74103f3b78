"""The forms of a step on a CUDA device: which share their bits, and that each repeats."""

import json
import os
import subprocess
import sys
import warnings

import pytest
import torch

import seedless
from seedless.core.config import parse_config
from seedless.runs.prepare import prepare
from seedless.train.loop import train
from seedless.train.step_modes import GraphStep, make_step
from tests.conftest import ROOT

pytestmark = pytest.mark.gpu

MODELS = ["conformer", "baseline", "xresnet1d101", "resnet18"]


def make_config(name="conformer", small=True, optimizer=None, **execution):
    images = name == "resnet18"
    return {
        "data": {"name": "simulated-images" if images else "simulated", "records": 120},
        "augment": {"padding": 2, "flip": True} if images else {},
        "model": {"name": name, "small": small},
        "init": {"basis": "dct"},
        "order": {"batch_size": 32},
        "train": {"epochs": 2, "rate": 1e-3, "clip_norm": 1.0, **(optimizer or {})},
        "execution": {"device": "cuda", "threads": 4, **execution},
    }


def train_here(**choices):
    problem = prepare(parse_config(make_config(**choices))).problem
    train(problem)
    return seedless.digest(problem.model)


@pytest.fixture(autouse=True)
def _leave_no_flags():
    yield
    seedless.make_deterministic(threads=4)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16"])
def test_a_graph_has_the_bits_of_eager_steps(name, precision):
    eager = train_here(name=name, mode="eager", precision=precision)
    assert train_here(name=name, mode="graph", precision=precision) == eager


@pytest.mark.parametrize("optimizer", [{"optimizer": "sgd", "momentum": 0.9}, {"microbatch": 8}])
def test_so_it_has_with_other_optimizers_and_parts(optimizer):
    eager = train_here(mode="eager", optimizer=optimizer)
    assert train_here(mode="graph", optimizer=optimizer) == eager


def test_negative_control_precisions_differ():
    found = {train_here(mode="graph", precision=name) for name in ("fp32", "tf32", "bf16")}
    assert len(found) == 3


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_samples_on_the_host_give_the_same_bits(mode):
    assert train_here(mode=mode, storage="host") == train_here(mode=mode)


def test_samples_as_float16_repeat_and_are_other_samples():
    first = train_here(mode="graph", storage="float16")
    assert train_here(mode="graph", storage="float16") == first
    assert train_here(mode="graph") != first


def test_an_epoch_is_captured_twice_at_most():
    problem = prepare(parse_config(make_config(mode="graph"))).problem
    step = make_step(problem)
    assert isinstance(step, GraphStep)
    train(problem, step=step)
    sizes = {len(rows) for rows in problem.order.schedule(0).batches}
    assert set(step.captured) == sizes
    assert len(sizes) == 2


def test_nothing_waits_for_the_device_within_an_epoch():
    problem = prepare(parse_config(make_config(mode="graph"))).problem
    step = make_step(problem)
    rows = torch.arange(32, device="cuda")
    step(rows, 0)
    torch.cuda.synchronize()
    with warnings.catch_warnings():  # torch warns that this is a prototype
        warnings.simplefilter("ignore")
        torch.cuda.set_sync_debug_mode("error")
    try:
        for epoch in range(3):
            step(rows, epoch)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("name", MODELS)
def test_fresh_memory_does_not_show(name):
    digests = set()
    for fill in ("nan", "zeros", "ones"):
        problem = prepare(parse_config(make_config(name=name, mode="graph"))).problem
        torch.utils.deterministic.fill_uninitialized_memory = fill == "nan"
        torch.cuda.empty_cache()
        spoil = torch.full((2**28,), -1 if fill == "ones" else 0, dtype=torch.int32, device="cuda")
        del spoil  # its memory is what the next allocations find
        train(problem)
        digests.add(seedless.digest(problem.model))
    assert len(digests) == 1


def test_deterministic_mode_changes_no_bit():
    settled = train_here(mode="graph")
    problem = prepare(parse_config(make_config(mode="graph"))).problem
    torch.use_deterministic_algorithms(False)
    train(problem)
    assert seedless.digest(problem.model) == settled


def test_compiled_runs_repeat_across_processes_and_caches(tmp_path):
    config = parse_config(make_config(name="baseline", mode="compiled"))
    file = tmp_path / "run.toml"
    file.write_text(config.to_toml())
    weights = []
    for run, cache in (("a", "cold"), ("b", "cold"), ("c", "other")):
        command = [sys.executable, "-m", "seedless", "train", str(file), "--json", "--out"]
        done = subprocess.run(
            [*command, str(tmp_path / run)],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / cache)},
        )
        assert done.returncode == 0, done.stderr
        weights.append(json.loads(done.stdout)["weights"]["digest"])
    assert weights == 3 * weights[:1], "cold, warm, another cold cache"
    assert (
        train_here(name="baseline", mode="graph") != weights[0]
    )  # another arithmetic, and so named
