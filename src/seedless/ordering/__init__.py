"""Batch orders: a permutation of the labelled samples for each epoch, from the data alone."""

from typing import TYPE_CHECKING

from seedless.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from seedless.ordering.batch_schedule import Schedule
    from seedless.ordering.key_collisions import Collisions, count_collisions
    from seedless.ordering.order import Order, make_order
    from seedless.ordering.registry import ORDERS
    from seedless.ordering.sampler import Sampler

__all__ = ["ORDERS", "Collisions", "Order", "Sampler", "Schedule", "count_collisions", "make_order"]

__getattr__, __dir__ = lazy_names(__name__)
