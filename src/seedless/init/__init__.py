"""Seed-free initialization: a basis, a rule for each parameter, a plan."""

from seedless.init.bases import BASES, basis
from seedless.init.frame import frame
from seedless.init.initialize import CHOICES, initialize, make_plan
from seedless.init.plan import Plan, Row

__all__ = ["BASES", "CHOICES", "Plan", "Row", "basis", "frame", "initialize", "make_plan"]
