"""Rules for parameters of modules that are not layers of torch: by what the module does with them.

1. A norm layer, recognized by running it on a few numbers: gain and bias are neutral.
2. A parameter that the module's code sets to one number other than zero: it keeps that number.
3. What the module's code computes with it: a weight, a bias, a token, a table of positions.
4. A parameter that the module's code sets to zero, or computes from a range: it keeps its values.

Where none of them applies there is no rule: nothing is guessed from names or shapes alone.
"""

import math

import torch
from torch import nn

from seedless.init.constructor_code import is_set_to_a_constant, is_set_to_a_table
from seedless.init.einsum_axes import find_layout
from seedless.init.norm_probe import find_norm_values
from seedless.init.parameter_use import find_uses
from seedless.init.rule import ParameterRule, Shape
from seedless.init.value_flow import Use

POSITION_SPREAD = 0.02  # the standard deviation of tables of positions
_INPUTS = {"joined", "substituted", "passed"}  # what is done with a vector that is like an input


def find_own_rules(module: nn.Module, names: list[str]) -> dict[str, ParameterRule]:
    """Return rules for those of the named parameters of a module that it can be known for."""
    norm = find_norm_values(module)
    rules: dict[str, ParameterRule] = {}
    for name in names:
        if name in norm:
            rules[name] = ParameterRule(value=norm[name])
            continue
        rule = _find_rule(module, name)
        if rule is not None:
            rules[name] = rule
    return rules


def _find_rule(module: nn.Module, name: str) -> ParameterRule | None:
    parameter = module.get_parameter(name)
    constant = _find_constant(module, name, parameter)
    if constant is not None and constant.value != 0:
        return constant
    by_use = _rule_by_use(_find_uses(module, name), tuple(parameter.shape))
    if by_use or constant:
        return by_use or constant
    if is_set_to_a_table(type(module), name):
        return ParameterRule(kept="table")
    return None


def _find_uses(module: nn.Module, name: str) -> frozenset[Use]:
    kind: type = type(module)
    return find_uses(kind, name)


def _find_constant(module: nn.Module, name: str, parameter: nn.Parameter) -> ParameterRule | None:
    """Return the number that the module sets a parameter to, if it still holds that number."""
    values = parameter.detach()
    first = values.flatten()[0]
    if not bool(torch.isfinite(first)) or not bool((values == first).all()):
        return None
    if not is_set_to_a_constant(type(module), name):
        return None
    return ParameterRule(value=float(first), kept="constant")


def _rule_by_use(uses: frozenset[Use], shape: Shape) -> ParameterRule | None:
    if uses and all(use.operation == "einsum" for use in uses):
        return _einsum_rule(uses, shape)
    uses = frozenset(use for use in uses if use.operation != "einsum")
    operations = {use.operation for use in uses}
    is_indexed = any(use.indexed for use in uses)
    is_table = math.prod(shape) > max(shape, default=1)  # more than one vector
    if operations == {"weight"}:
        return _dense_rule(uses, shape)
    if operations == {"kernel"} and len(shape) > 2:
        return ParameterRule(filters=shape)
    if operations == {"table"} and len(shape) == 2:
        return ParameterRule(filters=shape)
    if operations == {"bias"}:
        return ParameterRule()
    if "added" in operations and is_indexed and operations <= {"added", "multiplied", *_INPUTS}:
        return ParameterRule()  # numbers that an index picks, added to scores: relative positions
    if operations and operations <= {"added", *_INPUTS}:
        return _position_rule(shape) if is_table else ParameterRule()
    return None


def _dense_rule(uses: frozenset[Use], shape: Shape) -> ParameterRule | None:
    """Return the rule of a weight (O, I), or of a stack (E, O, I) of which an index picks one."""
    is_stack = {use.indexed for use in uses}
    is_transposed = {use.transposed for use in uses}
    if len(is_stack) > 1 or len(is_transposed) > 1 or len(shape) != (3 if True in is_stack else 2):
        return None
    count = shape[0] if True in is_stack else 1
    if True in is_transposed:  # stored as (I, O)
        return ParameterRule(filters=(count * shape[-1], shape[-2]), transposed_groups=count)
    return ParameterRule(filters=(count * shape[-2], shape[-1]))


def _einsum_rule(uses: frozenset[Use], shape: Shape) -> ParameterRule | None:
    """Return the rule of a weight of dense layers that has the same layout in every einsum."""
    layouts = {find_layout(use.axes, shape) for use in uses}
    layout = layouts.pop() if len(layouts) == 1 else None
    if layout is None:
        return None
    filters = (layout.layers * layout.outputs, layout.inputs)
    return ParameterRule(filters, transposed_groups=layout.layers if layout.inputs_first else 0)


def _position_rule(shape: Shape) -> ParameterRule:
    """Return the rule of a table of vectors: rows of the basis, of the spread of such tables.

    A table may be stored as (positions, features) or (features, positions), each over several axes:
    the axes are divided where both parts are largest.
    """
    divisions = [
        (math.prod(shape[:axis]), math.prod(shape[axis:])) for axis in range(1, len(shape))
    ]
    return ParameterRule(filters=max(divisions, key=min), spread=POSITION_SPREAD)


def suggest_claims(module: nn.Module, name: str) -> list[str]:
    """Return the claims for a parameter without a rule, the most likely first.

    A parameter that multiplies its input is offered ones before zeros; a weight is offered filters
    first.
    """
    operations = {use.operation for use in _find_uses(module, name)}
    claims = ["zeros", "ones"]
    if "multiplied" in operations:
        claims = ["ones", "zeros"]
    if module.get_parameter(name).dim() < 2:
        return claims
    return (
        ["filters", *claims]
        if operations & {"weight", "kernel", "table", "einsum"}
        else [*claims, "filters"]
    )
