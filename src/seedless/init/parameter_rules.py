"""The rule by which each parameter is filled: as the model declares, or by layer type.

A layer type of torch has rules for its own parameters, by their exact names. Other modules are
looked at (`own_parameters`). A parameter without a rule is an error: nothing is guessed.
"""

import math
from collections.abc import Callable, Collection, Sequence

from torch import nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.conv import _ConvNd
from torch.nn.parallel import DistributedDataParallel
from torch.nn.parameter import UninitializedParameter

from seedless.core.errors import InitError
from seedless.core.marks import read_marks
from seedless.init.own_parameters import find_own_rules, suggest_claims
from seedless.init.rule import ParameterRule, Shape
from seedless.init.weight_norm import find_weight_norm_rules

FindRules = Callable[[nn.Module], dict[str, ParameterRule]]


def _convolution_rules(module: nn.Module) -> dict[str, ParameterRule]:
    assert isinstance(module, _ConvNd)
    shape = tuple(module.weight.shape)
    groups = 0
    if module.transposed:  # stored as (I, O / groups, *kernel)
        groups = module.groups
        shape = (shape[1] * groups, shape[0] // groups, *shape[2:])
    return _weight_and_bias(ParameterRule(filters=shape, transposed_groups=groups))


def _dense_rules(module: nn.Module) -> dict[str, ParameterRule]:
    return _weight_and_bias(ParameterRule(filters=_dense_shape(module, "weight")))


def _embedding_rules(module: nn.Module) -> dict[str, ParameterRule]:
    assert isinstance(module, nn.Embedding | nn.EmbeddingBag)
    return {
        "weight": ParameterRule(filters=_dense_shape(module, "weight"), zero_row=module.padding_idx)
    }


def _norm_rules(module: nn.Module) -> dict[str, ParameterRule]:
    gain = 0.0 if read_marks(module).zero_gain else 1.0
    return {"weight": ParameterRule(value=gain), "bias": ParameterRule()}


def _recurrent_rules(module: nn.Module) -> dict[str, ParameterRule]:
    """Return the rules of all layers and directions; gates are stacked along the first axis."""
    assert isinstance(module, nn.RNNBase)
    directions = ("", "_reverse") if module.bidirectional else ("",)
    suffixes = [
        f"_l{layer}{direction}" for layer in range(module.num_layers) for direction in directions
    ]
    return _gate_rules(module, suffixes, ("ih", "hh", "hr"))


def _cell_rules(module: nn.Module) -> dict[str, ParameterRule]:
    return _gate_rules(module, [""], ("ih", "hh"))


def _gate_rules(
    module: nn.Module, suffixes: Sequence[str], parts: Sequence[str]
) -> dict[str, ParameterRule]:
    rules: dict[str, ParameterRule] = {}
    own = dict(module.named_parameters(recurse=False))
    for suffix in suffixes:
        for part in parts:
            weight = own.get(f"weight_{part}{suffix}")
            if weight is not None:
                rules[f"weight_{part}{suffix}"] = ParameterRule(filters=tuple(weight.shape))
                rules[f"bias_{part}{suffix}"] = ParameterRule(bias_fan_in=weight.shape[1])
    return rules


def _attention_rules(module: nn.Module) -> dict[str, ParameterRule]:
    assert isinstance(module, nn.MultiheadAttention)
    weights = ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight")
    rules = {
        name: ParameterRule(filters=_dense_shape(module, name))
        for name in weights
        if getattr(module, name) is not None
    }
    biases = ("in_proj_bias", "bias_k", "bias_v")
    return rules | {name: ParameterRule(bias_fan_in=module.embed_dim) for name in biases}


def _prelu_rules(module: nn.Module) -> dict[str, ParameterRule]:
    return {"weight": ParameterRule(value=0.25)}


NORM_LAYERS = (_NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)
LAYER_RULES: dict[type[nn.Module], FindRules] = {
    _ConvNd: _convolution_rules,
    nn.Linear: _dense_rules,
    nn.Bilinear: _dense_rules,
    nn.Embedding: _embedding_rules,
    nn.EmbeddingBag: _embedding_rules,
    nn.MultiheadAttention: _attention_rules,
    nn.RNNBase: _recurrent_rules,
    nn.RNNCellBase: _cell_rules,
    **dict.fromkeys(NORM_LAYERS, _norm_rules),
    nn.PReLU: _prelu_rules,
}


Assignment = tuple[str, str, nn.Parameter, ParameterRule]


def assign_rules(
    model: nn.Module, keep: str | None = None, only: Collection[str] | None = None
) -> list[Assignment]:
    """Return (module name, parameter name, parameter, rule) for every parameter, in model order.

    A parameter shared by two modules has the rule of the first. ``keep`` "zeros": a parameter that
    is zero stays zero. ``only``: the names of the parameters that are asked for; the others need no
    rule.
    """
    seen: set[int] = set()
    without_rule: list[str] = []
    assigned: list[Assignment] = []
    for name, module in model.named_modules():
        _refuse_wrapper(name, module)
        own = dict(module.named_parameters(recurse=False))
        own = {key: parameter for key, parameter in own.items() if id(parameter) not in seen}
        seen |= {id(parameter) for parameter in own.values()}
        if only is not None:
            own = {key: own[key] for key in own if (f"{name}.{key}" if name else key) in only}
            if not own:
                continue
        for key, parameter in own.items():
            _check_parameter(f"{name}.{key}" if name else key, parameter)
        rules = _find_rules(model, name, module, list(own))
        for key, parameter in own.items():
            if key not in rules:
                without_rule.append(_explain(name, key, module, parameter))
                continue
            rule = _keep_zeros(parameter, rules[key]) if keep == "zeros" else rules[key]
            assigned.append((name, f"{name}.{key}" if name else key, parameter, rule))
    if without_rule:
        raise InitError("no rule for " + "\nand no rule for ".join(without_rule))
    if assigned and all(rule.kept == "frozen" for *_, rule in assigned):
        raise InitError(
            "nothing to initialize: every parameter is frozen (requires_grad is off); call "
            "model.requires_grad_() first, or leave the model as it is"
        )
    return assigned


def _keep_zeros(parameter: nn.Parameter, rule: ParameterRule) -> ParameterRule:
    """Return the rule that leaves a parameter zero, where it is zero and would be filled."""
    is_filled = not rule.kept and (rule.filters is not None or rule.value != 0)
    if is_filled and not parameter.detach().any():
        return ParameterRule(kept="zeros")
    return rule


def _refuse_wrapper(name: str, module: nn.Module) -> None:
    """Refuse a wrapped model: a wrapper renames parameters, and digests depend on their names."""
    wrapped = isinstance(module, nn.DataParallel | DistributedDataParallel)
    if wrapped or "_orig_mod" in module._modules:
        where = f"{name} is" if name else "the model is"
        raise InitError(
            f"{where} wrapped in {type(module).__name__}, which renames its parameters: "
            "initialize the model first, then wrap it"
        )


def _find_rules(
    model: nn.Module, name: str, module: nn.Module, own: list[str]
) -> dict[str, ParameterRule]:
    """Return the rules of a module's own parameters; declared ones first, then frozen ones."""
    claimed = _find_claimed_rules(module)
    frozen = [key for key in own if not module.get_parameter(key).requires_grad]
    rules = {
        **_find_layer_rules(module),
        **find_weight_norm_rules(name, module, model.get_submodule, _find_layer_rules),
        **dict.fromkeys(frozen, ParameterRule(kept="frozen")),
        **claimed,
    }
    missing = [key for key in own if key not in rules]
    return {**rules, **find_own_rules(module, missing)} if missing else rules


def _find_layer_rules(module: nn.Module) -> dict[str, ParameterRule]:
    for layer in type(module).__mro__:
        if layer in LAYER_RULES:
            return LAYER_RULES[layer](module)
    return {}


def _find_claimed_rules(module: nn.Module) -> dict[str, ParameterRule]:
    rules: dict[str, ParameterRule] = {}
    for name, rule in read_marks(module).claims.items():
        if name not in dict(module.named_parameters(recurse=False)):
            raise InitError(
                f"a rule is declared for {name!r}, which {type(module).__name__} does not have"
            )
        if rule == "filters":
            rules[name] = ParameterRule(filters=_dense_shape(module, name))
        else:
            rules[name] = ParameterRule(value=1.0 if rule == "ones" else 0.0)
    return rules


def _weight_and_bias(weight: ParameterRule) -> dict[str, ParameterRule]:
    assert weight.filters is not None
    return {"weight": weight, "bias": ParameterRule(bias_fan_in=math.prod(weight.filters[1:]))}


def _dense_shape(module: nn.Module, name: str) -> Shape:
    """Return a parameter's shape as that of a dense layer's weight, (O, F)."""
    parameter = getattr(module, name)
    if parameter.dim() < 2:
        raise InitError(
            f"{name!r} of {type(module).__name__} has shape {tuple(parameter.shape)}; the rule "
            '"filters" needs two axes or more: declare "zeros" or "ones"'
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
    first, *others = suggest_claims(module, own)
    return (
        f"{full!r} of shape {tuple(parameter.shape)} in {type(module).__name__}; declare one: "
        f'seedless.mark({path}, claims={{"{own}": "{first}"}}), or '
        + ", or ".join(f'"{other}"' for other in others)
    )
