"""Portable arithmetic across devices: made on one, executed on the other, the same bits."""

import json

import pytest

from seedless.core.config import Config
from tests.gpu.test_training import ECG, IMAGES, SGD, run_cli

pytestmark = pytest.mark.gpu

CASES = {
    "conformer": {
        **ECG,
        "model": {"name": "conformer", "small": True},
        "train": {"clip_norm": 1.0},
    },
    "baseline": {**ECG, "model": {"name": "baseline", "small": True}},
    "xresnet1d101": {**ECG, "model": {"name": "xresnet1d101", "small": True}},
    "resnet18": {**IMAGES, "model": {"name": "resnet18", "small": True}, "train": SGD},
}


def train(folder, case, name, arithmetic="portable", **execution):
    """Train for two epochs in a process of its own; return the folder and the receipt's claims."""
    parts = CASES[case]
    steps = {"epochs": 2, "evaluate_every": 1, "checkpoint_every": 2, **parts.get("train", {})}
    config = Config.model_validate(
        {
            **parts,
            "train": steps,
            "execution": {"arithmetic": arithmetic, "threads": 2, **execution},
        }
    )
    file = folder / f"{name}.toml"
    file.write_text(config.to_toml())
    done = run_cli("train", file, "--out", folder / name, "--json")
    assert done.returncode == 0, done.stderr
    return folder / name, json.loads(done.stdout)


@pytest.mark.parametrize("case", CASES)
def test_a_run_is_executed_on_the_other_device(case, tmp_path):
    here, on_cpu = train(tmp_path, case, "cpu", device="cpu")
    there, on_gpu = train(tmp_path, case, "cuda", device="cuda")
    assert on_cpu["environment"]["devices"] == on_gpu["environment"]["devices"]  # one machine
    assert on_cpu["weights"] == on_gpu["weights"]
    assert on_cpu["predictions"] == on_gpu["predictions"]
    assert on_cpu["metrics"] == on_gpu["metrics"]
    for run, device in ((here, "cuda"), (there, "cpu")):
        verified = run_cli("verify", run, "--device", device)
        assert verified.returncode == 0, verified.stdout + verified.stderr
        assert "IDENTICAL" in verified.stdout


@pytest.mark.parametrize("case", ["conformer", "resnet18"])
def test_a_captured_step_has_the_eager_steps_bits(case, tmp_path):
    _, graph = train(tmp_path, case, "graph", device="cuda", mode="graph")
    _, eager = train(tmp_path, case, "eager", device="cuda", mode="eager")
    assert graph["weights"] == eager["weights"]


def test_negative_control_native_arithmetic_differs_between_devices(tmp_path):
    _, on_cpu = train(tmp_path, "conformer", "cpu", "native", device="cpu")
    _, on_gpu = train(tmp_path, "conformer", "cuda", "native", device="cuda")
    assert on_cpu["initialization"] == on_gpu["initialization"]
    assert on_cpu["weights"]["digest"] != on_gpu["weights"]["digest"]
