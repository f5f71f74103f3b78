"""Run folders: created with their configuration, locked while they are written, read again."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from seedless.core.config import Config
from seedless.core.config_files import load_config
from seedless.core.errors import FORCE, RunError
from seedless.proof.receipt import FILE as RECEIPT
from seedless.proof.receipt import explain_missing
from seedless.proof.run_files import check_run_files

CONFIG = "config.toml"


def check_destination(run: Path, force: bool) -> None:
    """Refuse a folder that a run cannot be written to, before anything is computed."""
    if run.is_symlink() or not run.name or run.name == "..":
        raise RunError(f"a run needs a folder of its own, not a link or {str(run)!r}: name another")
    if run.exists():
        if not run.is_dir():
            raise RunError(f"{run} is a file; choose another folder for the run")
        if any(run.iterdir()):
            _refuse_existing(run, force)
    parent = run.absolute()
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise RunError(f"cannot write {run}: {parent} is not a folder this user may write to")


def _refuse_existing(run: Path, force: bool) -> None:
    if not os.path.lexists(run / CONFIG):
        raise RunError(f"{run} holds files that are not a run; choose another folder")
    if added := check_run_files(run, finished=False):
        raise RunError(
            f"{run} holds something that no run wrote: {added[0]}, or choose another folder: "
            "nothing here is replaced"
        )
    if force:
        return
    if (run / RECEIPT).exists():
        raise RunError(
            f"{run} holds a finished run; choose another folder, or replace it with {FORCE}"
        )
    raise RunError(
        f"{run} holds an unfinished run; `seedless resume {run}` continues it, {FORCE} replaces it"
    )


def make_folder(run: Path, config: Config, force: bool) -> None:
    """Make the run folder with its configuration; at no time does it exist without one."""
    check_destination(run, force)
    if force and run.exists():
        old = run.with_name(f".{run.name}.{os.getpid()}.old")
        with lock(run):  # refused while another process writes it
            run.rename(old)  # a process killed here leaves no half-deleted run
        shutil.rmtree(old)
    temporary = run.with_name(f".{run.name}.{os.getpid()}.part")
    try:
        temporary.mkdir(parents=True)
        (temporary / CONFIG).write_text(config.to_toml(), encoding="utf-8")
        if run.exists():
            run.rmdir()
        temporary.rename(run)
    except OSError as error:
        raise RunError(f"cannot write {run}: {error.strerror}") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def clear_leftovers(run: Path) -> None:
    """Remove temporary files that a killed process left."""
    for path in run.rglob(".*.part"):
        path.unlink()


@contextmanager
def lock(run: Path) -> Iterator[None]:
    """Lock a run folder for this process; another process gets an error and does not wait."""
    try:
        with FileLock(run / ".lock", timeout=0):
            yield
    except Timeout:
        raise RunError(f"another process is writing {run}; wait for it to end") from None
    except PermissionError:
        raise RunError(f"cannot write {run}: permission denied") from None


def read_config(run: Path) -> Config:
    """Return the resolved configuration of a run folder."""
    if not (run / CONFIG).exists():
        raise RunError(explain_missing(run))
    return load_config(run / CONFIG)
