"""All orders, by name. Each function's docstring says what it does."""

from __future__ import annotations

from seedless.ordering import balanced, losses, shuffled, spread
from seedless.ordering.epoch import Strategy

STRATEGIES: dict[str, Strategy] = {
    "content": Strategy(shuffled.content),
    "content_static": Strategy(shuffled.content_static),
    "golden": Strategy(shuffled.golden),
    "golden_index": Strategy(shuffled.golden_index),
    "sobol": Strategy(shuffled.sobol),
    "seeded": Strategy(shuffled.seeded, takes_seed=True),
    "class_guaranteed": Strategy(balanced.class_guaranteed, needs_labels=True),
    "class_diverse": Strategy(balanced.class_diverse, needs_labels=True),
    "feature_diverse": Strategy(spread.feature_diverse),
    "herding": Strategy(spread.herding),
    "stratified_quantile": Strategy(losses.stratified_quantile, needs_losses=True),
    "loss_ranked": Strategy(losses.loss_ranked, needs_losses=True),
    "interleaved_loss_ranked": Strategy(losses.interleaved_loss_ranked, needs_losses=True),
    "pair_balance": Strategy(losses.pair_balance, needs_losses=True),
}
