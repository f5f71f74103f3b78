"""The file of a recorded loop while it is written: locked, appended to, cut after a resume."""

import errno
import fcntl
import os
import shutil
import time
from pathlib import Path

from seedless.core.digests import canonical_json
from seedless.core.errors import RunError
from seedless.proof.trail import TrailEntry

# How long to wait for the workers of a killed process, which hold its lock until they end.
LOCK_SECONDS = 10.0


class TrailFile:
    """A trail that this process alone may write; a second writer is refused."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._process = os.getpid()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab", buffering=0)
        except OSError as error:
            raise RunError(f"cannot write {path}: {error.strerror}") from None
        try:
            _lock(self._file.fileno(), path)
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        """Close the file; another process may then write it."""
        self._file.close()

    def check_open(self) -> None:
        """Refuse a file that was closed, and a process that was forked from the writing one."""
        if os.getpid() != self._process or self._file.closed:
            raise RunError(
                f"{self.path} is open in process {self._process} only, until its block is left: "
                "call `step` there"
            )

    def append(self, entry: TrailEntry) -> None:
        """Write one line; raise RunError where the file was removed or the disk is full."""
        try:
            if not self.path.exists():
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            self._file.write(canonical_json(entry) + b"\n")
        except OSError as error:
            raise RunError(f"cannot write {self.path}: {error.strerror}") from None

    def cut(self, size: int, *, keep: Path | None = None) -> None:
        """Cut the file to so many bytes; copy it to ``keep`` before."""
        try:
            if keep is not None:
                shutil.copyfile(self.path, keep)
            self._file.truncate(size)
        except OSError as error:
            raise RunError(f"cannot write {self.path}: {error.strerror}") from None

    def find_free_name(self) -> Path:
        """Return a name for a copy beside the file: trail.replaced-1.jsonl, ..."""
        number = 1
        while (kept := self.path.with_name(f"{self.path.stem}.replaced-{number}.jsonl")).exists():
            number += 1
        return kept


def _lock(descriptor: int, path: Path) -> None:
    waited_until = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:  # another one has it
            if time.monotonic() > waited_until:
                raise RunError(
                    f"{path} is being written by another process or by an open trail of this one: "
                    "use another folder, or pass the number of each process as rank="
                ) from None
            time.sleep(0.1)
        except OSError:
            return  # a file system without locks; the chain still shows lines of two writers
