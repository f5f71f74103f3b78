"""Start recording this process, before any of the user's code runs."""

from __future__ import annotations

import atexit
import functools
import importlib
import os
import sys
from types import ModuleType

from .draws import DrawRecorder
from .file_observer import FileObserver
from .import_hooks import call_after_import
from .imported_sources import describe_sources
from .loaded_packages import describe_packages
from .numpy_memory import fill_empty_arrays
from .outside_values import OutsideRecorder
from .recorder import Recorder
from .seed_calls import SeedRecorder
from .settings import SETTINGS_VARIABLE, read_settings


def start() -> None:
    """Read the settings, and wait for the script to import torch."""
    path = os.environ.get(SETTINGS_VARIABLE)
    if not path:
        return
    recorder = Recorder(read_settings(path))
    OutsideRecorder(recorder).watch()
    seeds = SeedRecorder(recorder)
    draws = DrawRecorder(recorder)
    start_with_torch = functools.partial(_start_with_torch, recorder, seeds, draws)
    files = FileObserver(recorder) if recorder.settings.files else None
    for module, watch in (
        ("random", seeds.watch_python),
        ("random", draws.watch_python),
        ("numpy.random", seeds.watch_numpy),
        ("numpy.random", draws.watch_numpy),
        ("torch", start_with_torch),
    ):
        call_after_import(module, recorder.guard(watch, nested=True))
    if recorder.settings.deterministic:
        call_after_import("numpy", recorder.guard(fill_empty_arrays, nested=True))
    if files is not None:
        call_after_import("torch", recorder.guard(files.watch_torch, nested=True))
    recorder.before_end.append(functools.partial(_write_sources, recorder))


def _start_with_torch(
    recorder: Recorder, seeds: SeedRecorder, draws: DrawRecorder, torch: ModuleType
) -> None:
    """Install every hook into torch."""
    from . import silence, torch_hooks  # need torch

    recorder.file.script = getattr(sys.modules.get("__main__"), "__file__", None)
    draws.skip_while(torch.compiler.is_compiling)
    seeds.watch_torch(torch)
    steps = torch_hooks.install(recorder, seeds)
    silence.keep_from_compiling()
    atexit.register(recorder.end)
    recorder.file.on_open.append(functools.partial(_end_with_process, recorder))
    if recorder.settings.ops_at is not None:
        importlib.import_module(".step_ops", __package__).install(recorder, steps)


def _write_sources(recorder: Recorder) -> None:
    """Write which files and packages were imported; a worker's are those of the main process."""
    if recorder.file.worker_id is None:
        recorder.file.write(describe_sources(recorder.file.script))
        recorder.file.write(describe_packages())


def _end_with_process(recorder: Recorder) -> None:
    """See the end of a child of `multiprocessing` too, which leaves without `atexit`."""
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        from multiprocessing.util import Finalize

        Finalize(None, recorder.end, exitpriority=0)
