"""All batch orders by name: the one place to add one."""

from seedless.ordering import class_orders, content_orders, feature_orders, loss_orders
from seedless.ordering.strategy import Strategy

ORDERS: dict[str, Strategy] = {
    "content": Strategy(content_orders.content),
    "content_static": Strategy(content_orders.content_static, needs_values=True),
    "golden": Strategy(content_orders.golden, needs_values=True),
    "golden_index": Strategy(content_orders.golden_index),
    "sobol": Strategy(content_orders.sobol),
    "seeded": Strategy(content_orders.seeded, takes_seed=True),
    "class_guaranteed": Strategy(class_orders.class_guaranteed, needs_labels=True),
    "class_diverse": Strategy(class_orders.class_diverse, needs_labels=True),
    "feature_diverse": Strategy(feature_orders.feature_diverse, needs_values=True),
    "herding": Strategy(feature_orders.herding, needs_values=True),
    "stratified_quantile": Strategy(loss_orders.stratified_quantile, needs_losses=True),
    "loss_ranked": Strategy(loss_orders.loss_ranked, needs_losses=True),
    "interleaved_loss_ranked": Strategy(loss_orders.interleaved_loss_ranked, needs_losses=True),
    "pair_balance": Strategy(loss_orders.pair_balance, needs_losses=True),
}
