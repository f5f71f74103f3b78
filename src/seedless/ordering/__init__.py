"""Batch orders: a permutation of the labelled samples for each epoch, from the data alone."""

from __future__ import annotations

from seedless.ordering.key_collisions import Collisions, SharedKeys, count_collisions
from seedless.ordering.order import Order, make_order
from seedless.ordering.registry import ORDERS
from seedless.ordering.schedule import Schedule

__all__ = [
    "ORDERS",
    "Collisions",
    "Order",
    "Schedule",
    "SharedKeys",
    "count_collisions",
    "make_order",
]
