"""Fill any nn.Module without a seed: claims and marks -> plan -> values."""

from __future__ import annotations

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
from seedless.init.layer_weights import default_sigma
from seedless.init.parameter_rules import NORMS, ParameterRule, assign_rules
from seedless.init.plan import Plan, Row
from seedless.numerics.counter_random import split_uint64

MIXED = ("dct", "hadamard", "hartley", "dct")  # by stage
CONTROLS = {"kaiming": "uniform", "kaiming_normal": "normal"}  # the random ones, by their rule
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
    """Fill every parameter of ``model`` in place and return the plan that was followed.

    The bits depend on nothing but the plan: not on threads, SIMD level, device or libraries. No
    forward pass is run and no generator is touched. Running statistics of norms are reset; other
    buffers stay as they are, and the plan names them.

    Args:
        basis: dct, hadamard, hartley, sinusoidal, walsh, mixed (by declared stage), or one of the
            random controls kaiming and kaiming_normal.
        residual_scale: factor on declared residual exits, 0.01 unless given.
        heads: "etf" or "basis" for all declared heads; as each is declared unless given.
        seed: for the random controls alone, 0 unless given.
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
    """Return the plan `initialize` would follow, and touch nothing."""
    choose("basis", basis, INITIALIZATIONS)
    _check_arguments(basis, residual_scale, heads, seed)
    _check_marks(model, heads)
    alpha = RESIDUAL_SCALE if residual_scale is None else float(residual_scale)
    stages = read_stages(model)
    modules = dict(model.named_modules())
    rows = []
    for owner, name, parameter, claim in assign_rules(model):
        marks, stage = read_marks(modules[owner]), stages[owner]
        row = Row(name, tuple(parameter.shape), "constant", stage=stage or 0, value=claim.value)
        if basis in CONTROLS:
            rows.append(_plan_control(row, claim, CONTROLS[basis], seed or 0))
        elif claim.filters is None:
            rows.append(row)
        elif marks.head is not None and (heads or marks.head) == "etf":
            rows.append(_plan_frame(row))
        else:
            scale = alpha if marks.residual_exit else 1.0
            rows.append(_plan_filters(row, claim, _basis_for(basis, name, stage), scale))
    return Plan(basis, tuple(rows), _kept_buffers(model))


def _plan_filters(row: Row, claim: ParameterRule, basis: str, scale: float) -> Row:
    assert claim.filters is not None
    return replace(
        row,
        rule="filters",
        value=None,
        basis=basis,
        filters=claim.filters,
        fan_in=math.prod(claim.filters[1:]),
        sigma=scale * default_sigma(claim.filters),
        scale=scale,
        transposed_groups=claim.transposed_groups,
        zero_row=claim.zero_row,
    )


def _plan_frame(row: Row) -> Row:
    if len(row.shape) != 2:
        raise InitError(
            f"{row.parameter} has shape {row.shape}; an equiangular frame needs a Linear head"
        )
    simplex_etf(*row.shape)  # refuses what has no frame before anything is filled
    return replace(row, rule="frame", value=None, filters=row.shape)


def _plan_control(row: Row, claim: ParameterRule, rule: str, seed: int) -> Row:
    features = math.prod(claim.filters[1:]) if claim.filters else claim.companion
    if features is None or (claim.filters is None and rule == "normal"):
        return row
    spread = 1.0 / math.sqrt(3 * features) if rule == "uniform" else math.sqrt(2.0 / features)
    return replace(
        row,
        rule=rule,
        value=None,
        filters=claim.filters,
        fan_in=features,
        sigma=spread,
        seed=seed,
        transposed_groups=claim.transposed_groups,
        zero_row=claim.zero_row,
    )


def _kept_buffers(model: nn.Module) -> tuple[str, ...]:
    """Return the buffers nobody resets: they hold what the model's author put there."""
    norms = {name for name, module in model.named_modules() if isinstance(module, _NormBase)}
    names = (name for name, _ in model.named_buffers())
    return tuple(name for name in names if name.rpartition(".")[0] not in norms)


def _basis_for(basis: str, parameter: str, stage: int | None) -> str:
    if basis != "mixed":
        return basis
    if stage is None:
        raise InitError(
            f"mixed picks the basis by stage, and {parameter} is in none: declare it with "
            "seedless.mark(module, stage=0..3), or use a single basis such as 'dct'"
        )
    return MIXED[stage]


def _check_marks(model: nn.Module, heads: str | None) -> None:
    """Refuse a mark on a module that has nothing of its own for it to act on."""
    declared = False
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
        if marks.zero_gain and not isinstance(module, NORMS):
            raise InitError(f"{where} is marked zero_gain, but it is no norm: mark the norm itself")
        declared = declared or marks.head is not None
    if heads == "etf" and not declared:
        raise InitError('heads="etf" needs a declared head: seedless.mark(layer, head="etf")')


def _check_arguments(
    basis: str, residual_scale: float | None, heads: str | None, seed: int | None
) -> None:
    if heads is not None and heads not in HEADS:
        raise InitError(f"heads is one of {', '.join(HEADS)}, got {heads!r}")
    if residual_scale is not None and not (
        isinstance(residual_scale, Real)
        and not isinstance(residual_scale, bool)
        and 0 <= residual_scale <= 1e6
    ):
        raise InitError(f"residual_scale is a number from 0 to 1e6, got {residual_scale!r}")
    if basis in CONTROLS:
        split_uint64(0 if seed is None else seed)
        if residual_scale is not None or heads == "etf":
            raise InitError(f"{basis} is the plain control: it takes no residual_scale and no ETF")
    elif seed is not None:
        raise InitError(f"{basis} has no seed; only {' and '.join(CONTROLS)} take one")
