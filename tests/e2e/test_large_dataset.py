"""A dataset larger than the memory limit, and a run over a dataset that is killed and resumed."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch

import seedless
from tests.conftest import ROOT
from tests.runs import user_problems as own

LIMIT = 448 << 20  # bytes of data that the process may have; with torch it has 300 MB already
SAMPLES, LENGTH = 60, 1 << 21  # 60 x 8 MiB: 480 MiB

TRAIN_UNDER_A_LIMIT = """
import json, resource, sys
import numpy as np
import seedless
from tests.e2e.test_large_dataset import LENGTH, LIMIT, SAMPLES, thin
from tests.runs import user_problems as own
resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))
file, out = sys.argv[1:]
scans = np.memmap(file, dtype=np.float32, mode="r", shape=(SAMPLES, LENGTH))
targets = np.arange(SAMPLES, dtype=np.float32)[:, None] / SAMPLES
try:
    np.array(scans)
    print(json.dumps("the limit has no effect"))
    sys.exit()
except MemoryError:
    pass

digests = []
for workers in (0, 2, 4):
    run = seedless.fit(
        own.small_net, train=(scans, targets), val=(scans[:2] + 1, targets[:2]),
        loss=own.squared_error, collate=thin, workers=workers, digest_cache=f"{out}/digests",
        epochs=1, batch_size=4, config={"execution": {"device": "cpu", "threads": 1}},
        out=f"{out}/{workers}",
    )
    digests.append([run.digest, run.claims["trail"], run.claims["data"]["content"]])
print(json.dumps(digests))
"""


def thin(samples):
    """Return six values of each scan, and the targets."""
    inputs = np.stack([scan[:: LENGTH // 6][:6] for scan, _ in samples])
    return torch.from_numpy(inputs), torch.from_numpy(np.stack([target for _, target in samples]))


@pytest.fixture
def run_script(tmp_path):
    """Run Python code in a process of its own; return what it printed and its exit code."""

    def run(code, *arguments):
        paths = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
        return subprocess.run(
            [sys.executable, "-c", code, *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": paths},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the data of a process")
def test_a_dataset_larger_than_the_memory_limit_gives_one_digest(run_script, tmp_path):
    """Sparse on the disk: each scan has some values of its own. Loading all of it fails."""
    file = tmp_path / "scans"
    with file.open("wb") as stream:
        stream.truncate(4 * SAMPLES * LENGTH)
    assert file.stat().st_size > LIMIT
    scans = np.memmap(file, dtype=np.float32, mode="r+", shape=(SAMPLES, LENGTH))
    for row in range(SAMPLES):
        scans[row, :: LENGTH // 6] = np.sin(row + np.arange(7))
    scans.flush()
    done = run_script(TRAIN_UNDER_A_LIMIT, file, tmp_path)
    assert done.returncode == 0, done.stderr
    digests = json.loads(done.stdout.splitlines()[-1])
    assert len(digests) == 3, digests
    assert digests[0] == digests[1] == digests[2]


class Fatal:
    """Kills the process that trains when a sample of the second epoch is read, if asked to."""

    def __init__(self, rows, victim=None):
        self.inputs, self.targets = own.make_regression(len(rows), rows[0])
        self.victim = victim

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, index):
        if self.victim is not None and index.epoch == 1:
            os.kill(self.victim, signal.SIGKILL)
        return self.inputs[index].astype(np.float32), self.targets[index].astype(np.float32)


TRAIN_AND_DIE = """
import os, sys
import seedless
from tests.e2e.test_large_dataset import Fatal
from tests.runs import user_problems as own
seedless.fit(
    own.small_net, train=Fatal(range(24), os.getpid()), loss=own.squared_error,
    optimizer=own.adamw, workers=2, config=own.SETTINGS, out=sys.argv[1],
)
"""


def test_a_killed_run_over_a_dataset_ends_in_the_same_bits(run_script, tmp_path):
    """Killed while two workers read, and resumed without any."""
    arguments = {
        "train": Fatal(range(24)),
        "loss": own.squared_error,
        "optimizer": own.adamw,
        "config": own.SETTINGS,
    }
    whole = seedless.fit(own.small_net, **arguments, out=tmp_path / "whole")
    killed = tmp_path / "killed"
    assert run_script(TRAIN_AND_DIE, killed).returncode == -signal.SIGKILL
    assert not (killed / "receipt.json").exists()
    resumed = seedless.fit(own.small_net, **arguments, out=killed, resume=True)
    assert resumed.digest == whole.digest
    assert resumed.claims["trail"] == whole.claims["trail"]
