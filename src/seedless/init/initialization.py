"""Initialize any nn.Module without a seed: rules and marks -> plan -> values.

The plan is complete before any parameter changes, so an error leaves the model as it was.
"""

import math
from dataclasses import replace
from numbers import Real

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.conv import _ConvNd

from seedless.core.errors import InitError
from seedless.core.marks import HEADS, read_marks, read_stages
from seedless.core.registry import choose
from seedless.init.bases import BASES
from seedless.init.etf_head import simplex_etf
from seedless.init.layer_weights import default_sigma, fan_in
from seedless.init.parameter_rules import NORM_LAYERS, assign_rules
from seedless.init.plan import Plan, PlanRow
from seedless.numerics.counter_random import split_uint64

MIXED = ("dct", "hadamard", "hartley", "dct")  # the basis of each stage for "mixed"
CONTROLS = {"kaiming": "uniform", "kaiming_normal": "normal"}  # the random controls and their rules
INITIALIZATIONS = {**dict.fromkeys(BASES), "mixed": None, **dict.fromkeys(CONTROLS)}
RESIDUAL_SCALE = 0.01


def initialize(
    model: nn.Module,
    basis: str = "dct",
    *,
    residual_scale: float | None = None,
    heads: str | None = None,
    seed: int | None = None,
) -> Plan:
    """Fill every parameter of ``model`` in place, and return the plan that was followed.

    The bits depend on the plan alone: not on threads, SIMD level, device or libraries. No forward
    pass runs and no random generator is used. Running statistics of norm layers are reset; other
    buffers stay as they are, and the plan lists them.

    Args:
        basis: dct, hadamard, hartley, sinusoidal, walsh, mixed (by declared stage), or one of the
            random controls kaiming and kaiming_normal.
        residual_scale: factor on declared residual exits, 0.01 by default.
        heads: "etf" or "basis" for all declared heads; by default as each is declared.
        seed: for the random controls alone, 0 by default.

    Example:
        >>> plan = seedless.initialize(model, "dct")
        >>> print(plan.digest)
    """
    plan = make_plan(model, basis, residual_scale=residual_scale, heads=heads, seed=seed)
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        for name, values in plan.tensors().items():
            parameters[name].copy_(torch.from_numpy(values))
    for module in model.modules():
        if isinstance(module, _NormBase):
            module.reset_running_stats()
    return plan


def make_plan(
    model: nn.Module,
    basis: str = "dct",
    *,
    residual_scale: float | None = None,
    heads: str | None = None,
    seed: int | None = None,
) -> Plan:
    """Return the plan that `initialize` would follow; the model is not changed."""
    choose("basis", basis, INITIALIZATIONS)
    _check_arguments(basis, residual_scale, heads, seed)
    _check_marks(model, heads)
    default_scale = RESIDUAL_SCALE if residual_scale is None else float(residual_scale)
    stages = read_stages(model)
    modules = dict(model.named_modules())
    rows = []
    for owner, name, parameter, rule in assign_rules(model):
        # [Step 1] The row of a constant, with the layout that the other kinds of rows share.
        marks, stage = read_marks(modules[owner]), stages[owner]
        row = PlanRow(
            name,
            tuple(parameter.shape),
            "constant",
            stage=stage or 0,
            filters=rule.filters,
            value=rule.value,
            transposed_groups=rule.transposed_groups,
            zero_row=rule.zero_row,
        )
        # [Step 2] Random controls, then constants, ETF heads and all other weights.
        if basis in CONTROLS:
            row = _plan_random(row, CONTROLS[basis], rule.bias_fan_in, seed or 0)
        elif rule.filters is not None and (marks.head and (heads or marks.head)) == "etf":
            row = _plan_etf_head(row)
        elif rule.filters is not None:
            scale = default_scale if marks.residual_exit else 1.0
            row = _plan_filters(row, _choose_basis(basis, name, stage), scale)
        rows.append(row)
    return Plan(basis, tuple(rows), _list_kept_buffers(model))


def _plan_filters(row: PlanRow, basis: str, scale: float) -> PlanRow:
    assert row.filters is not None
    return replace(
        row,
        rule="filters",
        value=None,
        basis=basis,
        fan_in=fan_in(row.filters),
        sigma=scale * default_sigma(row.filters),
        scale=scale,
    )


def _plan_etf_head(row: PlanRow) -> PlanRow:
    if len(row.shape) != 2:
        raise InitError(
            f"{row.parameter} has shape {row.shape}; an equiangular frame needs a Linear head"
        )
    simplex_etf(*row.shape)  # raises, before anything is filled, where no such frame exists
    return replace(row, rule="frame", value=None)


def _plan_random(row: PlanRow, rule: str, bias_fan_in: int | None, seed: int) -> PlanRow:
    """Return the row of a random control; constants stay, and so do biases of "normal"."""
    features = bias_fan_in if row.filters is None else fan_in(row.filters)
    if features is None or (row.filters is None and rule == "normal"):
        return row
    sigma = 1.0 / math.sqrt(3 * features) if rule == "uniform" else math.sqrt(2.0 / features)
    return replace(row, rule=rule, value=None, fan_in=features, sigma=sigma, seed=seed)


def _list_kept_buffers(model: nn.Module) -> tuple[str, ...]:
    """Return the names of the buffers that are not reset: all but those of norm layers."""
    norms = {name for name, module in model.named_modules() if isinstance(module, _NormBase)}
    names = (name for name, _ in model.named_buffers())
    return tuple(name for name in names if name.rpartition(".")[0] not in norms)


def _choose_basis(basis: str, parameter: str, stage: int | None) -> str:
    if basis != "mixed":
        return basis
    if stage is None:
        raise InitError(
            f"mixed chooses the basis by stage, and {parameter} is in none: declare it with "
            "seedless.mark(module, stage=0..3), or use a single basis such as 'dct'"
        )
    return MIXED[stage]


def _check_marks(model: nn.Module, heads: str | None) -> None:
    """Refuse a mark on a module to which it cannot apply."""
    has_head = False
    for name, module in model.named_modules():
        marks = read_marks(module)
        single = isinstance(module, _ConvNd | nn.Linear | nn.Bilinear)
        where = f"{name or 'the model'} ({type(module).__name__})"
        if (marks.residual_exit or marks.head) and not single:
            what = "residual_exit" if marks.residual_exit else "head"
            raise InitError(
                f"{where} is marked {what}, but only a convolution or a Linear can be one; mark "
                "the layer inside it (of a MultiheadAttention, its out_proj)"
            )
        if marks.zero_gain and not isinstance(module, NORM_LAYERS):
            raise InitError(
                f"{where} is marked zero_gain, but it is not a norm layer: mark the norm itself"
            )
        has_head = has_head or marks.head is not None
    if heads == "etf" and not has_head:
        raise InitError('heads="etf" needs a declared head: seedless.mark(layer, head="etf")')


def _check_arguments(
    basis: str, residual_scale: float | None, heads: str | None, seed: int | None
) -> None:
    if heads is not None and heads not in HEADS:
        raise InitError(f"expected heads to be one of {', '.join(HEADS)}, got {heads!r}")
    if residual_scale is not None and not (
        isinstance(residual_scale, Real)
        and not isinstance(residual_scale, bool)
        and 0 <= residual_scale <= 1e6
    ):
        raise InitError(
            f"expected residual_scale to be a number from 0 to 1e6, got {residual_scale!r}"
        )
    if basis in CONTROLS:
        split_uint64(0 if seed is None else seed)
        if residual_scale is not None or heads == "etf":
            raise InitError(f"{basis} is a random control: it takes no residual_scale and no ETF")
    elif seed is not None:
        raise InitError(f"{basis} has no seed; only {' and '.join(CONTROLS)} take one")
