"""Why `dct` costs strangers' networks accuracy: one change at a time.

    python -m benchmarks.starts.causes --data FOLDER [--gradients] [--replicates N] [--epochs N]

Trains small networks of timm on BreastMNIST from each variant of `dct`, on one thread of a CPU, and
writes benchmarks/results/start-causes.json after every training. A record that is there is
continued. The trainings explore; they decide nothing, and their number is small. --gradients
measures the norm of the gradient at the start of all networks of the plan instead, on one batch,
and writes start-gradients.json.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn

from benchmarks.measure import RESULTS, write_results
from benchmarks.starts import plan
from benchmarks.starts.images import BREAST_FILE, Images, read_breast
from benchmarks.starts.networks import build
from benchmarks.starts.plan import OWN
from benchmarks.starts.training import BATCH, measure_gradient, train
from benchmarks.starts.variants import NAMES, start_variant

NETWORKS = ("mobilenetv3_small_050", "regnety_002", "mobilenetv4_conv_small", "repvgg_a0")
PIXELS = 48
EPOCHS, REPLICATES = 15, 2
RECORD, GRADIENTS = "start-causes", "start-gradients"


def measure(network: str, variant: str, replicate: int, images: Images, epochs: int) -> Any:
    """Return a row: what a training of a network from a variant ended with."""
    began = time.process_time()
    model = build(network, images)
    changed = start_variant(model, variant, replicate)
    found = train(model, images, replicate, epochs, "cpu").as_dict()
    row = {"network": network, "variant": variant, "replicate": replicate, "epochs": epochs}
    return {**row, "changed": changed, **found, "seconds": round(time.process_time() - began, 1)}


def measure_gradients(network: str, images: Images) -> Any:
    """Return a row: the norm of the gradient at the start of a network, from every variant."""
    x, y = (part[:BATCH] for part in images.train)
    row: dict[str, Any] = {"network": network, "norms": {}, "changed": {}}
    for variant in (OWN, *NAMES):
        model = build(network, images).train()
        if variant != OWN:
            row["changed"][variant] = start_variant(model, variant)
        nn.functional.binary_cross_entropy_with_logits(model(x), y).backward()
        row["norms"][variant] = measure_gradient(model)
    return row


def write_gradients(data: Path, out: Path) -> None:
    """Measure all networks of the plan and write the record."""
    images = read_breast(data / BREAST_FILE, plan.PIXELS)
    rows = []
    for network in plan.NETWORKS:
        rows.append(measure_gradients(network, images))
        print(rows[-1], flush=True)
    command = "python -m benchmarks.starts.causes --gradients"
    write_results(GRADIENTS, command, {"pixels": plan.PIXELS, "batch": BATCH, "rows": rows}, out)


def main() -> None:
    """Train what is missing in the record, replicate by replicate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--replicates", type=int, default=REPLICATES)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.gradients:
        write_gradients(arguments.data, arguments.out)
        return
    images = read_breast(arguments.data / BREAST_FILE, PIXELS)
    file = arguments.out / f"{RECORD}.json"
    rows = json.loads(file.read_text())["results"]["rows"] if file.exists() else []
    known = {(row["network"], row["variant"], row["replicate"]) for row in rows}
    for replicate in range(arguments.replicates):
        for network in NETWORKS:
            for variant in NAMES:
                if (network, variant, replicate) in known:
                    continue
                rows.append(measure(network, variant, replicate, images, arguments.epochs))
                print(rows[-1], flush=True)
                command = f"python -m benchmarks.starts.causes --replicates {arguments.replicates}"
                results = {"pixels": PIXELS, "rows": rows}
                write_results(RECORD, command, results, arguments.out)


if __name__ == "__main__":
    main()
