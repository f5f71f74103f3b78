"""An unfinished run that someone else left: nothing is executed, or written outside of it."""

import os

import pytest

from seedless.core.config import Config
from seedless.core.errors import ConfigError, RunError, UnknownNameError
from seedless.runs.folder import make_folder, read_config
from seedless.runs.resume import move_run, resume_run
from tests.tiny import copy_run, fit_run, flags_restored

LATE = ("receipt.json", "weights.safetensors", "metrics.json", "predictions.npz")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    with flags_restored():
        return fit_run(tmp_path_factory.mktemp("resume") / "run", train={"epochs": 1})


@pytest.fixture
def run(made, tmp_path):
    """A run that was stopped before its results were written."""
    folder = copy_run(made, tmp_path / "run")
    for name in LATE:
        (folder / name).unlink()
    return folder


def prepare_nothing(config):
    pytest.fail("a folder that must be refused was prepared")


def link(path, target):
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def make_pipe(path):
    path.unlink(missing_ok=True)
    os.mkfifo(path)


CHANGES = {
    "a module": lambda run, outside: (run / "torch.py").write_text("raise SystemExit"),
    "a linked trail": lambda run, outside: link(run / "trail.jsonl", outside),
    "a linked log": lambda run, outside: link(run / "log.jsonl", outside),
    "a linked lock": lambda run, outside: link(run / ".lock", outside),
    "linked weights": lambda run, outside: link(run / "weights.safetensors", outside),
    "a linked configuration": lambda run, outside: link(run / "config.toml", outside),
    "a pipe": lambda run, outside: make_pipe(run / "trail.jsonl"),
    "a folder as a leftover": lambda run, outside: (run / ".a.1.part").mkdir(),
    "a linked folder of checkpoints": lambda run, outside: (
        (run / "checkpoints").rename(outside.parent / "moved"),
        (run / "checkpoints").symlink_to(outside.parent / "moved"),
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_it_is_refused_and_nothing_outside_changes(run, tmp_path, change):
    outside = tmp_path / "outside"
    outside.write_text("mine")
    config = read_config(run)
    CHANGES[change](run, outside)
    with pytest.raises(RunError, match="something that no run wrote"):
        resume_run(run, preparer=prepare_nothing)
    with pytest.raises(RunError, match="something that no run wrote"):
        make_folder(run, config, force=True)
    assert outside.read_text() == "mine"
    assert run.is_dir()


def test_what_a_killed_process_leaves_is_not_refused(run):
    """The control: the same folder without the change is prepared."""
    (run / ".metrics.json.17.part").write_text("half")
    with pytest.raises(RuntimeError, match="prepared"):
        resume_run(run, preparer=refuse_to_prepare)


def refuse_to_prepare(config):
    raise RuntimeError("prepared")


def test_only_a_portable_run_is_continued_on_another_device():
    native = Config().change(execution={"device": "cpu", "threads": 4})
    assert move_run(native, None, in_group=False) == native
    assert move_run(native, "cpu", in_group=False) == native
    with pytest.raises(ConfigError, match="only a portable run can be continued on cuda"):
        move_run(native, "cuda", in_group=False)
    portable = native.change(execution={"arithmetic": "portable"})
    assert move_run(portable, None, in_group=False) == portable
    moved = move_run(portable, "cuda", in_group=False)
    assert (moved.execution.device, moved.execution.threads) == ("cuda", None)
    assert moved.digest == portable.digest
    # In a group the cores are shared anew.
    assert move_run(portable, None, in_group=True).execution.threads is None
    with pytest.raises(UnknownNameError, match="tpu"):
        move_run(portable, "tpu", in_group=False)
