"""The test predictions of a study's runs in one compressed file, and the scores they give.

    python -m benchmarks.results_predictions docs/results/predictions/NAME.npz

computes the scores of every run again, from its predictions, and compares them with those beside
its receipt. `benchmarks.results` writes the file. Labels are held once for all runs with the same
test records; probabilities as float32 where that loses no bit.
"""

from __future__ import annotations

import gzip
import io
import json
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seedless.core.digests import digest_value
from seedless.evaluate.auc import score_classes
from seedless.evaluate.predictions import FILE, Predictions
from seedless.studies.engine.store import Outcome

FOLDER, RECEIPTS = "predictions", "receipts"
MAX_BYTES = 12 * 2**20  # of a file in the repository; larger ones are left to a run archive
SPLIT = "test"


def pack_predictions(outcomes: Sequence[Outcome]) -> bytes | None:
    """Return the file of the runs that have test predictions; None where it would be too large."""
    arrays: dict[str, NDArray[Any]] = {}
    sets: dict[str, str] = {}  # digest of records and labels -> their name in the file
    for one in {one.point.key: one for one in outcomes if one.ok}.values():
        predictions = read_test_predictions(one)
        if predictions is None:
            continue
        scored = predictions.splits[SPLIT]
        labels = digest_value([scored.ids.tolist(), scored.labels.tolist(), predictions.classes])
        name = sets.setdefault(labels, f"set{len(sets)}")
        arrays |= {
            f"{name}_ids": scored.ids,
            f"{name}_labels": scored.labels,
            f"{name}_classes": np.array(predictions.classes),
            f"{one.point.key}_{name}": _shorten(scored.probabilities),
        }
    if not sets:
        return None
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue() if buffer.tell() <= MAX_BYTES else None


def read_test_predictions(one: Outcome) -> Predictions | None:
    """Return the predictions of a run that was tested; None for any other."""
    if not one.ok or (one.predictions is None and not (one.run / FILE).exists()):
        return None
    predictions = one.read_predictions()
    return predictions if SPLIT in predictions.splits else None


def find_holder(keys: Collection[str], out: Path, slug: str) -> str | None:
    """Return the page whose file holds the predictions of all of these runs, if another one does.

    Of pages that share runs the larger one holds them.
    """
    for file in sorted((out / FOLDER).glob("*.npz")):
        with np.load(file, allow_pickle=False) as opened:
            held = {name.partition("_")[0] for name in opened.files}
        if file.stem != slug and keys and held.issuperset(keys):
            return file.stem
    return None


def _shorten(values: NDArray[np.float64]) -> NDArray[Any]:
    """Return float32 where all values are, or the float64 that they were."""
    short = values.astype(np.float32)
    return short if (short.astype(np.float64) == values).all() else values


def compute_scores(content: bytes) -> dict[str, dict[str, Any]]:
    """Return the macro AUC and the AUC of each class of every run of a file, by its key."""
    with np.load(io.BytesIO(content), allow_pickle=False) as opened:
        arrays = {name: opened[name] for name in opened.files}
    scores = {}
    for name, probabilities in arrays.items():
        key, _, records = name.partition("_")
        if key.startswith("set"):
            continue
        labels, classes = arrays[f"{records}_labels"], arrays[f"{records}_classes"]
        found = score_classes(probabilities.astype(np.float64), labels, classes.tolist())
        classes_found = {one: part["auc"] for one, part in found["classes"].items()}
        scores[key] = {"macro_auc": found["macro_auc"], "classes": classes_found}
    return scores


def check_file(file: Path) -> tuple[int, int]:
    """Return how many runs a file has, and how many give the scores beside their receipts."""
    receipts = file.parent.parent / RECEIPTS / f"{file.stem}.json.gz"
    runs = json.loads(gzip.decompress(receipts.read_bytes()))["runs"]
    known = {run["key"]: run.get("scores") for run in runs}
    scores = compute_scores(file.read_bytes())
    return len(scores), sum(known.get(key) == found for key, found in scores.items())


def main() -> None:
    """Check the named files; exit code 1 where a score differs."""
    whole = True
    for name in sys.argv[1:]:
        count, same = check_file(Path(name))
        whole = whole and count == same
        print(f"{name}: {same} of {count} runs have the scores beside their receipts")
    raise SystemExit(0 if whole else 1)


if __name__ == "__main__":
    main()
