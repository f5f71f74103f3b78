"""One operation with its arguments as plain values: sent to a referee, and executed there alone.

    describe_call(func, args, kwargs) -> plain values -> execute_call(op, values) -> OpRecord

The values come from a party to a dispute and may be anything. An operation is executed only if it
is one of portable arithmetic and its results fit into memory, which is found out beforehand from
shapes alone.
"""

import base64
import binascii
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from seedless.core.errors import RunError, SeedlessError
from seedless.portable.mode import portable
from seedless.portable.ops.registry import REGISTRY, find_rule
from seedless.script_recorder.op_record import NOT_COMPARED, OpRecord
from seedless.script_recorder.op_recorder import OpRecorder
from seedless.script_recorder.op_signature import find_tensors, read_signature

MAX_TENSOR_BYTES = 2**30
MAX_DIMENSIONS = 16
DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        *(torch.float32, torch.float64, torch.bool, torch.uint8, torch.int8, torch.int16),
        *(torch.int32, torch.int64),
    )
}
# Arguments that are neither tensors nor plain: the tag of each kind, and its values by name.
_NAMED: dict[str, Mapping[str, Any]] = {
    "dtype": DTYPES,
    "device": {"cpu": torch.device("cpu")},
    "layout": {"strided": torch.strided},
    "memory_format": {
        str(one).removeprefix("torch."): one
        for one in (
            *(torch.contiguous_format, torch.preserve_format),
            *(torch.channels_last, torch.channels_last_3d),
        )
    },
}
_TYPES = {
    torch.dtype: "dtype",
    torch.device: "device",
    torch.layout: "layout",
    torch.memory_format: "memory_format",
}


def describe_tensor(tensor: Tensor) -> dict[str, Any]:
    """Return dtype, shape and elements, as {"dtype", "shape", "data"} of plain values.

    Example:
        >>> describe_tensor(torch.zeros(1))
        {'dtype': 'float32', 'shape': [1], 'data': 'AAAAAA=='}
    """
    plain = tensor.detach().cpu().contiguous()
    content = plain.reshape(-1).view(torch.uint8).numpy().tobytes()
    return {
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "shape": list(tensor.shape),
        "data": base64.b64encode(content).decode(),
    }


def read_tensor(values: Any) -> Tensor:
    """Return the tensor that `describe_tensor` described; refuse anything else."""
    try:
        dtype, shape, data = DTYPES[values["dtype"]], values["shape"], values["data"]
        fits = len(values) == 3 and len(shape) <= MAX_DIMENSIONS
        sizes = [size for size in shape if type(size) is int and 0 <= size <= MAX_TENSOR_BYTES]
        if not fits or len(sizes) != len(shape):
            raise ValueError("another form")
        content = bytearray(base64.b64decode(data, validate=True))
        if len(content) != math.prod(sizes) * dtype.itemsize:
            raise ValueError("another size")
        if not content:
            return torch.empty(sizes, dtype=dtype)
        return torch.frombuffer(content, dtype=dtype).reshape(sizes).clone()
    except (LookupError, TypeError, ValueError, AttributeError, binascii.Error):
        raise RunError("expected a tensor as dtype, shape and base64 of its elements") from None


def describe_call(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of an operation as plain values."""
    return {
        "arguments": [_describe(value) for value in args],
        "options": {name: _describe(value) for name, value in kwargs.items()},
    }


def execute_call(op: str, call: Any) -> OpRecord:
    """Execute one operation in portable arithmetic on the CPU and return its record.

    Args:
        op: name and overload, as "aten.addmm.default".
        call: the arguments, as `describe_call` returned them.
    """
    # [Step 1] Refuse what is no operation of portable arithmetic, and read what was sent.
    func = find_overload(op)
    if func.name() not in REGISTRY:
        find_rule(func)  # raises an error for one that has no rule
    try:
        args = tuple(_read(value) for value in call["arguments"])
        kwargs = {str(name): _read(value) for name, value in call["options"].items()}
    except (LookupError, TypeError, ValueError, AttributeError):
        raise RunError(f"expected the arguments of {op} and its options") from None
    # [Step 2] Refuse results that would not fit into memory.
    try:
        size = measure_results(func, args, kwargs)
    except Exception as error:  # the arguments are not ours: whatever torch raises refuses them
        raise RunError(f"{op} cannot be executed alone: {type(error).__name__}") from None
    if size > MAX_TENSOR_BYTES:
        raise RunError(f"{op} would return {size:,} bytes; at most {MAX_TENSOR_BYTES:,} are made")
    # [Step 3] Execute it.
    recorder = OpRecorder(nn.Module())
    try:
        with torch.no_grad(), portable(), recorder:
            func(*args, **kwargs)
    except SeedlessError:
        raise
    except Exception as error:  # as above: torch refuses these arguments
        raise RunError(f"{op} cannot be executed alone: {type(error).__name__}") from None
    record = recorder.records[0]
    if any(one.startswith(NOT_COMPARED) for one in (*record.inputs, *record.outputs)):
        raise RunError(f"{op} has a tensor without bytes, which no referee can compare")
    return record


def measure_results(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> int:
    """Return the bytes of the tensors that an operation will return, found from shapes alone."""
    signature = read_signature(func)
    if signature.written and all(signature.aliased):
        return 0  # it writes into its arguments, as an optimizer's step does
    options = {name: _drop_elements(value) for name, value in kwargs.items()}
    if "device" in signature.arguments:
        options["device"] = torch.device("meta")
    shapes = func(*map(_drop_elements, args), **options)
    return sum(tensor.numel() * tensor.itemsize for tensor in find_tensors(shapes))


def find_overload(op: str) -> Any:
    """Return the aten operation of a name such as "aten.addmm.default"."""
    space, _, rest = op.partition(".")
    name, _, overload = rest.partition(".")
    packet = getattr(torch.ops.aten, name, None) if name.isidentifier() else None
    known: Sequence[str] = ()
    if isinstance(packet, torch._ops.OpOverloadPacket):
        known = packet.overloads()  # type: ignore[no-untyped-call]  # untyped in torch
    if space != "aten" or overload not in known:
        raise RunError(f"expected an operation as aten.name.overload, got {op!r}")
    return getattr(packet, overload)


def _describe(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, Tensor):
        return {"tensor": describe_tensor(value)}
    if isinstance(value, list | tuple):
        return [_describe(item) for item in value]
    kind = _TYPES.get(type(value))
    name = str(value).removeprefix("torch.")
    if kind is None or name not in _NAMED[kind]:
        raise RunError(f"an argument {value!r} cannot be sent: execute the whole step")
    return {kind: name}


def _read(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, list):
        return [_read(item) for item in value]
    ((kind, content),) = value.items()
    if kind == "float":
        return float.fromhex(content)
    if kind == "tensor":
        return read_tensor(content)
    return _NAMED[kind][content]


def _drop_elements(value: Any) -> Any:
    """Return an argument with tensors that have a shape and no elements."""
    if isinstance(value, Tensor):
        return value.to("meta")
    if isinstance(value, list):
        return [_drop_elements(item) for item in value]
    return value
