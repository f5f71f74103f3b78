"""Seed-free initialization: a basis, a rule for each parameter, a plan."""

from typing import TYPE_CHECKING

from seedless.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from seedless.init.bases import BASES, basis
    from seedless.init.etf_head import simplex_etf
    from seedless.init.initialization import initialize, make_plan
    from seedless.init.plan import Plan, PlanRow
    from seedless.init.starts import INITIALIZATIONS

__all__ = [
    "BASES",
    "INITIALIZATIONS",
    "Plan",
    "PlanRow",
    "basis",
    "initialize",
    "make_plan",
    "simplex_etf",
]

__getattr__, __dir__ = lazy_names(__name__)
