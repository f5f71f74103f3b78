"""What one line of a recorded loop holds: tensors by name, rates, schedulers, scalers, generators.

The names do not depend on how a model is wrapped: torch.compile, DistributedDataParallel, FSDP and
activation checkpointing add prefixes, which are removed. Of a sharded tensor (DTensor, FSDP2) the
shard of this process is recorded.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parallel import DataParallel, DistributedDataParallel

from seedless.core.digests import digest_each, name_tensors
from seedless.core.errors import RunError
from seedless.core.plain_values import describe_value, digest_structure

Models = nn.Module | Mapping[str, nn.Module] | Sequence[nn.Module]
Optimizers = Any  # torch.optim.Optimizer or a wrapper of one, a dict or a list of them, or None

# Prefixes of modules that wrap another one: torch.compile, FSDP, activation checkpointing.
_WRAPPERS = ("_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module.")


def name_parts(kind: str, given: Any) -> dict[str, Any]:
    """Return what was given as one part or several by name: {"optimizer": ...} or {"optimizer.0"}.

    >>> name_parts("optimizer", ["a", "b"])
    {'optimizer.0': 'a', 'optimizer.1': 'b'}
    """
    if given is None:
        return {}
    if isinstance(given, Mapping) and not isinstance(given, nn.Module):
        return {f"{kind}.{name}": part for name, part in given.items()}
    if isinstance(given, list | tuple):
        return {f"{kind}.{place}": part for place, part in enumerate(given)}
    return {kind: given}


def name_model_tensors(models: Models) -> dict[str, Tensor]:
    """Return every parameter and buffer by its name in the eager, unwrapped model.

    Tensors of several models have the model's name or place before their own: "G.weight".
    """
    named: dict[str, Tensor] = {}
    for part, model in name_parts("", models).items():
        if not isinstance(model, nn.Module):
            raise RunError(
                "expected a model, or a dict or list of models, each a torch.nn.Module; got a "
                f"{type(model).__name__}"
            )
        before = f"{part[1:]}." if part else ""
        for name, tensor in name_tensors(_unwrap(model)).items():
            named[before + _remove_wrappers(name)] = tensor
    return named


def describe_parts(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a line that are read from models, optimizers and all that is recorded.

    ``parts`` has the keys "model", "optimizer", "scheduler", "scaler", "sampler", "generators".
    """
    return {
        "state": digest_state(parts["model"], parts["optimizer"]),
        "rate": read_rates(parts["optimizer"]),
        "options": digest_options(parts["optimizer"]),
        "scheduler": digest_parts("scheduler", parts["scheduler"]),
        "scaler": describe_scalers(parts["scaler"]),
        "sampler": digest_parts("sampler", parts["sampler"]),
        "generators": digest_generators(parts["generators"]),
    }


def digest_state(models: Models, optimizers: Optimizers) -> dict[str, str]:
    """Return the digest of each tensor: "model/NAME" and "optimizer/FIELD/NAME".

    Of several optimizers the first word is "optimizer.KEY", with their key or place. A parameter
    that is in no model is named by its place in the optimizer: "group0.3".
    """
    tensors = name_model_tensors(models)
    names: dict[int, str] = {}
    for name, tensor in tensors.items():
        names.setdefault(id(tensor), name)
    state = {f"model/{name}": tensor for name, tensor in tensors.items()}
    for part, optimizer in name_parts("optimizer", optimizers).items():
        own = dict(names)
        for group_place, group in enumerate(optimizer.param_groups):
            for place, parameter in enumerate(group["params"]):
                if id(parameter) not in own:
                    own[id(parameter)] = f"group{group_place}.{place}"
                    state[f"{part}/parameter/{own[id(parameter)]}"] = parameter
        for key, fields in optimizer.state.items():
            name = own.get(id(key), str(key) if isinstance(key, str) else "other")
            for field, value in _list_fields("", fields):
                state[f"{part}/{field}/{name}"] = value
    return digest_each({n: p for name, value in state.items() for n, p in _list_plain(name, value)})


def read_rates(optimizers: Optimizers) -> dict[str, list[Any]]:
    """Return the learning rate of each parameter group of each optimizer."""
    return {
        part: [_read_number(group.get("lr")) for group in optimizer.param_groups]
        for part, optimizer in name_parts("optimizer", optimizers).items()
    }


def digest_options(optimizers: Optimizers) -> dict[str, str]:
    """Return one digest of all other options of each optimizer's groups: momentum, decay, ..."""
    return {
        part: digest_structure(
            [
                {key: value for key, value in group.items() if key not in ("params", "lr")}
                for group in optimizer.param_groups
            ]
        )
        for part, optimizer in name_parts("optimizer", optimizers).items()
    }


def describe_scalers(scalers: Any) -> dict[str, Any]:
    """Return the state of each gradient scaler as plain values, its scale among them."""
    return {
        name: describe_value(_read_state(scaler))
        for name, scaler in name_parts("scaler", scalers).items()
    }


def digest_parts(kind: str, parts: Any) -> dict[str, str]:
    """Return a digest of the state of each scheduler or sampler.

    The state is what `state_dict` returns; without that method, the numbers, text and generators
    among the attributes.
    """
    named = name_parts(kind, parts).items()
    return {name: digest_structure(_read_state(part)) for name, part in named}


def describe_loss(loss: Any) -> Any:
    """Return a loss, or a dict or list of losses, as plain numbers; "nan" and "inf" are text."""
    if isinstance(loss, Mapping):
        return {str(name): describe_loss(value) for name, value in loss.items()}
    if isinstance(loss, list | tuple):
        return [describe_loss(value) for value in loss]
    return _read_number(loss)


def digest_generators(others: Mapping[str, Any]) -> dict[str, str]:
    """Return a digest of the state of Python's, numpy's and torch's generators, and of others.

    Args:
        others: the user's own generators by name, of torch, of numpy, or `random.Random`.
    """
    states: dict[str, Any] = {
        "python": repr(random.getstate()),
        "numpy": np.random.get_state(legacy=False),
        "torch": torch.get_rng_state(),
    }
    # `is_initialized` is untyped in torch.
    if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        for index in range(torch.cuda.device_count()):
            states[f"cuda:{index}"] = torch.cuda.get_rng_state(index)
    states |= {name: _read_generator(generator) for name, generator in others.items()}
    return {name: digest_structure(state) for name, state in states.items()}


def _unwrap(model: nn.Module) -> nn.Module:
    """Return the model within torch.compile, DistributedDataParallel and DataParallel."""
    while True:
        if isinstance(model, DistributedDataParallel | DataParallel):
            model = model.module
        elif isinstance(inner := getattr(model, "_orig_mod", None), nn.Module):
            model = inner
        else:
            return model


def _remove_wrappers(name: str) -> str:
    for wrapper in _WRAPPERS:
        name = name.replace(wrapper, "")
    return name


def _list_fields(field: str, value: Any) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors and numbers of an optimizer's state: FIELD, FIELD.0, FIELD.KEY, ..."""
    before = f"{field}." if field else ""
    if isinstance(value, Tensor):
        yield field or "value", value
    elif isinstance(value, bool | int | float):
        yield field or "value", torch.tensor(value)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _list_fields(f"{before}{key}", item)
    elif isinstance(value, list | tuple):
        for place, item in enumerate(value):
            yield from _list_fields(f"{before}{place}", item)


def _list_plain(name: str, tensor: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Yield the dense tensors that a tensor consists of; a plain one is itself."""
    tensor = tensor.detach()
    local = getattr(tensor, "to_local", None)
    if local is not None:
        tensor = local()
        tensor = tensor.wait() if hasattr(tensor, "wait") else tensor  # a gather under way
    if tensor.is_meta:
        return
    if tensor.layout == torch.sparse_coo:
        whole = tensor.coalesce()
        yield f"{name}.indices", whole.indices()
        yield f"{name}.values", whole.values()
    elif tensor.layout != torch.strided or tensor.is_quantized:
        yield name, tensor.to_dense() if not tensor.is_quantized else tensor.int_repr()
    elif type(tensor) not in (Tensor, nn.Parameter) and hasattr(tensor, "__tensor_flatten__"):
        for inner in tensor.__tensor_flatten__()[0]:
            yield from _list_plain(f"{name}.{inner}", getattr(tensor, inner))
    else:
        yield name, tensor


def _read_number(value: Any) -> Any:
    """Return a number, or a tensor of one element, as a plain number; None stays None."""
    if isinstance(value, Tensor):
        value = value.detach()
        value = value.full_tensor() if hasattr(value, "full_tensor") else value
        value = value.item() if value.numel() == 1 else value
    return describe_value(value)


def _read_state(part: Any) -> Any:
    """Return what a scheduler, scaler or sampler would save, or its simple attributes."""
    if callable(read := getattr(part, "state_dict", None)):
        return read()
    kept = (bool, int, float, str, torch.Generator, np.random.Generator)
    return {
        name: _read_generator(value)
        for name, value in vars(part).items()
        if value is None or isinstance(value, kept)
    }


def _read_generator(value: Any) -> Any:
    """Return the state of a generator; any other value is returned as it is."""
    if isinstance(value, torch.Generator):
        return value.get_state()
    if isinstance(value, np.random.Generator):
        return value.bit_generator.state
    if isinstance(value, random.Random):
        return repr(value.getstate())
    return value
