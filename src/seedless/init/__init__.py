"""Seed-free initialization: a basis, a rule for each parameter, a plan."""

from seedless.init.bases import BASES, basis
from seedless.init.etf_head import simplex_etf
from seedless.init.initialization import INITIALIZATIONS, initialize, make_plan
from seedless.init.plan import Plan, Row

__all__ = [
    "BASES",
    "INITIALIZATIONS",
    "Plan",
    "Row",
    "basis",
    "initialize",
    "make_plan",
    "simplex_etf",
]
