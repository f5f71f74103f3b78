"""The script of docs/how-to/run-a-script.md, recorded once, and executed again once."""

import re
import shutil
import sys
from types import SimpleNamespace

import pytest

from seedless.audit.script import reexecution
from seedless.audit.script.recording import record_script
from seedless.audit.script.reexecution import choose_execution, execute_script
from seedless.runs.script_run import open_script
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "how-to" / "run-a-script.md").read_text()


def write_example(folder):
    """Write the files that the page shows."""
    for name, kind in (("train.py", "python"), ("table.json", "json")):
        text = re.search(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL).group(1)
        (folder / name).write_text(text)


@pytest.fixture(scope="session")
def example(tmp_path_factory):
    """The script's folder, its run folder, and what the script printed."""
    place = tmp_path_factory.mktemp("script")
    folder = place / "work"
    folder.mkdir()
    write_example(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("MKL_CBWR", "COMPATIBLE")
        patch.setenv("OMP_NUM_THREADS", "1")
        printed = [(place / name).open("w+b") for name in ("stdout", "stderr")]
        command = [sys.executable, "train.py", "--epochs", "3"]
        record_script(command, place / "run", show=tuple(printed))
    for file in printed:
        file.close()
    return SimpleNamespace(folder=folder, run=place / "run", printed=(place / "stdout").read_text())


@pytest.fixture(scope="session")
def executed(example, tmp_path_factory):
    """One real execution of the example: its verdict, what was shown, and what is needed for more.

    ``again`` takes the place of executing: it gives the files and records of that execution.
    """
    kept = tmp_path_factory.mktemp("executed")
    shown, results = [], []

    def execute_and_keep(command, place, folder, **options):
        shown.append("executed")
        results.append(real(command, place, folder, **options))
        shutil.copytree(place, kept / "run")
        shutil.copytree(folder, kept / "work")
        return results[0]

    def again(command, place, folder, **options):
        shutil.copytree(kept / "run", place)
        shutil.copytree(kept / "work", folder, dirs_exist_ok=True)
        return type(results[0])(**{**vars(results[0]), "folder": place})

    real = reexecution.execute_shown
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reexecution, "execute_shown", execute_and_keep)
        request = choose_execution(example.run, example.folder, sys.executable)
        verdict = execute_script(open_script(example.run), request, shown.append)
    return SimpleNamespace(verdict=verdict, shown=shown, again=again)
