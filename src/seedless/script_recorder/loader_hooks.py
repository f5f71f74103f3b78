"""Record what samplers and DataLoaders give, and what their workers draw."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import torch.utils.data

from .outermost_call import OutermostCall
from .recorder import Recorder
from .step_recorder import StepRecorder

_dataloader: Any = torch.utils.data.dataloader
_utilities: Any = torch.utils.data._utils


def watch_loaders(recorder: Recorder, steps: StepRecorder, call: OutermostCall) -> None:
    """Record indices and batches in the main process, and draws in the workers."""
    iterator = _dataloader._BaseDataLoaderIter
    initialize, next_index, next_batch = (
        iterator.__init__,
        iterator._next_index,
        iterator.__next__,
    )
    see_loader = recorder.guard(steps.see_loader)
    see_indices = recorder.guard(steps.see_indices)
    see_batch = recorder.guard(steps.see_batch)

    @functools.wraps(initialize)
    def recorded_init(self: Any, loader: Any, *args: Any, **kwargs: Any) -> None:
        see_loader(loader)
        initialize(self, loader, *args, **kwargs)

    @functools.wraps(next_index)
    def recorded_next_index(self: Any) -> Any:
        indices = next_index(self)
        see_indices(indices)
        return indices

    @functools.wraps(next_batch)
    def recorded_next_batch(self: Any) -> Any:
        batch = next_batch(self)
        see_batch(batch)
        return batch

    iterator.__init__ = recorded_init
    iterator._next_index = recorded_next_index
    iterator.__next__ = recorded_next_batch
    _watch_workers(recorder, call)


def _watch_workers(recorder: Recorder, call: OutermostCall) -> None:
    """Give each worker a record of its own, with its draws after each batch."""
    worker_loop = _utilities.worker._worker_loop
    signature = inspect.signature(worker_loop)

    @recorder.guard
    def write_draws() -> None:
        if recorder.file.worker_id is not None:
            recorder.file.open()
            for write_lines in recorder.before_line:
                write_lines()

    @functools.wraps(worker_loop)
    def recorded_worker_loop(*args: Any, **kwargs: Any) -> Any:
        recorder.file.worker_id = signature.bind(*args, **kwargs).arguments.get("worker_id", -1)
        with call:  # modules that transform samples belong to no step of the worker
            return worker_loop(*args, **kwargs)

    for fetcher in (_utilities.fetch._MapDatasetFetcher, _utilities.fetch._IterableDatasetFetcher):
        fetcher.fetch = _call_afterwards(fetcher.fetch, write_draws)
    _utilities.worker._worker_loop = recorded_worker_loop


def _call_afterwards(function: Any, call: Any) -> Any:
    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        call()
        return result

    return called
