"""The whole state of a run, tensor by tensor, under names that say what each is.

"model/NAME" parameters and buffers; "optimizer/FIELD/NAME" what the optimizer keeps for a
parameter; "order/losses" what an order ranks by. Leave one out and a resumed run ends in
other bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from seedless.core.errors import RunError
from seedless.ordering import Order


def collect_state(
    model: nn.Module, optimizer: torch.optim.Optimizer | None, order: Order | None = None
) -> dict[str, Tensor]:
    """Return the live tensors, by name: nothing is copied."""
    state: dict[str, Tensor] = {
        f"model/{name}": tensor.detach() for name, tensor in name_tensors(model).items()
    }
    if optimizer is not None:
        names = _name_parameters(model)
        for parameter, fields in optimizer.state.items():
            if parameter not in names:
                raise RunError("the optimizer holds a parameter that is not the model's")
            for field, value in fields.items():
                for key, tensor in _read_field(field, value):
                    state[f"optimizer/{key}/{names[parameter]}"] = tensor
    if order is not None:
        for name, array in order.state().items():
            state[f"order/{name}"] = torch.from_numpy(array)
    return state


def restore_state(
    state: Mapping[str, Tensor],
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    order: Order | None = None,
) -> None:
    """Put a collected state back, in place; a name too many or too few is an error."""
    live = collect_state(model, optimizer)
    odd = sorted({name for name in state if not name.startswith("order/")} ^ {*live})
    if odd:
        raise RunError(
            f"the state does not fit the model and its optimizer: {len(odd)} names differ, the "
            f"first is {odd[0]!r}"
        )
    losses = {}
    with torch.no_grad():
        for name, value in state.items():
            if name in live:
                # Into the memory that is there: its layout is the parameter's, which fused
                # optimizers rely on.
                _copy(name, value, live[name])
            else:
                losses[name.removeprefix("order/")] = value.numpy()
    if order is not None:
        order.restore(losses)


def _read_field(field: str, value: Any) -> Iterator[tuple[str, Tensor]]:
    """Yield what an optimizer keeps under a name: a tensor, a number, or several of them.

    L-BFGS keeps lists of past directions, as FIELD.0, FIELD.1, ... here.
    """
    if value is None:
        return
    if isinstance(value, Tensor):
        yield field, value.detach()
    elif isinstance(value, bool | int | float):
        yield field, torch.tensor(value)
    elif isinstance(value, list | tuple):
        for place, item in enumerate(value):
            yield from _read_field(f"{field}.{place}", item)
    else:
        raise RunError(
            f"expected an optimizer whose state is tensors, numbers and lists of them; it keeps "
            f"{field!r} as {type(value).__name__}, of which no digest can be made"
        )


class Snapshot:
    """The tensors of a state as they are now: those of a GPU are copied there, without waiting.

    Those on the CPU are not copied, and change with the next step.
    """

    def __init__(self, state: Mapping[str, Tensor]) -> None:
        self._shapes = {name: tensor.shape for name, tensor in state.items()}
        self._here = {name: tensor for name, tensor in state.items() if tensor.device.type == "cpu"}
        away: dict[torch.dtype, list[str]] = {}
        for name, tensor in state.items():
            if name not in self._here:
                away.setdefault(tensor.dtype, []).append(name)
        # One piece a dtype travels much faster than one a tensor.
        self._away = [
            (names, torch.cat([state[name].reshape(-1) for name in names]))
            for names in away.values()
        ]
        self._copied = torch.cuda.current_stream().record_event() if self._away else None

    def fetch(self) -> dict[str, Tensor]:
        """Return all on the CPU; this waits for the copy, not for what was launched after it."""
        found = dict(self._here)
        if self._copied is not None:
            side = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # untyped in torch
            side.wait_event(self._copied)
            with torch.cuda.stream(side):
                for names, there in self._away:
                    flat = torch.empty(there.shape, dtype=there.dtype, pin_memory=True)
                    flat.copy_(there, non_blocking=True)
                    pieces = torch.split(flat, [self._shapes[name].numel() for name in names])
                    for name, piece in zip(names, pieces, strict=True):
                        found[name] = piece.view(self._shapes[name])
            side.synchronize()
        return {name: found[name] for name in self._shapes}


def fetch_state(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors on the CPU: those of a GPU as copies, those that are there as they are."""
    return Snapshot(state).fetch()


def name_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Return every parameter and buffer by name, tied ones under each of their names."""
    return {
        **dict(model.named_parameters(remove_duplicate=False)),
        **dict(model.named_buffers(remove_duplicate=False)),
    }


def _name_parameters(model: nn.Module) -> dict[Any, str]:
    return {parameter: name for name, parameter in model.named_parameters()}


def _copy(name: str, source: Tensor, target: Tensor) -> None:
    if source.shape != target.shape or source.dtype != target.dtype:
        raise RunError(
            f"{name}: expected {target.dtype} of shape {tuple(target.shape)}, got {source.dtype} "
            f"of shape {tuple(source.shape)}; this state is of another model"
        )
    target.copy_(source)
