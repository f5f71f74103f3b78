"""The norm of the gradient at the start: seed-free starts against each library's own.

python -m benchmarks.init_gradients --out FILE [--only 'timm/*']

It needs the environment of `benchmarks.zoo`. One row for each network, with the norm for the
library's own start ("own") and for ours. Where "dct" is not within a factor of 10 of "own", starts
whose rows have no order are tried too; where the library set weights to zero, also keep="zeros".
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import seedless
from benchmarks.zoo.catalog import NETWORKS, find_networks
from benchmarks.zoo.columns import build, measure_gradient
from benchmarks.zoo.network import Network

FACTOR = 10.0


def measure(network: Network) -> dict[str, Any]:
    """Return the norms of one network; "zeros" counts its weights and gains that are zero."""
    model = build(network)
    named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    zeros = sum(1 for name, p in named if not name.endswith("bias") and not p.any())
    row: dict[str, Any] = {"zeros": zeros, "own": measure_gradient(model, network)}
    row["dct"] = measure_start(network, "dct")
    if zeros:
        row["dct, keep zeros"] = measure_start(network, "dct", keep="zeros")
    if not row["own"] / FACTOR < row["dct"] < row["own"] * FACTOR:
        for start in ("canonical_kaiming", "scrambled"):
            row[start] = measure_start(network, start)
        if zeros:
            row["scrambled, keep zeros"] = measure_start(network, "scrambled", keep="zeros")
    return row


def measure_start(network: Network, basis: str, **options: Any) -> float:
    """Return the norm of the gradient of a network with one of our starts."""
    model = build(network)
    seedless.initialize(model, basis, **options)
    return measure_gradient(model, network)


def main() -> None:
    """Measure the networks, and write after each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default="*")
    arguments = parser.parse_args()
    rows: dict[str, Any] = {}
    for name in find_networks(arguments.only):
        try:
            rows[name] = measure(NETWORKS[name])
        except Exception as error:  # that a network fails is a result too
            rows[name] = {"error": f"{type(error).__name__}: {error}"[:200]}
        arguments.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
