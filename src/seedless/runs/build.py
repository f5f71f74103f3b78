"""Build what a section of the configuration names: a model, its first weights, a batch order."""

from __future__ import annotations

from numpy.typing import ArrayLike
from torch import nn

from seedless.core.config import InitConfig, ModelConfig, OrderConfig
from seedless.init import Plan, initialize
from seedless.models import build
from seedless.ordering import Order, make_order


def build_model(settings: ModelConfig) -> nn.Module:
    """Return the model of a configuration, not initialized yet."""
    return build(
        settings.name,
        leads=settings.leads,
        channels=settings.channels,
        classes=settings.classes,
        small=settings.small,
    )


def initialize_model(model: nn.Module, settings: InitConfig) -> Plan:
    """Initialize a model as a configuration says; return the plan."""
    return initialize(
        model,
        settings.basis,
        residual_scale=settings.residual_scale,
        heads=settings.heads,
        seed=settings.seed,
    )


def order_samples(samples: ArrayLike, labels: ArrayLike, settings: OrderConfig) -> Order:
    """Return the batch order of a configuration over samples (n, ...) with labels (n, K)."""
    return make_order(
        settings.name,
        samples,
        labels=labels,
        batch_size=settings.batch_size,
        seed=settings.seed,
        offset=settings.offset,
        keep_unlabelled=settings.keep_unlabelled,
    )
