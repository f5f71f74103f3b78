"""Declarations about the layers of a model: stage, residual exit, head, parameters of your own.

They are stored on the module itself, so that `init` can read what `models` (or you) declared, and
neither imports the other. Nothing is ever guessed from a parameter's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from seedless.core.errors import InitError

if TYPE_CHECKING:
    from torch import nn

M = TypeVar("M", bound="nn.Module")
_ATTRIBUTE = "_seedless_marks"

HEADS = ("etf", "basis")
RULES = ("filters", "zeros", "ones")


@dataclass(frozen=True)
class Marks:
    """The declarations on one module; `stage` applies to everything below it as well."""

    stage: int | None = None
    residual_exit: bool = False
    zero_gain: bool = False
    head: str | None = None
    claims: Mapping[str, str] = field(default_factory=dict)


def mark(
    module: M,
    *,
    stage: int | None = None,
    residual_exit: bool | None = None,
    zero_gain: bool | None = None,
    head: str | None = None,
    claims: Mapping[str, str] | None = None,
) -> M:
    """Declare something about ``module``, and return the module.

    Args:
        stage: depth 0-3 of this module and all below it; `mixed` chooses the basis by it.
        residual_exit: the last convolution of a residual branch; scaled by `residual_scale`.
        zero_gain: a norm whose gain starts at 0, so that its residual branch starts at 0.
        head: the classifier; "etf" for an equiangular tight frame, "basis" for a dense layer.
        claims: a rule for parameters of your own: {"name": "filters" | "zeros" | "ones"}.
            "filters" fills it like the weight of a dense layer, along the first axis.

    Example: ``self.head = seedless.mark(nn.Linear(64, 10), head="etf")``.
    """
    if stage is not None and (type(stage) is not int or stage not in range(4)):
        raise InitError(f"a stage is 0, 1, 2 or 3, got {stage!r}")
    if head is not None and head not in HEADS:
        raise InitError(f"a head is one of {', '.join(HEADS)}, got {head!r}")
    for name, rule in (claims or {}).items():
        if rule not in RULES:
            raise InitError(f"rule of {name!r}: expected one of {', '.join(RULES)}, got {rule!r}")
    settings: dict[str, Any] = {
        "stage": stage,
        "residual_exit": residual_exit,
        "zero_gain": zero_gain,
        "head": head,
        "claims": claims and {**read_marks(module).claims, **claims},
    }
    changed = {key: value for key, value in settings.items() if value is not None}
    setattr(module, _ATTRIBUTE, replace(read_marks(module), **changed))
    return module


def read_marks(module: nn.Module) -> Marks:
    """Return what was declared on this module itself."""
    marks = vars(module).get(_ATTRIBUTE)  # not getattr, which a wrapper may forward
    return marks if isinstance(marks, Marks) else Marks()


def read_stages(model: nn.Module) -> dict[str, int | None]:
    """Return each module's stage, by module name: its own, or its nearest marked ancestor's."""
    stages: dict[str, int | None] = {}
    for name, module in model.named_modules(remove_duplicate=False):
        own = read_marks(module).stage
        inherited = stages[name.rpartition(".")[0]] if name else None
        stages[name] = own if own is not None else inherited
    return stages
