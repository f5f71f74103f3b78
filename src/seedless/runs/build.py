"""What a section of the configuration chooses, made: a model, its first weights, an order."""

from __future__ import annotations

from numpy.typing import ArrayLike
from torch import nn

from seedless.core.config import InitConfig, ModelConfig, OrderConfig
from seedless.init import Plan, initialize
from seedless.models import build
from seedless.ordering import Order, make_order


def build_model(chosen: ModelConfig) -> nn.Module:
    """Return the model of a configuration, initialized by no one yet."""
    return build(
        chosen.name,
        leads=chosen.leads,
        channels=chosen.channels,
        classes=chosen.classes,
        small=chosen.small,
    )


def initialize_model(model: nn.Module, chosen: InitConfig) -> Plan:
    """Fill a model's weights as a configuration says; return the plan."""
    return initialize(
        model,
        chosen.basis,
        residual_scale=chosen.residual_scale,
        heads=chosen.heads,
        seed=chosen.seed,
    )


def order_samples(samples: ArrayLike, labels: ArrayLike, chosen: OrderConfig) -> Order:
    """Return the order of a configuration over samples (n, ...) with labels (n, K)."""
    return make_order(
        chosen.name,
        samples,
        labels=labels,
        batch_size=chosen.batch_size,
        seed=chosen.seed,
        offset=chosen.offset,
        keep_unlabelled=chosen.keep_unlabelled,
    )
