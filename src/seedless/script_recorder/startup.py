"""Start recording this process, before any of the user's code runs."""

from __future__ import annotations

import atexit
import functools
import os
from types import ModuleType

from .import_hooks import call_after_import
from .recorder import Recorder
from .seed_calls import SeedRecorder
from .settings import SETTINGS_VARIABLE, read_settings


def start() -> None:
    """Read the settings, and wait for the script to import torch."""
    path = os.environ.get(SETTINGS_VARIABLE)
    if not path:
        return
    recorder = Recorder(read_settings(path))

    seeds = SeedRecorder(recorder)
    call_after_import("random", recorder.guard(seeds.watch_python))
    call_after_import("numpy.random", recorder.guard(seeds.watch_numpy))
    start_with_torch = functools.partial(_start_with_torch, recorder, seeds)
    call_after_import("torch", recorder.guard(start_with_torch))


def _start_with_torch(recorder: Recorder, seeds: SeedRecorder, torch: ModuleType) -> None:
    """Install every hook into torch; imported here because it needs torch."""
    from . import torch_hooks

    recorder.file.open()
    seeds.watch_torch(torch)
    torch_hooks.install(recorder)
    atexit.register(recorder.end)
