"""The console script itself, started anew for each attack, says what its forked copy says."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.attack.catalog import list_all
from tests.attack.runner import make_attack

# By name: some of each family, among them the modules planted where a worker would find them.
NAMES = (
    "added/modules in the run folder, executed",
    "added/modules beside the native run folder and in the current one, executed",
    "bombs/config.toml: 3,000 brackets",
    "bundles/signed.zip: with source/torch.py",
    "bundles/bundle.zip: torch.py, listed, executed",
    "bytes/native: weights.safetensors, bit 1 at 0%",
    "commands/sign: tampered metrics",
    "forged/native: one bit of a weight, everywhere",
    "signatures/a receipt changed after it",
    "stores/two runs swapped, table",
)


class Console:
    """Runs the console script of this environment, with the server's variables."""

    def __init__(self, server):
        self.variables = server.variables

    def run(self, arguments, *, cwd, terminal, **variables):
        program = Path(sys.executable).with_name("seedless")
        began = time.monotonic()
        with subprocess.Popen(
            [program, *arguments],
            cwd=cwd,
            env={**self.variables, **{name: str(value) for name, value in variables.items()}},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            stdout, stderr = process.stdout.read(), process.stderr.read()
        return {
            "code": process.returncode,
            "timed_out": False,
            "seconds": time.monotonic() - began,
            # Not measured: the peak of a started program counts what its parent had before it.
            "megabytes": 0.0,
            "stdout": stdout,
            "stderr": stderr,
        }


@pytest.mark.parametrize("name", NAMES)
def test_the_console_script_says_the_same(name, victims, server, tmp_path):
    (attack,) = [attack for attack in list_all(victims) if attack.name == name]
    started = make_attack(attack, victims, Console(server), tmp_path / "started")
    forked = make_attack(attack, victims, server, tmp_path / "forked")
    assert started.problems == ()
    assert (started.verdict, started.code) == (forked.verdict, forked.code)
