"""Everything that portable arithmetic can have switched on, in one object: `CONTEXT`.

A switch belongs to the process and not to a thread, because torch runs the backward pass of a CUDA
device in a thread of its own, and that thread must see what the forward pass saw. Each switch is
entered with ``with`` and restored on the way out, after an exception too. Changes are made under a
lock; a reader takes one attribute and needs none.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from seedless.core.errors import NumericsError

KERNELS_VARIABLE = "SEEDLESS_FUSED"  # an environment variable; 0 means: use no compiled kernel
ENGINE_VARIABLE = "SEEDLESS_ENGINE"  # an environment variable, see `exact.engines`
AUTO_ENGINE, FLOAT64_ENGINE, INT8_ENGINE = "auto", "float64", "int8"
ResultObserver = Callable[[str, tuple[Any, ...], Any], None]


class EngineChoice(NamedTuple):
    """The engine of matrix products on a device, and why it was chosen, in words."""

    engine: str
    reason: str


class SumEvaluator(Protocol):
    """Follows the ops of a step, and computes exact sums in place of `ExactSum.compute`.

    Attributes:
        redirects: whether it must see the sums of the op that runs now.
        is_tracing: whether it records ops. Then an op may not compute large tensors in pieces,
            whose number would depend on the size, and no sum is hidden.
    """

    redirects: bool
    is_tracing: bool

    def run_op(self, run: Callable[..., Any], func: Any, args: Any, kwargs: Any) -> Any:
        """Return ``run(func, args, kwargs)``, the result of an op."""

    def evaluate_sum(self, exact_sum: Any) -> Tensor:
        """Return the value of a sum in float64."""

    def count_addends(self, addends: int) -> int:
        """Return how many values the last sum adds in the whole batch; here it has ``addends``."""


class Context:
    """What is switched on now.

    Attributes:
        sum_evaluator: computes every exact sum in place of the sum itself; None: nobody does.
        result_observers: called with the name, arguments and result of every op.
        refuses_backward: whether a gradient must be computed by the block's `step`, not by a bare
            ``backward()``, because other processes hold samples of the batch.
        engine: the name of what computes matrix products, one of `exact.engines.ENGINES`, or auto:
            what `engine_choice` chose for the device.
        engine_choices: what it chose so far, by device.
        fuses_products: whether a GPU that can computes a product by the kernels of `fused_product`.
        hides_sums: whether the sums that are computed now add up no samples, see `within_samples`.
        tested_devices: devices whose compiled kernels were compared with the ops they replace.
        rejected_devices: devices whose compiled kernels gave other bits and are not used.
        self_test_lock: held while a device is tested, so that no thread uses its kernels before.
    """

    def __init__(self) -> None:
        self.sum_evaluator: SumEvaluator | None = None
        self.result_observers: tuple[ResultObserver, ...] = ()
        self.refuses_backward = False
        self.engine = os.environ.get(ENGINE_VARIABLE) or AUTO_ENGINE
        self.engine_choices: dict[torch.device, EngineChoice] = {}
        self._timed = _TimedEngine()
        self.fuses_products = True
        self.hides_sums = False
        self.tested_devices: set[torch.device] = set()
        self.rejected_devices: set[torch.device] = set()
        self.self_test_lock = threading.RLock()
        self._lock = threading.RLock()
        self._kernel_stops = 1 if os.environ.get(KERNELS_VARIABLE) == "0" else 0
        self._block_settings = SharedSettings(self._lock)
        self._onednn_settings = SharedSettings(self._lock)

    @property
    def redirects_sums(self) -> bool:
        """Return whether a `SumEvaluator` must see every sum, so that no kernel may hide one."""
        evaluator = self.sum_evaluator
        if evaluator is None or not evaluator.redirects:
            return False
        return evaluator.is_tracing or not self.hides_sums

    @property
    def splits_tensors(self) -> bool:
        """Return whether large tensors may be computed in pieces that fit a CPU's cache.

        Not while ops are recorded: the number of pieces, and so of ops, depends on the size.
        """
        return self.sum_evaluator is None or not self.sum_evaluator.is_tracing

    def allows_kernels(self, device: torch.device) -> bool:
        """Return whether the compiled kernels of a device may be used."""
        return not self._kernel_stops and device not in self.rejected_devices

    @contextmanager
    def without_kernels(self) -> Iterator[None]:
        """Compute every op from torch's own ops inside, without compiled kernels."""
        with self._lock:
            self._kernel_stops += 1
        try:
            yield
        finally:
            with self._lock:
                self._kernel_stops -= 1

    @contextmanager
    def evaluate_sums_with(self, evaluator: SumEvaluator) -> Iterator[None]:
        """Send every op and exact sum of this process to ``evaluator`` inside; one at a time."""
        with self._lock:
            if self.sum_evaluator is not None:
                raise NumericsError(
                    "expected one batch in parts at a time in a process; got a second one before "
                    "the first was done. Finish the step first, or use another process"
                )
            self.sum_evaluator = evaluator
        try:
            yield
        finally:
            self.sum_evaluator = None

    @contextmanager
    def within_samples(self) -> Iterator[None]:
        """Hide the sums inside from the evaluator: none of them adds up samples.

        An op that adds up samples uses this for its other parts, so that they keep their kernels.
        """
        before, self.hides_sums = self.hides_sums, True
        try:
            yield
        finally:
            self.hides_sums = before

    @contextmanager
    def observe_results_with(self, observer: ResultObserver) -> Iterator[None]:
        """Call ``observer`` with the result of every op inside, whichever thread computes it."""
        with self._lock:
            self.result_observers = (*self.result_observers, observer)
        try:
            yield
        finally:
            with self._lock:
                observers = list(self.result_observers)
                observers.remove(observer)
                self.result_observers = tuple(observers)

    @contextmanager
    def refuse_backward(self, is_refused: bool) -> Iterator[None]:
        """Refuse backward passes inside, or allow them again: a block's `step` knows the batch."""
        before, self.refuses_backward = self.refuses_backward, is_refused
        try:
            yield
        finally:
            self.refuses_backward = before

    def share_settings(
        self, settings: Callable[[], AbstractContextManager[None]]
    ) -> AbstractContextManager[None]:
        """Enter ``settings`` of the process with the first open block, leave them with the last."""
        return self._block_settings.share(settings)

    def allow_onednn(self) -> AbstractContextManager[None]:
        """Let torch use oneDNN inside, which a block switches off, for an int8 product."""
        return self._onednn_settings.share(_switch_onednn_on)

    def name_engine(self, device: torch.device) -> str:
        """Return the name of what computes matrix products on a device; until chosen, float64."""
        if self._timed.engine is not None:
            return self._timed.engine
        if self.engine != AUTO_ENGINE:
            return self.engine
        choice = self.engine_choices.get(device)
        return FLOAT64_ENGINE if choice is None else choice.engine

    def multiplies_in_float64(self, device: torch.device) -> bool:
        """Return whether matrix products are computed in float64, as compiled kernels do it."""
        return self.name_engine(device) == FLOAT64_ENGINE

    @contextmanager
    def time_engine(self, engine: str) -> Iterator[None]:
        """Compute this thread's matrix products with an engine inside, tested or not.

        Other threads go on with the engine that was chosen: this one may still be found wrong.
        """
        self._timed.engine = engine
        try:
            yield
        finally:
            self._timed.engine = None

    @contextmanager
    def multiply_with(self, engine: str) -> Iterator[None]:
        """Compute matrix products with this engine of `exact.engines.ENGINES` inside."""
        before, self.engine = self.engine, engine
        try:
            yield
        finally:
            self.engine = before

    @contextmanager
    def multiply_in_steps(self) -> Iterator[None]:
        """Compute products inside from operands on their grids, as GPUs without fused ones do."""
        before, self.fuses_products = self.fuses_products, False
        try:
            yield
        finally:
            self.fuses_products = before


class _TimedEngine(threading.local):
    """The engine that a thread measures now."""

    engine: str | None = None


class SharedSettings:
    """Settings of the process that several threads need at the same time."""

    def __init__(self, lock: threading.RLock) -> None:
        self._lock, self._users, self._entered = lock, 0, ExitStack()

    @contextmanager
    def share(self, settings: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
        """Enter ``settings`` with the first user, leave them with the last."""
        with self._lock:
            if not self._users:
                self._entered.enter_context(settings())
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    self._entered.close()


@contextmanager
def _switch_onednn_on() -> Iterator[None]:
    before = bool(torch.backends.mkldnn.enabled)
    torch._C._set_mkldnn_enabled(True)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(before)


CONTEXT = Context()
