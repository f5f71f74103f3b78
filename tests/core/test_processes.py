"""Worker processes: what they import, what they print, and that none outlives its block."""

import os
import signal
import sys

import pytest

from seedless.core.errors import RunError
from seedless.core.processes import (
    Workers,
    build_command,
    build_environment,
    list_import_path,
)
from seedless.core.rendezvous import find_place

SLEEP = ["-n1", "-r1", "import time; time.sleep(100)"]


def run(module, *arguments, **options):
    with Workers() as workers:
        workers.start(module, arguments, capture=True, **options)
        (result,) = workers.wait()
    return result


def test_a_file_in_the_current_directory_is_not_imported(tmp_path, monkeypatch, add_module):
    add_module("importing", "import tomllib")
    (tmp_path / "tomllib.py").write_text("raise SystemExit('hijacked')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    run("importing").check()

    # Without -P and with the whole path it is: the protection is what these two do.
    monkeypatch.setattr("seedless.core.processes.list_import_path", lambda _: list(sys.path))
    monkeypatch.setattr(
        "seedless.core.processes.build_command",
        lambda module, arguments: [sys.executable, "-m", module, *arguments],
    )
    with pytest.raises(RunError, match="hijacked"):
        run("importing").check()


def test_the_package_stays_importable_from_its_own_folder(monkeypatch):
    import seedless

    place = os.path.dirname(os.path.dirname(seedless.__file__))
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    monkeypatch.chdir(place)
    assert place in list_import_path()
    assert "" not in list_import_path()
    assert build_command("seedless", ["env"])[1:] == ["-P", "-m", "seedless", "env"]
    monkeypatch.setattr(sys, "path", ["lib"])  # found by a hook of an editable installation
    assert list_import_path() == [place]


@pytest.mark.parametrize("entry", ["", ".", "./", "lib", "../modules", "HERE", "HERE/.", "/a:b"])
def test_what_is_relative_to_the_current_directory_is_left_out(tmp_path, monkeypatch, entry):
    monkeypatch.chdir(tmp_path)
    before = list_import_path()
    monkeypatch.syspath_prepend(entry.replace("HERE", str(tmp_path)))
    assert list_import_path() == before
    assert build_environment()["PYTHONPATH"] == os.pathsep.join(before)
    assert build_environment()["PYTHONSAFEPATH"] == "1"


def test_untrusted_folders_are_left_out_with_all_in_them(tmp_path, monkeypatch):
    inside, link = tmp_path / "run" / "checkpoints", tmp_path / "link"
    inside.mkdir(parents=True)
    link.symlink_to(inside)
    before = list_import_path()
    others = [tmp_path / "other", link, inside, inside.parent]
    for folder in reversed(others):
        monkeypatch.syspath_prepend(folder)
    assert list_import_path([tmp_path / "run"]) == [str(tmp_path / "other"), *before]
    assert list_import_path() == [*map(str, others), *before]


def test_variables_are_changed_and_removed(monkeypatch):
    monkeypatch.setenv("GOES", "1")
    monkeypatch.setenv("STAYS", "2")
    made = build_environment({"GOES": None, "COMES": "3"}, slot="5")
    assert "GOES" not in made
    assert (made["STAYS"], made["COMES"], made["CUDA_VISIBLE_DEVICES"]) == ("2", "3", "5")


def test_an_error_or_ctrl_c_ends_every_worker():
    def interrupt():
        raise KeyboardInterrupt

    workers = Workers()
    for _ in range(2):
        workers.start("timeit", SLEEP, capture=True)
    with pytest.raises(KeyboardInterrupt), workers:
        workers.wait(interrupt)
    assert [worker.poll().exit_code for worker in workers.workers] == [-signal.SIGTERM] * 2


def test_a_failure_is_said_with_the_last_line_or_the_exit_code(add_module):
    add_module("refusing", "import sys\nprint('error: no such data', file=sys.stderr)\nsys.exit(2)")
    with pytest.raises(RunError, match="`refusing a` failed: no such data"):
        run("refusing", "a").check()
    assert run("refusing").check(allowed=(0, 2)).exit_code == 2
    add_module("silent", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    with pytest.raises(RunError, match="ended by SIGKILL; was it killed, or out of memory"):
        run("silent").check()


def test_what_a_worker_prints_is_captured_however_much_it_is(add_module):
    add_module("talking", "import sys\nprint('x' * 10**6)\nprint('y' * 10**6, file=sys.stderr)")
    result = run("talking").check()
    assert (len(result.stdout), len(result.stderr)) == (10**6 + 1, 10**6 + 1)


def test_a_worker_does_not_belong_to_the_group_of_its_parent(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "SLURM_STEP_NUM_TASKS"):
        monkeypatch.setenv(name, "2")
    assert find_place(build_environment()) is None
    told = build_environment({"RANK": "0", "WORLD_SIZE": "2"})
    assert (told["RANK"], told["WORLD_SIZE"]) == ("0", "2")
