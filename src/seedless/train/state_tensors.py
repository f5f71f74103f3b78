"""The complete state of a run as named tensors.

"model/NAME" is a parameter or buffer, "optimizer/FIELD/NAME" the optimizer's state of a parameter,
"order/losses" the losses that an order ranks by. A resumed run without one of them would end in
other bits.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from seedless.core.digests import name_tensors
from seedless.core.errors import RunError
from seedless.ordering import Order


def collect_state(
    model: nn.Module, optimizer: torch.optim.Optimizer | None, order: Order | None = None
) -> dict[str, Tensor]:
    """Return the tensors of a run by name; nothing is copied."""
    state: dict[str, Tensor] = {
        f"model/{name}": tensor.detach() for name, tensor in name_tensors(model).items()
    }
    if optimizer is not None:
        names: dict[Any, str] = {tensor: name for name, tensor in model.named_parameters()}
        for parameter, fields in optimizer.state.items():
            if parameter not in names:
                raise RunError(
                    "expected an optimizer of the model's parameters, got one that also updates "
                    "another parameter"
                )
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
    """Copy a collected state back in place; raise RunError where its names are not the same."""
    if not optimizer.state:  # a user's optimizer, which makes its state at the first step
        _create_state(state, model, optimizer)
    live = collect_state(model, optimizer)
    different = sorted({name for name in state if not name.startswith("order/")} ^ {*live})
    if different:
        raise RunError(
            f"the state does not fit the model and its optimizer: {len(different)} names differ, "
            f"the first is {different[0]!r}"
        )
    losses = {}
    with torch.no_grad():
        for name, value in state.items():
            if name in live:
                # Into the existing memory: its layout is the parameter's, which fused optimizers
                # rely on.
                _copy(name, value, live[name])
            else:
                losses[name.removeprefix("order/")] = value.numpy()
    if order is not None:
        order.restore(losses)


def _create_state(
    state: Mapping[str, Tensor], model: nn.Module, optimizer: torch.optim.Optimizer
) -> None:
    """Create the fields that a state has for the parameters of an optimizer without any."""
    groups = {p: group for group in optimizer.param_groups for p in group["params"]}
    names = {name: tensor for name, tensor in model.named_parameters() if tensor in groups}
    for key, value in state.items():
        kind, _, rest = key.partition("/")
        field, _, name = rest.partition("/")
        if kind != "optimizer" or name not in names:
            continue
        parameter = names[name]
        group = groups[parameter]
        if value.shape == parameter.shape:  # in the parameter's memory layout
            created = torch.empty_like(parameter, dtype=value.dtype)
        elif field == "step" and not (group.get("capturable") or group.get("fused")):
            created = torch.empty_like(value)  # torch counts steps on the CPU
        else:
            created = torch.empty_like(value, device=parameter.device)
        optimizer.state[parameter][field] = created


def _read_field(field: str, value: Any) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors of one field of an optimizer's state: a tensor, a number, or a list.

    L-BFGS keeps lists of past directions; they are named FIELD.0, FIELD.1, ... here.
    """
    if value is None:
        return
    if isinstance(value, Tensor):
        yield field, value.detach()
    elif isinstance(value, bool | int | float):
        yield field, torch.tensor(value)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _read_field(f"{field}.{index}", item)
    else:
        raise RunError(
            f"expected an optimizer whose state is tensors, numbers and lists of them; its "
            f"{field!r} is a {type(value).__name__}, which has no digest"
        )


class Snapshot:
    """A copy of a state's tensors on the GPU, made without waiting for the GPU.

    Tensors on the CPU are not copied, and change with the next step.
    """

    def __init__(self, state: Mapping[str, Tensor]) -> None:
        self._shapes = {name: tensor.shape for name, tensor in state.items()}
        self._on_cpu = {name: value for name, value in state.items() if value.device.type == "cpu"}
        by_dtype: dict[torch.dtype, list[str]] = {}
        for name, tensor in state.items():
            if name not in self._on_cpu:
                by_dtype.setdefault(tensor.dtype, []).append(name)
        # One buffer for each dtype is transferred much faster than many small tensors.
        self._on_gpu = [
            (names, torch.cat([state[name].reshape(-1) for name in names]))
            for names in by_dtype.values()
        ]
        self._copied = torch.cuda.current_stream().record_event() if self._on_gpu else None

    def fetch(self) -> dict[str, Tensor]:
        """Return all tensors on the CPU; waits for the copy, not for steps launched after it."""
        tensors = dict(self._on_cpu)
        if self._copied is not None:
            side = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # untyped in torch
            side.wait_event(self._copied)
            with torch.cuda.stream(side):
                for names, buffer in self._on_gpu:
                    flat = torch.empty(buffer.shape, dtype=buffer.dtype, pin_memory=True)
                    flat.copy_(buffer, non_blocking=True)
                    pieces = torch.split(flat, [self._shapes[name].numel() for name in names])
                    for name, piece in zip(names, pieces, strict=True):
                        tensors[name] = piece.view(self._shapes[name])
            side.synchronize()
        return {name: tensors[name] for name in self._shapes}


def fetch_state(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors on the CPU: copies of those on a GPU, the others themselves."""
    return Snapshot(state).fetch()


def _copy(name: str, source: Tensor, target: Tensor) -> None:
    if source.shape != target.shape or source.dtype != target.dtype:
        raise RunError(
            f"{name}: expected {target.dtype} of shape {tuple(target.shape)}, got {source.dtype} "
            f"of shape {tuple(source.shape)}; this is the state of another model"
        )
    target.copy_(source)
