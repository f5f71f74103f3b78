"""Whole runs on a CUDA device: two processes, one trail; verified; stopped and resumed."""

import json
import signal
import subprocess
import sys
import time

import pytest

from seedless.core.config import Config
from tests.conftest import ROOT

pytestmark = pytest.mark.gpu

ECG = {"data": {"name": "simulated", "records": 160}, "order": {"batch_size": 32}}
IMAGES = {
    "data": {"name": "simulated-images", "records": 400},
    "augment": {"padding": 2, "flip": True},
    "order": {"batch_size": 64},
}
SGD = {"optimizer": "sgd", "rate": 0.05, "momentum": 0.9, "weight_decay": 5e-4}
CASES = {
    "conformer": {**ECG, "model": {"name": "conformer"}},
    "conformer-golden": {**ECG, "model": {"name": "conformer"}, "order": {"name": "golden"}},
    "baseline-losses": {**ECG, "model": {"name": "baseline"}, "order": {"name": "loss_ranked"}},
    "xresnet1d101-seeded": {
        **ECG,
        "model": {"name": "xresnet1d101"},
        "order": {"name": "seeded", "seed": 3, "batch_size": 32},
    },
    "resnet18-sgd": {**IMAGES, "model": {"name": "resnet18"}, "init": {"basis": "dct"}},
}


def write_config(path, case, **train):
    given = {"epochs": 3, "evaluate_every": 1, "checkpoint_every": 1, "warmup_steps": 5}
    steps = {**(SGD if "sgd" in case else {}), **given, **train}
    config = Config.model_validate(
        {**CASES[case], "train": steps, "execution": {"device": "cuda", "threads": 4}}
    )
    path.write_text(config.to_toml())
    return path


def run_cli(*arguments):
    command = [sys.executable, "-m", "seedless", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=300)


def train(file, out):
    done = run_cli("train", file, "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("case", CASES)
def test_two_processes_give_one_trail(case, tmp_path):
    file = write_config(tmp_path / "run.toml", case)
    first, second = (train(file, tmp_path / name) for name in "ab")
    assert first["weights"] == second["weights"]
    assert first["trail"] == second["trail"]
    assert first["environment"]["devices"]


def test_a_run_is_verified_and_a_flipped_bit_is_found(tmp_path):
    file = write_config(tmp_path / "run.toml", "conformer")
    train(file, tmp_path / "a")
    verified = run_cli("verify", tmp_path / "a")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    flip = "control.flip_bit=stem.0.weight:0:0"
    flipped = run_cli("train", file, "--out", tmp_path / "b", "--set", flip)
    assert flipped.returncode == 0, flipped.stderr
    found = run_cli("diff", tmp_path / "a", tmp_path / "b", "--locate")
    assert found.returncode == 1, found.stderr
    assert "stem.0.weight differs in 1 of" in found.stdout, found.stdout


def test_another_arithmetic_is_another_digest(tmp_path):
    file = write_config(tmp_path / "run.toml", "conformer")
    plain = train(file, tmp_path / "a")
    switched = run_cli(
        "train", file, "--out", tmp_path / "b", "--json", "--set", "execution.precision=tf32"
    )
    assert json.loads(switched.stdout)["weights"] != plain["weights"]


def test_a_stopped_run_resumes_to_the_same_bits(tmp_path):
    file = write_config(tmp_path / "run.toml", "baseline-losses", epochs=6)
    whole = train(file, tmp_path / "a")
    command = [sys.executable, "-m", "seedless", "train", str(file), "--out", str(tmp_path / "b")]
    running = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
    while not list((tmp_path / "b").glob("checkpoints/*")) and running.poll() is None:
        time.sleep(0.01)
    running.send_signal(signal.SIGKILL)
    running.wait()
    resumed = run_cli("resume", tmp_path / "b", "--json")
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads(resumed.stdout)["weights"] == whole["weights"]
