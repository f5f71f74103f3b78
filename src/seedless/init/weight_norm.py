"""Weight normalization: a weight g v / |v|, v being the layer's weight and g its norms."""

from collections.abc import Callable

from torch import nn
from torch.nn.utils.parametrizations import _WeightNorm
from torch.nn.utils.parametrize import ParametrizationList
from torch.nn.utils.weight_norm import WeightNorm

from seedless.init.rule import ParameterRule

Rules = dict[str, ParameterRule]


def find_weight_norm_rules(
    name: str,
    module: nn.Module,
    find_module: Callable[[str], nn.Module],
    find_layer_rules: Callable[[nn.Module], Rules],
) -> Rules:
    """Return the rules of g and v in a module, which start as |v| and the layer's weight; or {}.

    Both forms are known: a list of parametrizations below the layer, and a hook on the layer.
    """
    if isinstance(module, ParametrizationList) and isinstance(module[0], _WeightNorm):
        layer, _, attribute = f".{name}".rpartition(".parametrizations.")
        weight = find_layer_rules(find_module(layer[1:])).get(attribute)
        return _pair("original0", "original1", weight) if len(module) == 1 else {}
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, WeightNorm):
            weight = find_layer_rules(module).get(hook.name)
            return _pair(f"{hook.name}_g", f"{hook.name}_v", weight)
    return {}


def _pair(norms: str, direction: str, weight: ParameterRule | None) -> Rules:
    if weight is None:
        return {}
    return {norms: ParameterRule(norms_of=direction), direction: weight}
