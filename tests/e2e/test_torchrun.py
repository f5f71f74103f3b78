"""The script of the page about portable arithmetic, started by torchrun, and `seedless train`."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from tests.conftest import ROOT
from tests.train.problems import make_arrays

PAGE = (ROOT / "docs" / "how-to" / "portable.md").read_text()
(EXAMPLE,) = (code for code in re.findall(r"```python\n(.*?)```", PAGE, re.S) if "p.step" in code)
LOADER = """
import os
import torch

torch.set_num_threads(1)
RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
X, Y = torch.arange(120.0).sin().reshape(24, 5), torch.arange(24) % 3
loader = [(X[i : i + 12].chunk(SIZE)[RANK], Y[i : i + 12].chunk(SIZE)[RANK]) for i in (0, 12)]
"""
SETTINGS = """
[data]
name = "arrays.npz"
[model]
name = "baseline"
small = true
[order]
batch_size = 8
[execution]
arithmetic = "portable"
device = "cpu"
[train]
epochs = 1
"""
REPORT = """
with open(f"rank{RANK}of{SIZE}", "w") as file:
    print(seedless.digest(model), loss.item(), file=file)
"""


def start(folder, processes, *command):
    """Run a command by torchrun on some processes of this machine; return what it prints."""
    environment = os.environ | {
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
        "OMP_NUM_THREADS": "1",
    }
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    launched = [*launcher, "--nproc-per-node", str(processes), *map(str, command)]
    done = subprocess.run(
        launched, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("script") / "train.py"
    path.write_text(LOADER + EXAMPLE + REPORT)
    return path


def test_a_script_has_the_same_bits_on_one_and_three_processes(script):
    for processes in (1, 3):
        start(script.parent, processes, script)
    found = {path.name: path.read_text() for path in script.parent.glob("rank*")}
    assert sorted(found) == ["rank0of1", "rank0of3", "rank1of3", "rank2of3"]
    assert len(set(found.values())) == 1


def test_a_run_has_the_same_weights_by_torchrun_as_alone(tmp_path):
    samples, labels = make_arrays(30, leads=2, length=32)
    np.savez(tmp_path / "arrays.npz", X=samples, Y=labels, folds=np.arange(30) % 10 + 1)
    (tmp_path / "short.toml").write_text(SETTINGS)
    weights = []
    for processes in (1, 2):
        command = ["-m", "seedless", "train", "short.toml", "--out", f"r{processes}"]
        out = start(tmp_path, processes, *command)
        weights.append(re.search(r"^weights +(sha256:\w+)", out, re.M)[1])
    assert weights[0] == weights[1]
