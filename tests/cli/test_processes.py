"""`--processes N`: a run stopped, killed and continued on other numbers of processes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import seedless
from seedless.core.config import override
from seedless.core.config_files import open_config
from seedless.proof.trail import compare_trails, read_trail
from seedless.runs.resume import resume_run
from seedless.runs.train import train_run
from tests.tiny import flags_restored
from tests.train.problems import make_arrays

ROOT = Path(__file__).resolve().parents[2]
SHORT = """
[data]
name = "{file}"
[model]
name = "baseline"
small = true
[order]
batch_size = 9
[execution]
arithmetic = "portable"
device = "cpu"
threads = 1
[train]
epochs = 8
checkpoint_every = 1
evaluate_every = 1
clip_norm = 1.0
"""


@pytest.fixture(autouse=True)
def _leave_no_flags():
    with flags_restored():
        yield


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    """32 training samples in batches of 9, 9, 9 and 5: five are too few for three processes."""
    folder = tmp_path_factory.mktemp("config")
    samples, labels = make_arrays(40, leads=2, length=48)
    np.savez(folder / "arrays.npz", X=samples, Y=labels, folds=np.arange(40) % 10 + 1)
    (folder / "short.toml").write_text(SHORT.format(file=folder / "arrays.npz"))
    return folder / "short.toml"


def start(*arguments):
    """Start a command; its standard error is kept."""
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "seedless", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def list_children(process):
    """Return the processes that a command has started, in this order."""
    file = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return [int(number) for number in file.read_text().split()]


def wait_for(path, process):
    """Wait until a file exists; the command must not end before."""
    until = time.monotonic() + 200
    while not path.exists():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < until, "the command hangs"
        time.sleep(0.05)


def is_running(pid):
    """Return whether a process exists; one that ended and was not waited for does not count."""
    status = Path(f"/proc/{pid}/status")
    return status.exists() and "State:\tZ" not in status.read_text()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds children through /proc")
def test_a_run_is_stopped_on_three_killed_on_two_and_finished_on_one(config, tmp_path):
    run = tmp_path / "run"
    # [Step 1] Three processes train, and Ctrl-C stops them together after a step.
    three = start("train", config, "--out", run, "--processes", 3)
    wait_for(run / "checkpoints" / "epoch-0001.safetensors", three)
    three.send_signal(signal.SIGINT)
    _, said = three.communicate(timeout=100)
    assert three.returncode == 130, said
    assert said.count("stopped; `seedless resume") == 1
    done = len(list((run / "checkpoints").glob("epoch-????.safetensors")))
    # [Step 2] Two continue. One is killed: both end, with one message that names it.
    two = start("resume", run, "--processes", 2)
    wait_for(run / "checkpoints" / f"epoch-{done + 1:04d}.safetensors", two)
    members = list_children(two)
    os.kill(members[1], signal.SIGKILL)
    _, said = two.communicate(timeout=100)
    assert two.returncode == 2
    assert said.count("error:") == 1
    assert "process 1 of 2 failed" in said
    assert "SIGKILL" in said
    assert not any(map(is_running, members))
    # [Step 3] Nothing is half-written: one process finishes the run, to the bits of one that had
    # no such life.
    assert not list(run.rglob(".*.part"))
    assert not (run / "receipt.json").exists()
    finished = resume_run(run)
    alone = train_run(open_config(str(config)), tmp_path / "alone")
    assert finished.digest == alone.digest
    assert compare_trails(read_trail(run), read_trail(tmp_path / "alone")) is None
    assert finished.claims["config"] == alone.claims["config"]
    # [Step 4] Two processes verify what one made.
    verdict = seedless.verify(alone, processes=2)
    assert verdict.outcome == "identical", verdict.details
    assert "processes" not in verdict.details[0]
    assert verdict.details[1].endswith(", in 2 processes")


def test_native_arithmetic_is_refused_before_anything_starts(config, tmp_path):
    native = "execution.arithmetic=native"
    refused = start("train", config, "--out", tmp_path / "a", "--processes", 2, "--set", native)
    _, said = refused.communicate(timeout=100)
    assert refused.returncode == 2
    assert "Set execution.arithmetic to portable" in said
    assert not (tmp_path / "a").exists()


def test_the_timeout_changes_no_digest(config):
    plain = open_config(str(config))
    assert override(plain, ["execution.timeout=5"]).digest == plain.digest
    native = override(plain, ["execution.arithmetic=native"])
    assert override(native, ["execution.timeout=5"]).digest == native.digest
