"""The values of a step in the order in which they depend on each other.

It stands apart from the hooks, because those who read a record need it without torch.
"""

from __future__ import annotations

CAUSAL_ORDER = (
    "weights_before",
    "optimizer_state_before",
    "indices",
    "batch",
    "input",
    "output",
    "loss",
    "gradients",
    "rate",
    "scale",
    "weights",
    "optimizer_state",
    "buffers",
)
