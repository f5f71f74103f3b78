"""Batch orders: a permutation of the labelled samples for each epoch, from the data alone."""

from __future__ import annotations

from seedless.ordering.collisions import Collisions, Sharing, collisions
from seedless.ordering.order import Order, make_order
from seedless.ordering.schedule import Schedule
from seedless.ordering.strategies import STRATEGIES

__all__ = [
    "STRATEGIES",
    "Collisions",
    "Order",
    "Schedule",
    "Sharing",
    "collisions",
    "make_order",
]
