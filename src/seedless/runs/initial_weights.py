"""Begin a run with the weights of a file: which tensors are taken, which are initialized.

    match_tensors -> copy the tensors -> initialize the rest -> what the receipt says of the file

Every tensor of the model must be in the file with its shape, or be named by `init.reinitialize`;
nothing is left out silently, and the model is not changed before all tensors were compared.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from seedless.core.bounded_reading import shorten
from seedless.core.config import InitConfig
from seedless.core.digests import digest_each, digest_value, name_tensors
from seedless.core.display import escape_text
from seedless.core.errors import InitError
from seedless.core.tensor_files import load_tensors
from seedless.core.weights_file import find_weights, hash_weights
from seedless.init.initialization import fill_parameters, make_plan
from seedless.init.plan import Plan

_SHOWN_TENSORS = 5  # of a list of problems
# What a dtype is converted to without rounding.
_WIDER = {
    torch.float16: (torch.float32, torch.float64),
    torch.bfloat16: (torch.float32, torch.float64),
    torch.float32: (torch.float64,),
}


@dataclass(frozen=True)
class Match:
    """Where each tensor of a model gets its first values; each name is in one of the lists.

    Attributes:
        taken: from the file.
        started: parameters that `init.basis` initializes, and running statistics that are reset.
        kept: buffers that stay as the model makes them.
    """

    taken: tuple[str, ...]
    started: tuple[str, ...]
    kept: tuple[str, ...]


def begin_with_file(init: InitConfig, model: nn.Module) -> tuple[Plan | None, dict[str, Any]]:
    """Copy the weights of a file into a model, and initialize the tensors that are to be new.

    Args:
        init: with the path of the file and its digest, as `pin_weights` returns it.
        model: its parameters may hold anything.

    Returns:
        the plan of what was initialized, None where nothing was, and "file" of the receipt.
    """
    assert init.weights is not None
    path = find_weights(init.weights)
    # [Step 1] Compare names, shapes and dtypes; the model is not changed before all of them fit.
    values, _ = load_tensors(path)
    match = match_tensors(model, values, init.reinitialize or (), str(path))
    plan = None
    started = {*match.started}
    parameters = [name for name, _ in model.named_parameters() if name in started]
    if parameters:
        plan = make_plan(model, **init.start(), only=parameters)
    # [Step 2] Copy what the file has, and initialize the rest.
    tensors = name_tensors(model)
    with torch.no_grad():
        for name in match.taken:
            if name in values:
                tensors[name].copy_(values[name])
    if plan is not None:
        fill_parameters(model, plan)
    _reset_statistics(model, started)
    # [Step 3] The tensors were read after the file was hashed: it must still be that file.
    if hash_weights(path) != init.weights_digest:
        raise InitError(f"{path} was changed while it was read; start again")
    taken = {f"model/{name}": tensors[name] for name in match.taken}
    return plan, {
        "name": path.name,
        "digest": init.weights_digest,
        "tensors": digest_value(digest_each(taken)),
        "taken": list(match.taken),
        "started": list(match.started),
        "kept": list(match.kept),
    }


def use_recorded_name(start: Mapping[str, Any], recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Return "initialization" of a receipt with the recorded name of the weights file.

    The name is for people: a file that was renamed is still the same file, by its digest.
    """
    named = (recorded.get("file") or {}).get("name")
    if "file" not in start or named is None:
        return dict(start)
    return {**start, "file": {**start["file"], "name": named}}


def match_tensors(
    model: nn.Module, values: Mapping[str, Tensor], patterns: Sequence[str], where: str
) -> Match:
    """Return which tensors of a model a file provides; refuse a file that does not fit.

    Args:
        model: the network.
        values: the tensors of the file by name.
        patterns: names, with `*` and `?`, that are not taken from the file.
        where: the file, for messages.
    """
    tensors = name_tensors(model)
    listed = {name for name in {*tensors, *values} if is_listed(name, patterns)}
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in listed):
            raise InitError(
                f"init.reinitialize: {pattern!r} names no tensor of the model and none of {where}; "
                f"the model has {_show(sorted(tensors))}"
            )
    # [Step 1] A tensor with two names may be in the file under either; most files lack buffers that
    # a state dict leaves out, and those stay as the model makes them.
    twins: dict[int, list[str]] = {}
    for name, tensor in tensors.items():
        twins.setdefault(id(tensor), []).append(name)
    optional = _list_unsaved_buffers(model)
    parameters = dict(model.named_parameters(remove_duplicate=False))
    taken: list[str] = []
    started: list[str] = []
    kept: list[str] = []
    missing: list[str] = []
    for names in twins.values():
        if {*names} <= listed:
            is_started = names[0] in parameters or _is_statistic(model, names[0])
            (started if is_started else kept).extend(names)
        elif {*names} & listed:
            raise InitError(
                f"{' and '.join(names)} are one tensor, and init.reinitialize names only one of "
                "them: name both, or neither"
            )
        elif any(name in values for name in names):
            taken += names
        elif names[0] in optional:
            kept += names
        else:
            missing.append(names[0])
    # [Step 2] Refuse, with what was expected and what was found.
    extra = sorted({*values} - {*tensors} - listed)
    _refuse_shapes(
        where, missing, extra, tensors, {n: values[n] for n in values if n not in listed}
    )
    for names in twins.values():
        if names[0] not in listed:
            _check_values(where, tensors, values, [name for name in names if name in values])
    frozen = [n for n in started if n in parameters and not parameters[n].requires_grad]
    if frozen:
        raise InitError(
            f"{_show(frozen)}: frozen (requires_grad is off), and init.reinitialize asks to "
            "initialize it; unfreeze it, or take it from the file"
        )
    if not taken:
        raise InitError(f"init.reinitialize leaves nothing to take from {where}: leave both out")
    return Match(tuple(sorted(taken)), tuple(sorted(started)), tuple(sorted(kept)))


def _refuse_shapes(
    where: str,
    missing: Sequence[str],
    extra: Sequence[str],
    tensors: Mapping[str, Tensor],
    values: Mapping[str, Tensor],
) -> None:
    """Refuse tensors that the file lacks, has in another shape, or that the model does not have."""
    other = [n for n in tensors if n in values and tensors[n].shape != values[n].shape]
    found = [
        *(f"expected {name} {tuple(tensors[name].shape)}, got none" for name in missing),
        *(
            f"expected {name} {tuple(tensors[name].shape)}, got {tuple(values[name].shape)}"
            for name in other
        ),
        *(f"got {name} {tuple(values[name].shape)}, which the model lacks" for name in extra),
    ]
    if found:
        owners = {name.rpartition(".")[0] for name in (*missing, *other, *extra)}
        patterns = [f"{owner}.*" if owner else "*" for owner in sorted(owners)]
        advice = f", such as {json.dumps(patterns)}" if len(owners) <= _SHOWN_TENSORS else ""
        raise InitError(
            f"{where} does not fit the model: {_show(found, '; ')}. Rename the tensors in the "
            "file, or name those that are not to be taken from it in init.reinitialize (in "
            f"Python: reinitialize=){advice}"
        )


def _check_values(
    where: str, tensors: Mapping[str, Tensor], values: Mapping[str, Tensor], names: Sequence[str]
) -> None:
    """Refuse values of a dtype that does not fit, or that are not finite.

    ``names``: the names of one tensor in the file. Under each of them it must hold the same.
    """
    for name in names:
        expected, found = tensors[name].dtype, values[name]
        if expected not in (found.dtype, *_WIDER.get(found.dtype, ())):
            raise InitError(
                f"{where}: expected {name} as {expected}, got {found.dtype}, which cannot be "
                "converted without rounding: convert the file first"
            )
        if found.is_floating_point() and not found.isfinite().all():
            raise InitError(f"{where}: {name} holds NaN or infinity; get the file again")
        if not torch.equal(found, values[names[0]]):
            raise InitError(
                f"{where}: {names[0]} and {name} are one tensor of the model, and differ here"
            )


def is_listed(name: str, patterns: Sequence[str]) -> bool:
    """Whether one of the patterns of `init.reinitialize` matches the name of a tensor."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _list_unsaved_buffers(model: nn.Module) -> set[str]:
    """Return the names of the buffers that a state dict leaves out."""
    return {
        f"{name}.{buffer}" if name else buffer
        for name, module in model.named_modules(remove_duplicate=False)
        for buffer in module._non_persistent_buffers_set
    }


def _is_statistic(model: nn.Module, name: str) -> bool:
    """Whether a buffer is a running statistic of a norm layer, which has known initial values."""
    return isinstance(model.get_submodule(name.rpartition(".")[0]), _NormBase)


@torch.no_grad()
def _reset_statistics(model: nn.Module, names: Collection[str]) -> None:
    """Reset running statistics as `reset_running_stats` does, but these alone."""
    for name, buffer in model.named_buffers(remove_duplicate=False):
        if name in names:
            buffer.fill_(1 if name.endswith("running_var") else 0)


def _show(names: Sequence[str], separator: str = ", ") -> str:
    more = f" and {len(names) - _SHOWN_TENSORS} more" if len(names) > _SHOWN_TENSORS else ""
    shown = (shorten(escape_text(name)) for name in names[:_SHOWN_TENSORS])
    return f"{separator.join(shown)}{more}"
