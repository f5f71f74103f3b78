"""Observe which files a script reads and writes, and which folders it lists.

Python reports each `open` and each listing to an audit hook. Files that native code opens are not
seen, except through `torch.save`. Files are digested at the end, within bounds of size and time;
one that changed after it was read has no digest.
"""

from __future__ import annotations

import functools
import hashlib
import os
import stat
import sys
import time
from types import FrameType, ModuleType
from typing import Any

from .recorder import Recorder
from .settings import SETTINGS_VARIABLE
from .user_lines import find_user_line, is_for_itself, is_installed

MAX_FILES = 20000
MAX_LISTINGS = 1000
MAX_BYTES = 8 << 30  # of one file
MAX_SECONDS = 20.0
MAX_SECONDS_OF_WORKER = 2.0  # a DataLoader ends a worker that takes longer
CHUNK = 1 << 20
OUTSIDE = ("/proc/", "/sys/", "/dev/", "/etc/", "/usr/share/", "/usr/lib/")
IN_MEMORY = "/dev/shm/"  # a file system in memory, where data are copied to be read faster
SKIPPED_ENDINGS = (".py", ".pyc", ".so")
SKIPPED_PARTS = ("/torchinductor_", "/.triton/", "/__pycache__/")


class FileObserver:
    """Collects the files of this process."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._forget()
        recorder.after_fork.append(self._forget)
        recorder.before_end.append(self.write)
        self._own = (recorder.settings.folder, os.environ.get(SETTINGS_VARIABLE, ""))
        self._observe = recorder.guard(self._observe_event)
        sys.addaudithook(self._hear)

    def watch_torch(self, torch: ModuleType) -> None:
        """See the files that `torch.save` writes, which it opens in native code."""
        library: Any = torch
        save = library.save
        see = self.recorder.guard(self.see_written)

        @functools.wraps(save)
        def recorded_save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
            if isinstance(f, (str, os.PathLike)):
                see(f)
            return save(obj, f, *args, **kwargs)

        library.save = library.serialization.save = recorded_save

    def see_written(self, path: Any, frame: FrameType | None = None) -> None:
        """Remember a file that is about to be written."""
        full = os.path.abspath(os.fsdecode(path))
        if full not in self._written and self._is_wanted(full):
            self._written[full] = find_user_line(frame)

    def write(self) -> None:
        """Write the line about files."""
        worker = self.recorder.file.worker_id is not None
        until = time.monotonic() + (MAX_SECONDS_OF_WORKER if worker else MAX_SECONDS)
        read: list[dict[str, Any]] = [
            {"path": path, "size": info.st_size, "mtime_ns": info.st_mtime_ns, "line": line}
            for path, (line, info) in self._read.items()
        ]
        for entry in sorted(read, key=lambda entry: entry["size"]):
            entry["sha256"] = digest_file(entry, until)
        written = [{"path": path, "line": line} for path, line in self._written.items()]
        if read or written:
            self.recorder.file.write({"kind": "files", "read": read, "written": written})

    def _forget(self) -> None:
        self._read: dict[str, tuple[str, os.stat_result]] = {}
        self._written: dict[str, str] = {}
        self._listed: set[tuple[str, str]] = set()

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        """Called by Python for every audited event: must be quick, and raise nothing."""
        if event in ("open", "os.listdir", "os.scandir"):
            frame = sys._getframe().f_back  # None where Python itself opens the script
            if frame is not None:
                self._observe(event, args, frame)

    def _observe_event(self, event: str, args: tuple[Any, ...], frame: FrameType) -> None:
        if is_for_itself(frame):
            return
        path = args[0]
        if event == "open":
            if isinstance(path, (str, bytes, os.PathLike)):
                self._see_open(path, args[1], args[2], frame)
        elif path is None or isinstance(path, (str, bytes, os.PathLike)):
            self._see_listing(event, os.fsdecode(path or "."), frame)

    def _see_open(self, path: Any, mode: Any, flags: Any, frame: FrameType) -> None:
        full = os.path.abspath(os.fsdecode(path))
        if full in self._read or full in self._written or len(self._read) >= MAX_FILES:
            return
        writes = any(letter in mode for letter in "wax") if isinstance(mode, str) else False
        if isinstance(flags, int) and not isinstance(mode, str):
            writes = flags & (os.O_WRONLY | os.O_RDWR) != 0
        if writes:
            self.see_written(full, frame)
        elif self._is_wanted(full):
            info = _find_regular_file(full)
            if info is not None:
                self._read[full] = (find_user_line(frame), info)

    def _see_listing(self, event: str, path: str, frame: FrameType) -> None:
        full = os.path.abspath(path)
        line = find_user_line(frame)
        key = (full, line)
        known = key in self._listed or len(self._listed) >= MAX_LISTINGS
        if known or not line or not self._is_wanted(full + os.sep) or not os.path.isdir(full):
            return
        self._listed.add(key)
        names = os.listdir(full)
        self.recorder.file.write(
            {
                "kind": "listing",
                "call": event,
                "path": full,
                "ordered": _digest_names(names),
                "sorted": _digest_names(sorted(names)),
                "count": len(names),
                "line": line,
            }
        )

    def _is_wanted(self, path: str) -> bool:
        """Return whether a file belongs to the script and its data."""
        if is_outside(path) or path.startswith(self._own[0]) or path == self._own[1]:
            return False
        if path.endswith(SKIPPED_ENDINGS) or any(part in path for part in SKIPPED_PARTS):
            return False
        return not is_installed(path)


def is_outside(path: str) -> bool:
    """Return whether a file belongs to the system, and to nobody's script.

    >>> is_outside("/dev/null"), is_outside("/dev/shm/data.npy")
    (True, False)
    """
    return path.startswith(OUTSIDE) and not path.startswith(IN_MEMORY)


def digest_file(entry: dict[str, Any], until: float) -> str | None:
    """Return the SHA-256 of a file as it was read; None where it changed or takes too long."""
    if entry["size"] > MAX_BYTES:
        return None
    hasher = hashlib.sha256()
    try:
        with open(entry["path"], "rb") as file:
            info = os.fstat(file.fileno())
            if (info.st_size, info.st_mtime_ns) != (entry["size"], entry["mtime_ns"]):
                return None
            while chunk := file.read(CHUNK):
                hasher.update(chunk)
                if time.monotonic() > until:
                    return None
    except OSError:
        return None
    return hasher.hexdigest()


def _find_regular_file(path: str) -> os.stat_result | None:
    try:
        info = os.stat(path)
    except OSError:
        return None
    return info if stat.S_ISREG(info.st_mode) else None


def _digest_names(names: list[str]) -> str:
    text = "\0".join(names).encode("utf-8", "surrogateescape")
    return hashlib.sha1(text, usedforsecurity=False).hexdigest()[:16]
