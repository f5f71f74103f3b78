"""Which rule claims which parameter: one table of layer types, then what the model declares.

A layer type claims its own parameters by their exact names; a parameter that nothing claims is an
error, and nothing is guessed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from torch import nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.conv import _ConvNd
from torch.nn.parallel import DistributedDataParallel
from torch.nn.parameter import UninitializedParameter

from seedless.core.errors import InitError
from seedless.core.marks import read_marks

Shape = tuple[int, ...]


@dataclass(frozen=True)
class ParameterRule:
    """How one parameter is filled.

    ``filters`` is the layer's weight as (O, I, *kernel), whatever the parameter's own layout; None
    for a constant. ``companion`` is the fan-in a random bias is scaled by.
    """

    filters: Shape | None = None
    value: float = 0.0
    transposed_groups: int = 0
    zero_row: int | None = None
    companion: int | None = None


Rules = Callable[[nn.Module], dict[str, ParameterRule]]


def _claim_conv(module: nn.Module) -> dict[str, ParameterRule]:
    assert isinstance(module, _ConvNd)
    shape = tuple(module.weight.shape)
    groups = 0
    if module.transposed:  # stored as (I, O / groups, *kernel)
        groups = module.groups
        shape = (shape[1] * groups, shape[0] // groups, *shape[2:])
    return _weight_and_bias(ParameterRule(filters=shape, transposed_groups=groups))


def _claim_dense(module: nn.Module) -> dict[str, ParameterRule]:
    return _weight_and_bias(ParameterRule(filters=_flat(module, "weight")))


def _claim_embedding(module: nn.Module) -> dict[str, ParameterRule]:
    assert isinstance(module, nn.Embedding | nn.EmbeddingBag)
    return {"weight": ParameterRule(filters=_flat(module, "weight"), zero_row=module.padding_idx)}


def _claim_norm(module: nn.Module) -> dict[str, ParameterRule]:
    gain = 0.0 if read_marks(module).zero_gain else 1.0
    return {"weight": ParameterRule(value=gain), "bias": ParameterRule()}


def _claim_recurrent(module: nn.Module) -> dict[str, ParameterRule]:
    """Matrices stack their gates along the first axis, (gates H, I); biases go with them."""
    assert isinstance(module, nn.RNNBase)
    ways = ("", "_reverse") if module.bidirectional else ("",)
    places = [f"_l{layer}{way}" for layer in range(module.num_layers) for way in ways]
    return _claim_gates(module, places, ("ih", "hh", "hr"))


def _claim_cell(module: nn.Module) -> dict[str, ParameterRule]:
    return _claim_gates(module, [""], ("ih", "hh"))


def _claim_gates(
    module: nn.Module, places: Sequence[str], parts: Sequence[str]
) -> dict[str, ParameterRule]:
    claims: dict[str, ParameterRule] = {}
    own = dict(module.named_parameters(recurse=False))
    for place in places:
        for part in parts:
            weight = own.get(f"weight_{part}{place}")
            if weight is not None:
                claims[f"weight_{part}{place}"] = ParameterRule(filters=tuple(weight.shape))
                claims[f"bias_{part}{place}"] = ParameterRule(companion=weight.shape[1])
    return claims


def _claim_attention(module: nn.Module) -> dict[str, ParameterRule]:
    assert isinstance(module, nn.MultiheadAttention)
    weights = ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight")
    claims = {
        name: ParameterRule(filters=_flat(module, name))
        for name in weights
        if getattr(module, name) is not None
    }
    biases = ("in_proj_bias", "bias_k", "bias_v")
    return claims | {name: ParameterRule(companion=module.embed_dim) for name in biases}


def _claim_prelu(module: nn.Module) -> dict[str, ParameterRule]:
    return {"weight": ParameterRule(value=0.25)}


NORMS = (_NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)
LAYERS: dict[type[nn.Module], Rules] = {
    _ConvNd: _claim_conv,
    nn.Linear: _claim_dense,
    nn.Bilinear: _claim_dense,
    nn.Embedding: _claim_embedding,
    nn.EmbeddingBag: _claim_embedding,
    nn.MultiheadAttention: _claim_attention,
    nn.RNNBase: _claim_recurrent,
    nn.RNNCellBase: _claim_cell,
    **dict.fromkeys(NORMS, _claim_norm),
    nn.PReLU: _claim_prelu,
}


def assign_rules(model: nn.Module) -> Iterator[tuple[str, str, nn.Parameter, ParameterRule]]:
    """Yield (module name, parameter name, parameter, claim) for every parameter, in model order.

    A parameter shared by two modules is claimed once, by the first.
    """
    seen: set[int] = set()
    unclaimed: list[str] = []
    found: list[tuple[str, str, nn.Parameter, ParameterRule]] = []
    for name, module in model.named_modules():
        _refuse_wrapper(name, module)
        parameters = {
            f"{name}.{own}" if name else own: (own, parameter)
            for own, parameter in module.named_parameters(recurse=False)
        }
        for full, (_, parameter) in parameters.items():
            _check_parameter(full, parameter)
        claims = _claims_of(module)
        for full, (own, parameter) in parameters.items():
            if id(parameter) in seen:
                continue
            seen.add(id(parameter))
            if own in claims:
                found.append((name, full, parameter, claims[own]))
            else:
                unclaimed.append(_explain(name, own, module, parameter))
    if unclaimed:
        raise InitError("no rule claims " + "\nand no rule claims ".join(unclaimed))
    yield from found


def _refuse_wrapper(name: str, module: nn.Module) -> None:
    """Wrapping changes every parameter's name, and names key the random controls and digests."""
    wrapped = isinstance(module, nn.DataParallel | DistributedDataParallel)
    if wrapped or "_orig_mod" in module._modules:
        where = f"{name} is" if name else "the model is"
        raise InitError(
            f"{where} wrapped in {type(module).__name__}, which renames its parameters: "
            "initialize the model first, then wrap it"
        )


def _claims_of(module: nn.Module) -> dict[str, ParameterRule]:
    claims: dict[str, ParameterRule] = {}
    for layer in type(module).__mro__:
        if layer in LAYERS:
            claims = LAYERS[layer](module)
            break
    for name, rule in read_marks(module).claims.items():
        if name not in dict(module.named_parameters(recurse=False)):
            raise InitError(
                f"a claim names {name!r}, but {type(module).__name__} has no such parameter"
            )
        if rule == "filters":
            claims[name] = ParameterRule(filters=_flat(module, name))
        else:
            claims[name] = ParameterRule(value=1.0 if rule == "ones" else 0.0)
    return claims


def _weight_and_bias(weight: ParameterRule) -> dict[str, ParameterRule]:
    assert weight.filters is not None
    return {"weight": weight, "bias": ParameterRule(companion=math.prod(weight.filters[1:]))}


def _flat(module: nn.Module, name: str) -> Shape:
    """Return a parameter's shape as a dense layer's (O, F)."""
    parameter = getattr(module, name)
    if parameter.dim() < 2:
        raise InitError(
            f"{name!r} of {type(module).__name__} has shape {tuple(parameter.shape)}; filters need "
            'two axes or more: claim it as "zeros" or "ones"'
        )
    return (parameter.shape[0], parameter[0].numel())


def _check_parameter(name: str, parameter: nn.Parameter) -> None:
    if isinstance(parameter, UninitializedParameter):
        raise InitError(f"{name} is lazy and has no shape yet: run the model once, then initialize")
    if parameter.is_meta:
        raise InitError(f"{name} has no data (meta device): call model.to_empty(device=...) first")
    if not parameter.is_floating_point():
        raise InitError(f"{name} is {parameter.dtype}; only floating-point parameters are filled")
    if parameter.numel() == 0:
        raise InitError(f"{name} has shape {tuple(parameter.shape)}: nothing to fill")


def _explain(name: str, own: str, module: nn.Module, parameter: nn.Parameter) -> str:
    full = f"{name}.{own}" if name else own
    path = f'model.get_submodule("{name}")' if name else "model"
    return (
        f"{full!r} of shape {tuple(parameter.shape)} in {type(module).__name__}; claim it: "
        f'seedless.mark({path}, claims={{"{own}": "zeros"}}), or "ones", or "filters"'
    )
