"""Runs scripts, with and without the recorder, in processes of their own."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from seedless.script_recorder.settings import Settings, make_environment, write_settings


@dataclass(frozen=True)
class Finished:
    """A script that has run: what it printed, how it ended, and the record of each process.

    The lines of recorded operations, and the tensors of the recorded step, are those of all
    processes.
    """

    stdout: str
    stderr: str
    code: int
    records: list[list[dict]] = field(default_factory=list)
    ops: list[dict] = field(default_factory=list)
    tensors: list[dict] = field(default_factory=list)

    @property
    def lines(self):
        """The lines of all processes."""
        return [line for record in self.records for line in record]

    def of_kind(self, kind):
        """The lines of one kind."""
        return [line for line in self.lines if line["kind"] == kind]


class Scripts:
    """Runs scripts in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._runs = 0

    def run(self, text, *, recorded=True, prefix=(), arguments=(), variables=None, **settings):
        """Run a script with and without the recorder; ``prefix`` goes before its path."""
        self._runs += 1
        folder = self.folder / f"run{self._runs}"
        records = folder / "records"
        records.mkdir(parents=True)
        script = self.folder / "script.py"
        script.write_text(text)
        clean = {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", **(variables or {})}
        environment = {
            **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            **clean,
        }
        if recorded:
            path = str(folder / "settings.json")
            write_settings(Settings(folder=str(records), **settings), path)
            environment = make_environment(path, environment)
        done = subprocess.run(
            [sys.executable, *prefix, str(script), *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        return Finished(
            done.stdout,
            done.stderr,
            done.returncode,
            [_read_lines(file) for file in sorted(records.glob("process-*"))],
            [line for file in sorted(records.glob("ops-*")) for line in _read_lines(file)],
            [json.loads(file.read_text()) for file in sorted(records.glob("tensors-*"))],
        )


def _read_lines(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.fixture(scope="session")
def scripts(tmp_path_factory):
    """Runs scripts, with and without the recorder."""
    return Scripts(tmp_path_factory.mktemp("scripts"))
