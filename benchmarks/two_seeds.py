"""Two seeds with nearly the same AUC that give different answers: the figure of the README.

    python -m benchmarks.two_seeds record STORE...     from runs of the study medmnist-scales
    python -m benchmarks.two_seeds draw                docs/assets/two-seeds.svg from the record

Of all runs of one ordinary recipe (ResNet-18 on BreastMNIST, Kaiming normal start, seeded order),
which differ in the seed alone, the two with the closest test AUC are drawn.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

from benchmarks.pages import DOCS, RESULTS
from seedless.core.config_files import open_config
from seedless.evaluate.predictions import FILE, read_predictions

RECORD = RESULTS / "two-seeds.json"
PICTURE = DOCS / "assets" / "two-seeds.svg"
CLASS = "malignant"
RECIPE = {"basis": "kaiming_normal", "residual_scale": 1.0}
COLOURS = ("#2f6db3", "#d1622b")
GREY = "#8a8f98"


def read_runs(stores: Iterable[Path]) -> list[dict[str, Any]]:
    """Return seed, test AUC, receipt and probabilities of every run of the recipe, by seed."""
    runs = {}
    for store in stores:
        for folder in sorted((store / "runs").iterdir()):
            config = open_config(str(folder / "config.toml"))
            found = {name: getattr(config.init, name) for name in RECIPE}
            if (
                config.data.name != "breastmnist"
                or found != RECIPE
                or config.order.name != "seeded"
            ):
                continue
            predictions = read_predictions(folder / FILE)
            scored = predictions.splits["test"]
            order = scored.ids.argsort()
            column = predictions.classes.index(CLASS)
            metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
            receipt = json.loads((folder / "receipt.json").read_text(encoding="utf-8"))
            runs[config.init.seed] = {
                "seed": config.init.seed,
                "auc": metrics["test"]["macro_auc"],
                "config": receipt["predicate"]["config"]["digest"],
                "subject": receipt["subject"],
                "is_malignant": scored.labels[order, column].astype(bool).tolist(),
                "probability": scored.probabilities[order, column].tolist(),
            }
    return [runs[seed] for seed in sorted(runs)]


def find_closest(runs: Iterable[Mapping[str, Any]]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the two runs whose AUCs differ least; of equal pairs, that with the lowest seeds."""
    return min(combinations(runs, 2), key=lambda pair: abs(pair[0]["auc"] - pair[1]["auc"]))


def find_changed(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[bool]:
    """Return for each image whether the two runs give it different classes."""
    pairs = zip(one["probability"], other["probability"], strict=True)
    return [(a > 0.5) != (b > 0.5) for a, b in pairs]


def draw(record: Mapping[str, Any], to: Path) -> str:
    """Draw both answers for every image; return the sentence above the picture."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    one, other = find_closest(record["runs"])
    changed = find_changed(one, other)
    images = sorted(
        range(len(changed)), key=lambda i: one["probability"][i] + other["probability"][i]
    )
    sentence = (
        f"Seed {one['seed']}: AUC {one['auc']:.3f}. Seed {other['seed']}: AUC {other['auc']:.3f}. "
        f"{sum(changed)} of {len(changed)} images get a different answer."
    )
    settings = {"svg.hashsalt": "seedless", "font.family": "sans-serif", "font.size": 11}
    with mpl.rc_context(settings):
        figure, axes = plt.subplots(figsize=(9.6, 3.9), layout="constrained")
        for place, image in enumerate(images):
            values = (one["probability"][image], other["probability"][image])
            strong = changed[image]
            line = "#30343b" if strong else GREY
            axes.plot([place] * 2, values, color=line, lw=1.4 if strong else 0.5, zorder=1)
            for value, colour in zip(values, COLOURS, strict=True):
                size, alpha = (26, 1.0) if strong else (7, 0.45)
                axes.scatter([place], [value], s=size, color=colour, alpha=alpha, lw=0, zorder=2)
        axes.axhline(0.5, color="#30343b", lw=0.8, ls=(0, (4, 3)))
        axes.set(
            xlim=(-2, len(images) + 1),
            ylim=(-0.02, 1.02),
            xticks=[],
            xlabel=f"{len(images)} test images (breast ultrasound), sorted by the mean of both",
            ylabel="probability of malignant",
        )
        for run, colour in zip((one, other), COLOURS, strict=True):
            axes.scatter([], [], s=30, color=colour, label=f"seed {run['seed']}")
        axes.legend(loc="upper left", frameon=False)
        axes.set_title(sentence, loc="left", fontsize=12)
        axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(to, metadata={"Date": None}, facecolor="white")
        plt.close(figure)
    return sentence


def main() -> None:
    """Write the record from stores of runs, or the picture from the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["record", "draw"])
    parser.add_argument("stores", type=Path, nargs="*")
    arguments = parser.parse_args()
    if arguments.what == "record":
        names = "STORE" if len(arguments.stores) == 1 else "STORE..."
        record = {
            "command": f"python -m benchmarks.two_seeds record {names}",
            "recipe": RECIPE,
            "runs": read_runs(arguments.stores),
        }
        RECORD.write_text(json.dumps(record) + "\n", encoding="utf-8")
    print(draw(json.loads(RECORD.read_text(encoding="utf-8")), PICTURE))


if __name__ == "__main__":
    main()
