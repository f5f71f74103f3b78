"""The record of one process: a file of JSON lines, `process-<rank>-<pid>.jsonl`.

Nothing is written before the first step or the end, when it is known what the process is; one that
never imports torch leaves no file. Lines that wait for numbers from a device are kept, in order,
until there are enough of them.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any, Callable

WRITE_AFTER_LINES = 64
WRITE_AFTER_SECONDS = 2.0
LONGEST_TEXT = 4096
VARIABLE_PREFIXES = (
    *("OMP_", "MKL_", "KMP_", "OPENBLAS_", "ATEN_"),
    *("CUDA_", "CUBLAS_", "CUDNN_", "NVIDIA_TF32_", "NCCL_"),
    *("TORCH_", "TORCHINDUCTOR_", "PYTORCH_", "PL_"),
)
VARIABLES = ("PYTHONHASHSEED", "PYTHONPATH", "RANK", "LOCAL_RANK", "WORLD_SIZE")


class RecordFile:
    """Writes the lines of this process; a forked child gets a file of its own.

    Attributes:
        failed: whether the recorder has failed; nothing more is written then.
        script: the path of the script, for Python forgets it before the end.
        worker_id: the number of a DataLoader's worker, None in other processes.
        on_open: functions called when there is a file.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.failed = False
        self.script: str | None = None
        self._variables = read_variables()  # at the start: libraries add their own later
        self.on_open: list[Callable[[], None]] = []
        self._lock = threading.RLock()
        self.forget()

    def forget(self) -> None:
        """Start anew, in a forked child, which shares nothing with its parent's record."""
        self._lock = threading.RLock()
        self.worker_id: int | None = None
        self._descriptor: int | None = None
        self._waiting: list[dict[str, Any]] = []
        self._written_at = time.monotonic()

    @property
    def is_open(self) -> bool:
        """Whether there is a file."""
        return self._descriptor is not None

    def open(self) -> None:
        """Create the file and write its first line, then whatever waited for it."""
        with self._lock:
            if self._descriptor is not None or self.failed:
                return
            first = describe_process(self.script, self.worker_id)
            first["variables"] = self._variables
            name = f"process-{first['rank']}-{first['pid']}.jsonl"
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._descriptor = os.open(os.path.join(self.folder, name), flags, 0o644)
            self._waiting.insert(0, first)
            self.flush()
            for function in self.on_open:
                function()

    def write(self, line: dict[str, Any]) -> None:
        """Add a line; it is written after all earlier ones, once there is a file."""
        if self.failed:
            return
        with self._lock:
            self._waiting.append(line)
            if self._descriptor is None:
                return
            late = time.monotonic() - self._written_at > WRITE_AFTER_SECONDS
            if late or len(self._waiting) >= WRITE_AFTER_LINES or not _has_pending(self._waiting):
                self.flush()

    def flush(self) -> None:
        """Write everything, waiting for devices where needed."""
        with self._lock:
            if self._descriptor is None:
                return
            lines, self._waiting = self._waiting, []
            if _has_pending(lines):
                from .pending import resolve  # needs torch

                lines = resolve(lines)
            text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
            _write_all(self._descriptor, text.encode("utf-8", "backslashreplace"))
            self._written_at = time.monotonic()

    def fail(self, where: str, error: BaseException) -> None:
        """Record that the recorder itself failed, and record nothing more."""
        if self.failed:
            return
        self._waiting = [line for line in self._waiting if not line.get("pending")]
        self.open()
        self.write({"kind": "error", "where": where, "error": show_error(error)})
        self.failed = True


def describe_process(script: str | None, worker_id: int | None) -> dict[str, Any]:
    """Return the first line of a record."""
    return {
        "kind": "process",
        "role": "main" if worker_id is None else "worker",
        "worker_id": worker_id,
        "argv": [text[:LONGEST_TEXT] for text in getattr(sys, "argv", [])],
        "script": script,
        "executable": sys.executable,
        "python": ".".join(map(str, sys.version_info[:3])),
        "rank": _read_number("RANK", 0),
        "world_size": _read_number("WORLD_SIZE", 1),
        "pid": os.getpid(),
        "ppid": os.getppid(),
        "cwd": os.getcwd(),
    }


def read_variables() -> dict[str, str]:
    """Return the environment variables that can change a result."""
    return {
        name: value[:LONGEST_TEXT]
        for name, value in sorted(os.environ.items())
        if name in VARIABLES or name.startswith(VARIABLE_PREFIXES)
    }


def show_error(error: BaseException) -> str:
    """Return the class and the text of an exception, at most LONGEST_TEXT characters."""
    return f"{type(error).__name__}: {error}"[:LONGEST_TEXT]


def _has_pending(lines: list[dict[str, Any]]) -> bool:
    return any(line.get("pending") for line in lines)


def _read_number(variable: str, default: int) -> int:
    text = os.environ.get(variable, "")
    return int(text) if text.isdigit() else default


def _write_all(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]
