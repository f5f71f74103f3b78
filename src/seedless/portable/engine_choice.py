"""Which engine multiplies on a device: the faster one, found by timing when it is first used.

Law: every engine gives the same integers, so the choice changes time alone. It may differ between
machines, between processes of a group, and from one start to the next.

The int8 engine is chosen where it is clearly faster and its sums are exact; otherwise float64 is:
after a tie, after noise, and where int8 cannot be timed. SEEDLESS_ENGINE with the name of an engine
switches all of this off.
"""

import math
import time
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from seedless.core.errors import NumericsError
from seedless.portable.context import (
    AUTO_ENGINE,
    CONTEXT,
    ENGINE_VARIABLE,
    FLOAT64_ENGINE,
    INT8_ENGINE,
    EngineChoice,
)
from seedless.portable.engine_check import check_engine, check_int8_once
from seedless.portable.exact.engines import ENGINES
from seedless.portable.exact.product import multiply_and_round

Shape = tuple[int, int, int, int]  # batch, m, k, n
# What a training step multiplies: a layer, a convolution's filters, and attention. On a CPU the
# first is small: without int8 instructions the int8 engine takes a hundred times as long.
SHAPES: dict[str, tuple[Shape, ...]] = {
    "cpu": ((1, 64, 128, 64), (1, 256, 256, 256), (1, 64, 576, 512), (8, 64, 32, 64)),
    "cuda": ((1, 8192, 256, 1024), (1, 64, 576, 32_768), (64, 256, 32, 256)),
}
WARM_UP: Shape = (1, 32, 32, 32)  # libraries are loaded with the first product
ROUNDS = 3  # of which the shortest counts: what other processes do makes a round longer only
MIN_GAIN = 1.25  # so many times as fast must int8 be; a smaller difference may be noise
MAX_LOSS = 8.0  # so many times as slow after a round, the rest is not timed
MAX_SECONDS = {"cpu": 0.3, "cuda": 2.0}  # of all rounds together: a busy machine is not timed


def prepare_engine(device: torch.device) -> None:
    """Choose a device's engine on its first use, unless one is set; refuse one that is not exact.

    Until there is a choice, float64 is used.
    """
    is_open = CONTEXT.engine == AUTO_ENGINE and device not in CONTEXT.engine_choices
    if is_open and _can_time(device):
        with CONTEXT.self_test_lock:
            if device not in CONTEXT.engine_choices:
                CONTEXT.engine_choices[device] = choose_engine(device)
    check_engine(device)


def explain_engine(device: torch.device) -> EngineChoice:
    """Return a device's engine and why it is used; it is chosen now where it was not before."""
    prepare_engine(device)
    if CONTEXT.engine == AUTO_ENGINE and device in CONTEXT.engine_choices:
        return CONTEXT.engine_choices[device]
    return EngineChoice(CONTEXT.name_engine(device), f"set by {ENGINE_VARIABLE}")


def choose_engine(device: torch.device) -> EngineChoice:
    """Time the engines on a device and return the one to use there."""
    # [Step 1] Leave out what is known: without oneDNN a CPU's int8 product is a plain loop.
    if device.type not in SHAPES:
        return EngineChoice(FLOAT64_ENGINE, "not timed: int8 products are for CPUs and CUDA")
    if device.type == "cpu" and not torch.backends.mkldnn.enabled:
        return EngineChoice(FLOAT64_ENGINE, "not timed: int8 products need oneDNN, which is off")
    # [Step 2] Time both. A device that cannot compute the int8 ones has float64 left.
    try:
        seconds = time_engines(device)
    except RuntimeError as error:
        first_line = str(error).partition("\n")[0]
        return EngineChoice(FLOAT64_ENGINE, f"int8 products do not run there: {first_line}")
    if seconds is None:
        return EngineChoice(FLOAT64_ENGINE, "not timed: the machine is too busy to compare engines")
    reason = f"chosen by timing: {describe_seconds(seconds)}"
    if seconds[INT8_ENGINE] * MIN_GAIN > seconds[FLOAT64_ENGINE]:
        return EngineChoice(FLOAT64_ENGINE, reason)
    # [Step 3] Test the faster one: a wrong engine may well be fast.
    try:
        check_int8_once(device)
    except NumericsError:
        return EngineChoice(FLOAT64_ENGINE, f"{reason}, but int8 sums are not exact there")
    return EngineChoice(INT8_ENGINE, reason)


def time_engines(device: torch.device) -> dict[str, float] | None:
    """Return the seconds of each engine for the same products on a device; None: it took too long.

    The results are thrown away. Random numbers are not used, and modes do not see the products.
    """
    timed: list[dict[str, float]] = []  # for each shape, the shortest round of each engine
    with _disable_current_modes(), torch.no_grad():
        for engine in ENGINES:
            _time_product(engine, *make_operands(WARM_UP, device))
        start = time.perf_counter()
        for shape in SHAPES[device.type]:
            operands = make_operands(shape, device)
            timed.append(dict.fromkeys(ENGINES, math.inf))
            for _ in range(ROUNDS):
                for engine, least in timed[-1].items():
                    timed[-1][engine] = min(least, _time_product(engine, *operands))
                if timed[-1][INT8_ENGINE] > MAX_LOSS * timed[-1][FLOAT64_ENGINE]:
                    return _add_up(timed)
                if time.perf_counter() - start > MAX_SECONDS[device.type]:
                    return None
    return _add_up(timed)


def _add_up(timed: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the seconds of each engine for all shapes together."""
    return {engine: sum(each[engine] for each in timed) for engine in ENGINES}


def make_operands(shape: Shape, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return operands of a product; no value matters for its time."""
    batch, m, k, n = shape
    left = torch.arange(batch * m * k, device=device) * 7919 % 1009 - 504
    right = torch.arange(batch * k * n, device=device) * 6101 % 1013 - 506
    return left.view(batch, m, k).to(torch.float32), right.view(batch, k, n).to(torch.float32)


def _time_product(engine: str, left: Tensor, right: Tensor) -> float:
    """Return the seconds of one product; on a CPU those that this thread computed.

    There the clock stands still while other processes have the processor.
    """
    clock = time.thread_time if left.is_cpu else time.perf_counter
    with CONTEXT.time_engine(engine):
        _wait(left.device)
        start = clock()
        multiply_and_round(left, right)
        _wait(left.device)
        return clock() - start


def _wait(device: torch.device) -> None:
    """Wait until a device has computed what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _can_time(device: torch.device) -> bool:
    """Return whether products of a device are executed now, and belong to nobody's records.

    Not on meta, where nothing is computed; not while ops are captured into a CUDA graph, or are
    followed to compute a batch in parts.
    """
    if device.type == "meta" or CONTEXT.sum_evaluator is not None:
        return False
    return device.type != "cuda" or not torch.cuda.is_current_stream_capturing()


def describe_seconds(seconds: Mapping[str, float]) -> str:
    """Return the times in words: ``float64 1.20 ms, int8 3.45 ms``."""
    return ", ".join(f"{engine} {1e3 * value:.2f} ms" for engine, value in seconds.items())
