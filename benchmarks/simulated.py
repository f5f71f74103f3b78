"""Is the simulated data worth training on, and how fast is it made?

    OMP_WAIT_POLICY=PASSIVE python -m benchmarks.simulated

- A small conformer, trained on the "small" preset of 1,500 records for 20 epochs: neither trivial
  nor hopeless means a test macro AUC from 0.85 to 0.98. The preset's test split has few records of
  the rare classes, so the same model is also scored on 4,500 records of other patients.
- A small resnet18, trained on 2,000 simulated images for 10 epochs.
- Records and images made per second; numpy's elementwise work uses one core.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

import seedless
from benchmarks.measure import write_results
from seedless.core.dataset import Dataset
from seedless.data.normalize import Scale, fit_scale
from seedless.data.simulators.ecg import simulate_ecg, simulate_records
from seedless.data.simulators.images import simulate_images
from seedless.data.simulators.population import PRESETS, preset_records

BATCH = 32
RATE = 1e-3
WARM_UP = 200  # steps
BOUNDS = (0.85, 0.98)


def train(model: nn.Module, samples: Tensor, labels: Tensor, epochs: int) -> float:
    """Adam with linear warm-up times a cosine to zero, by the step; plain binary cross-entropy.

    Return the seconds it took.
    """
    begun = time.perf_counter()
    order = seedless.order("content", samples, labels=labels, batch_size=BATCH)
    batches = [rows for epoch in range(epochs) for rows in order.schedule(epoch).batches]
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    model.train()
    for step, rows in enumerate(batches):
        cosine = 0.5 * (1 + np.cos(np.pi * step / len(batches)))
        optimizer.param_groups[0]["lr"] = RATE * min(1.0, (step + 1) / WARM_UP) * cosine
        optimizer.zero_grad()
        F.binary_cross_entropy_with_logits(model(samples[rows]), labels[rows]).backward()
        optimizer.step()
    return time.perf_counter() - begun


@torch.no_grad()
def score(model: nn.Module, data: Dataset, scale: Scale) -> dict[str, Any]:
    """Return AUC and positives by class, and their mean."""
    model.eval()
    samples = torch.from_numpy(scale.apply(data.X))
    logits = torch.cat([model(block) for block in samples.split(256)]).double().numpy()
    by_class = {
        name: {"auc": area_under_curve(logits[:, k], data.Y[:, k]), "n": int(data.Y[:, k].sum())}
        for k, name in enumerate(data.classes)
    }
    macro = float(np.mean([found["auc"] for found in by_class.values()]))
    return {"macro_auc": macro, "records": len(data), "by_class": by_class}


def area_under_curve(scores: NDArray[np.float64], truth: NDArray[np.uint8]) -> float:
    """Return the chance that a positive outranks a negative; a tie counts half."""
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    positive = int(truth.sum())
    negative = len(truth) - positive
    return float((ranks[truth == 1].sum() - positive * (positive + 1) / 2) / positive / negative)


def fit(
    model: nn.Module, data: Dataset, method: str, epochs: int, others: Mapping[str, Dataset]
) -> dict[str, Any]:
    """Train on the training split; score it, the test split and other data."""
    seedless.initialize(model, "mixed")
    known = data.take(data.rows("train"))
    scale = fit_scale(data, method)
    labels = torch.from_numpy(known.Y.astype(np.float32))
    seconds = train(model, torch.from_numpy(scale.apply(known.X)), labels, epochs)
    scored = {"train": known, "test": data.take(data.rows("test")), **others}
    return {
        "epochs": epochs,
        "batch": BATCH,
        "warm_up_steps": WARM_UP,
        "train_seconds": seconds,
        "digest": data.digest,
        **{name: score(model, part, scale) for name, part in scored.items()},
    }


def measure_ecg() -> dict[str, Any]:
    """Train and score the small conformer."""
    again = [preset_records("small") + PRESETS["full"] * k for k in (3, 6, 9)]
    strangers = simulate_records(np.concatenate(again))
    model = seedless.build("conformer", small=True)
    return fit(model, simulate_ecg(preset="small"), "global", 20, {"strangers": strangers})


def measure_images() -> dict[str, Any]:
    """Train and score the small resnet18."""
    data = simulate_images(2000)
    strangers = replace(simulate_images(2000, start=10_000), name="strangers")
    model = seedless.build("resnet18", channels=1, classes=len(data.classes), small=True)
    return fit(model, data, "pixels", 10, {"strangers": strangers})


def measure_speed() -> dict[str, float]:
    """Return samples made per second, the best of three."""
    made = {"records": (simulate_ecg, 1024), "images_28x28": (simulate_images, 4096)}
    found = {}
    for name, (make, count) in made.items():
        seconds = []
        for _ in range(3):
            begun = time.perf_counter()
            make(count)
            seconds.append(time.perf_counter() - begun)
        found[f"{name}_per_second"] = count / min(seconds)
    return found


def tabulate(results: dict[str, Any]) -> str:
    """Return macro AUC and AUC by class, with the number of positives."""
    lines = []
    for kind in ("ecg", "images"):
        for part in ("train", "test", "strangers"):
            found = results[kind][part]
            lines.append(f"{kind}, {part}: {found['macro_auc']:.3f} (n = {found['records']})")
            for name, one in found["by_class"].items():
                lines.append(f"    {name:8} {one['auc']:.3f} (n = {one['n']})")
    lines += [f"{name}: {value:.0f}" for name, value in results["speed"].items()]
    return "\n".join(lines)


def main() -> None:
    """Measure, print, write results/simulated.json, and fail outside the bounds."""
    seedless.make_deterministic()
    results = {"speed": measure_speed(), "ecg": measure_ecg(), "images": measure_images()}
    print(tabulate(results))
    write_results("simulated", "python -m benchmarks.simulated", results)
    macro = results["ecg"]["test"]["macro_auc"]
    if not BOUNDS[0] <= macro <= BOUNDS[1]:
        sys.exit(f"the test macro AUC is {macro:.3f}, expected {BOUNDS[0]} to {BOUNDS[1]}")


if __name__ == "__main__":
    main()
