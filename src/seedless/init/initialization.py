"""Initialize any nn.Module without a seed: rules and marks -> plan -> values.

The plan is complete before any parameter changes, so an error leaves the model as it was.
"""

import math
from collections.abc import Collection
from dataclasses import replace
from numbers import Real

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.conv import _ConvNd

from seedless.core.digests import digest
from seedless.core.errors import InitError
from seedless.core.marks import HEADS, read_marks, read_stages
from seedless.core.registry import choose
from seedless.init.etf_head import simplex_etf
from seedless.init.layer_weights import default_sigma, fan_in
from seedless.init.parameter_rules import NORM_LAYERS, assign_rules
from seedless.init.plan import Plan, PlanRow
from seedless.init.starts import DEFAULT_START, INITIALIZATIONS, list_starts
from seedless.numerics.counter_random import split_uint64

MIXED = ("dct", "hadamard", "hartley", "dct")  # the basis of each stage for "mixed"


def initialize(
    model: nn.Module,
    basis: str = DEFAULT_START,
    *,
    residual_scale: float | None = None,
    heads: str | None = None,
    seed: int | None = None,
    offset: int = 0,
    keep: str | None = None,
) -> Plan:
    """Fill every parameter of ``model`` in place, and return the plan that was followed.

    The bits depend on the plan alone: not on threads, SIMD level, device or libraries. No forward
    pass runs and no random generator is used. Running statistics of norm layers are reset; other
    buffers stay as they are, and the plan lists them.

    Args:
        basis: canonical_kaiming, canonical_orthogonal or scrambled, which are drawn without a seed;
            dct, hadamard, hartley, sinusoidal, walsh or mixed (by declared stage); or one of the
            random controls kaiming, kaiming_normal and orthogonal, which take a seed.
        residual_scale: factor on the weights and biases of declared residual exits; by default 1
            for a start named after kaiming or orthogonal, 0.01 for the others.
        heads: "etf" for an equiangular frame, or "basis" to fill heads like any other layer; by
            default "basis" for a start named after kaiming or orthogonal, and for the others what
            each head declares.
        seed: for the random controls alone, 0 by default.
        offset: for the starts that are drawn without a seed: another number gives a replicate.
        keep: "zeros" leaves every parameter zero that is zero, such as the last layer of a residual
            branch that the model's author switched off; by default they are filled. Frozen
            parameters (requires_grad is off) are always left as they are.

    Example:
        >>> plan = seedless.initialize(model)
        >>> print(plan.digest)
    """
    plan = make_plan(
        model,
        basis,
        residual_scale=residual_scale,
        heads=heads,
        seed=seed,
        offset=offset,
        keep=keep,
    )
    fill_parameters(model, plan)
    for _, module in _list_reset_norms(model):
        module.reset_running_stats()
    return plan


@torch.no_grad()
def fill_parameters(model: nn.Module, plan: Plan) -> None:
    """Give the parameters that a plan fills their values; buffers are not changed."""
    parameters = dict(model.named_parameters())
    for name, values in plan.iterate_tensors():
        parameters[name].copy_(torch.from_numpy(values))


def make_plan(
    model: nn.Module,
    basis: str = DEFAULT_START,
    *,
    residual_scale: float | None = None,
    heads: str | None = None,
    seed: int | None = None,
    offset: int = 0,
    keep: str | None = None,
    only: Collection[str] | None = None,
) -> Plan:
    """Return the plan that `initialize` would follow; the model is not changed.

    ``only``: the names of the parameters to plan, where the others have their values already.
    """
    if not isinstance(model, nn.Module):
        raise InitError(f"expected a model, an nn.Module, got {type(model).__name__}")
    start = choose("basis", basis, INITIALIZATIONS)
    _check_arguments(basis, residual_scale, heads, seed, offset, keep)
    _check_marks(model, heads)
    exit_scale = start.residual_scale if residual_scale is None else float(residual_scale)
    stages = read_stages(model)
    modules = dict(model.named_modules())
    rows = []
    norms: dict[str, str] = {}  # the weight of which a parameter is the norms
    for owner, name, parameter, rule in assign_rules(model, keep, only):
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
            kept=rule.kept,
        )
        # [Step 2] ETF heads, then random numbers, then matrices; what remains is constant.
        declared = marks.head if start.structured else marks.head and "basis"
        scale = exit_scale if marks.residual_exit else 1.0
        if rule.kept in ("frozen", "table"):
            values = {name: parameter.detach()}
            row = replace(row, rule="kept", value=None, kept_digest=digest(values))
        elif rule.norms_of is not None:
            row = replace(row, rule="norms", value=None)
            norms[name] = f"{owner}.{rule.norms_of}" if owner else rule.norms_of
        elif rule.filters is not None and (marks.head and (heads or declared)) == "etf":
            row = _plan_etf_head(row)
        elif start.rule in ("uniform", "normal"):
            row = _plan_random(row, start.rule, rule.bias_fan_in, scale, rule.spread)
        elif rule.filters is not None:
            matrix = None
            if start.rule == "filters":
                # Rows of a table of positions must differ; those of a cut Hadamard matrix do not.
                matrix = "dct" if rule.spread else _choose_basis(basis, name, stage)
            row = _plan_matrix(row, start.rule, matrix, scale, rule.spread)
            if matrix and rule.spread:
                # The first row is constant: a norm layer would divide it by nearly zero.
                row = replace(row, first_row=1)
        # [Step 3] What its numbers are drawn under, where it has any.
        if row.rule == start.rule and start.keyed_by == "seed":
            row = replace(row, seed=seed or 0)
        elif row.rule == start.rule and start.keyed_by == "offset":
            row = replace(row, offset=offset)
        rows.append(row)
    # [Step 4] The norms of a weight need the weight's own row.
    by_name = {row.parameter: row for row in rows}
    for name, weight in norms.items():
        if weight not in by_name:
            raise InitError(
                f"{name} holds the norms of {weight}, which is not initialized here: name both, or "
                "neither"
            )
    rows = [
        replace(row, norms_of=by_name[norms[row.parameter]]) if row.parameter in norms else row
        for row in rows
    ]
    return Plan(basis, tuple(rows), _list_kept_buffers(model))


def _plan_matrix(
    row: PlanRow, rule: str, basis: str | None, scale: float, spread: float | None
) -> PlanRow:
    assert row.filters is not None
    if spread is not None:
        scale = spread / default_sigma(row.filters)
    return replace(
        row,
        rule=rule,
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


def _plan_random(
    row: PlanRow, rule: str, bias_fan_in: int | None, scale: float, spread: float | None
) -> PlanRow:
    """Return the row of random numbers; constants stay, and so do biases of "normal"."""
    features = bias_fan_in if row.filters is None else fan_in(row.filters)
    if features is None or (row.filters is None and rule == "normal"):
        return row
    sigma = 1.0 / math.sqrt(3 * features) if rule == "uniform" else math.sqrt(2.0 / features)
    scale = scale if spread is None else spread / sigma
    return replace(row, rule=rule, value=None, fan_in=features, sigma=scale * sigma, scale=scale)


def _list_reset_norms(model: nn.Module) -> list[tuple[str, _NormBase]]:
    """Return the norm layers whose running statistics are reset: all but the frozen ones."""
    return [
        (name, module)
        for name, module in model.named_modules()
        if isinstance(module, _NormBase)
        and (not list(module.parameters()) or any(p.requires_grad for p in module.parameters()))
    ]


def _list_kept_buffers(model: nn.Module) -> tuple[str, ...]:
    """Return the names of the buffers that are not reset: all but those of norm layers."""
    norms = {name for name, _ in _list_reset_norms(model)}
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
    basis: str,
    residual_scale: float | None,
    heads: str | None,
    seed: int | None,
    offset: int,
    keep: str | None,
) -> None:
    if keep not in (None, "zeros"):
        raise InitError(f'expected keep to be "zeros" or None, got {keep!r}')
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
    keyed_by = INITIALIZATIONS[basis].keyed_by
    split_uint64(0 if seed is None else seed)
    split_uint64(offset)
    for setting, is_set in (("seed", seed is not None), ("offset", offset != 0)):
        if is_set and keyed_by != setting:
            starts = ", ".join(list_starts(setting))
            raise InitError(f"{basis} has no {setting}; the starts that take one are {starts}")
