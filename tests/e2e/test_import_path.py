"""Modules in a folder that someone else wrote are executed by no worker, however one was started.

A notebook kernel is a process with "" on its path that may change its directory. No kernel is
installed here; `code.InteractiveConsole` reads statements in the same way.
"""

import os
import shutil
import subprocess
import sys

import pytest

from seedless.studies.engine.store import Store
from tests.conftest import ROOT
from tests.studies.tiny_grids import make_tiny_grid
from tests.tiny import fit_run

MODULES = (
    *("torch", "numpy", "scipy", "safetensors", "pydantic", "tomllib", "tomli_w", "json"),
    *("filelock", "sitecustomize", "usercustomize", "encodings", "ray", "seedless_worker"),
)
CALL = "seedless.verify(RUN, entry='mine:give')"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return fit_run(tmp_path_factory.mktemp("import") / "run", train={"epochs": 1})


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """Stand in a folder of modules that leave a mark when they are executed; return the marks."""
    folder, marks = tmp_path / "planted", tmp_path / "marks"
    marks.mkdir()
    for name in MODULES:
        (folder / name).mkdir(parents=True)
        text = f"open({str(marks / name)!r}, 'w').close()\n"
        (folder / name / "__init__.py").write_text(text)
    (folder / "mine.py").write_text("from tests.tiny import give\n")
    monkeypatch.chdir(folder)
    return lambda: sorted(path.name for path in marks.iterdir())


def start(*arguments, code=0, **variables):
    """Run Python where we stand, with this package and its tests on the path."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **variables},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert code in (None, done.returncode), done.stderr
    return done


def test_the_console_script(run, planted, tmp_path):
    script = tmp_path / "bin" / "seedless"
    script.parent.mkdir()
    script.write_text("import sys\nfrom seedless.cli.main import main\nsys.exit(main())\n")
    done = start(script, "verify", run, "--entry", "mine:give")
    assert done.stdout.startswith("IDENTICAL")
    assert planted() == []


def test_python_m(run, planted):
    done = start("-m", "seedless", "verify", run, "--entry", "mine:give")
    assert done.stdout.startswith("IDENTICAL")
    assert planted() == []


# What the user's own process imports is Python's business: it has "" on its path. So it imports
# everything first, from a folder that it trusts, and then goes to the other one.
SESSION = """
import code, os, sys
assert sys.path[0] == ""
there = os.getcwd()
os.chdir(ROOT)
import seedless
seedless.verify(RUN, entry="tests.tiny:give", validate_only=True)
import tests.tiny
os.chdir(there)
print(CALL.outcome)
console = code.InteractiveConsole()
for line in ("import seedless, sys", "assert sys.path[0] == ''", "print(CALL.outcome)"):
    console.push(line)
"""


def test_python_c_and_a_session_that_changes_its_directory(run, planted):
    text = (
        SESSION.replace("CALL", CALL)
        .replace("RUN", repr(str(run)))
        .replace("ROOT", repr(str(ROOT)))
    )
    done = start("-c", text)
    assert done.stdout.split() == ["identical", "identical"], done.stderr
    assert planted() == []


GRID = """
import os, sys
there = os.getcwd()
os.chdir(ROOT)
from pathlib import Path
from seedless.studies.engine.local_workers import run_local
from seedless.studies.engine.ray_workers import run_ray
from seedless.studies.engine.store import Store
from tests.studies.tiny_grids import make_tiny_grid
import torch, numpy, scipy, safetensors.torch, pydantic, tomllib, tomli_w, json, filelock
if ENGINE is run_ray:
    import ray
os.chdir(there)
sys.path.insert(0, there)
ENGINE(Store(Path(STORE)), make_tiny_grid(1).points[:1])
"""


@pytest.mark.parametrize("engine", ["run_local", "run_ray"])
def test_the_workers_of_a_study(planted, tmp_path, engine):
    if engine == "run_ray":
        pytest.importorskip("ray", reason="Ray is not installed")
    store = Store(tmp_path / "store")
    text = GRID.replace("STORE", repr(str(store.folder))).replace("ENGINE", engine)
    start("-c", text.replace("ROOT", repr(str(ROOT))))
    assert store.read(make_tiny_grid(1).points[0]).ok
    assert planted() == []


@pytest.mark.parametrize("options", [("-m",), ("-P", "-m")], ids=" ".join)
def test_without_the_protection_they_are_executed(planted, options):
    """The control: a worker as Python starts it, and one with this folder on its PYTHONPATH."""
    path = os.pathsep.join([os.getcwd() if "-P" in options else "", str(ROOT / "src")])
    shutil.rmtree("encodings")  # with it on its PYTHONPATH, Python itself does not start
    start(*options, "seedless.audit.worker", code=None, PYTHONPATH=path.lstrip(os.pathsep))
    assert planted() != []
