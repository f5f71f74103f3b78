"""What happens around an optimizer's step inside `with portable():`.

Adam and AdamW take their fused form, whose powers are ours (`ops.optimizer`). The settings of every
other optimizer, also of one that a user wrote, become numbers whose powers do not depend on the
host's math library (`exact.portable_float`) while it takes its step.
"""

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.optim.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from seedless.core.errors import NumericsError
from seedless.portable.exact.portable_float import PortableFloat
from seedless.portable.refusal import find_caller

_ADAM = (torch.optim.Adam, torch.optim.AdamW)
# Torch's other optimizers whose steps are made of ops and of powers of their settings.
_MADE_OF_OPS = (
    *(torch.optim.SGD, torch.optim.RMSprop, torch.optim.Adagrad, torch.optim.Adadelta),
    *(torch.optim.NAdam, torch.optim.RAdam, torch.optim.Adamax, torch.optim.ASGD),
    torch.optim.Rprop,
)


def _make_portable(value: Any) -> Any:
    """Return a setting with its floats, also those of a tuple, as portable numbers.

    One that is portable already is returned itself: another thread's block has prepared it.
    """
    if isinstance(value, float):
        return value if isinstance(value, PortableFloat) else PortableFloat(value)
    if type(value) is tuple:
        made = tuple(map(_make_portable, value))
        return value if all(map(operator.is_, made, value)) else made
    return value


@contextmanager
def prepare_optimizers() -> Iterator[None]:
    """Prepare every optimizer for its step, and restore its settings after it."""
    before: dict[int, list[tuple[dict[str, Any], dict[str, Any]]]] = {}

    def enter(optimizer: Optimizer, *_: Any) -> None:
        is_torchs = type(optimizer).__module__.startswith("torch.")
        if is_torchs and not isinstance(optimizer, (*_ADAM, *_MADE_OF_OPS)):
            known = ", ".join(one.__name__ for one in (*_ADAM, *_MADE_OF_OPS))
            raise NumericsError(
                f"expected one of {known}, or an optimizer of your own, in `with portable():`; "
                f"got {type(optimizer).__name__} at {find_caller()}, whose step takes powers from "
                "the host's math library or has no float32 form"
            )
        changed = []
        for group in optimizer.param_groups:
            new: dict[str, Any] = {"fused": True, "foreach": False}
            if not isinstance(optimizer, _ADAM):
                new = {k: _make_portable(v) for k, v in group.items() if k != "params"}
            new = {k: v for k, v in new.items() if v is not group.get(k)}
            changed.append((group, {k: group.get(k) for k in new}))
            group.update(new)
        before.setdefault(id(optimizer), changed)
        if isinstance(optimizer, _ADAM):
            _move_step_counters(optimizer)

    def restore(key: int) -> None:
        for group, old in before.pop(key, []):
            for name, value in old.items():
                group[name] = value

    def leave(optimizer: Optimizer, *_: Any) -> None:
        restore(id(optimizer))

    handles = [register_optimizer_step_pre_hook(enter), register_optimizer_step_post_hook(leave)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
        for key in list(before):  # optimizers whose step raised an error
            restore(key)


def _move_step_counters(optimizer: Optimizer) -> None:
    """Move step counters to the device of their parameters, where the fused form reads them."""
    for parameter, state in optimizer.state.items():
        if isinstance(state.get("step"), Tensor):
            state["step"] = state["step"].to(parameter.device, torch.float32)
