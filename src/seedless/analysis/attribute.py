"""Maps of a finished run: what its predictions for some of its test records rest on."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seedless.core.errors import ConfigError, DataError
from seedless.core.files import write_atomic
from seedless.core.registry import choose
from seedless.evaluate.attention import explain_attention
from seedless.evaluate.attribution import Attribution
from seedless.evaluate.gradcam import explain_classes
from seedless.runs.opening import OpenRun, open_run

METHODS = ("gradcam", "attention")


@dataclass(frozen=True, eq=False)
class Explained:
    """Maps of some records, one attribution a layer, and what the model said of these records.

    Attributes:
        classes: (n,) the class whose probability is given, and which Grad-CAM explains.
        probabilities: (n,) of that class.
        labelled: (n,) whether the record is labelled with it.
    """

    finished: OpenRun
    attributions: tuple[Attribution, ...]
    classes: tuple[str, ...]
    probabilities: NDArray[np.float64]
    labelled: NDArray[np.bool_]


def attribute_run(
    run: str | Path,
    *,
    label: str | None = None,
    records: int = 16,
    method: str = "gradcam",
    layer: str | None = None,
    entry: str | None = None,
    data: str | None = None,
) -> Explained:
    """Explain a run's predictions for the first records of its test split.

    Args:
        run: the run folder.
        label: a class: records labelled with it are explained for it. Left out, each record is
            explained for the class the model finds most probable.
        records: how many, at most; they lie in the order of their contents.
        method: "gradcam", or "attention" for models that have it.
        layer: where Grad-CAM looks; left out, where the model says.
        entry: for a run of `fit`, where its model and arrays come from.
        data: where the data lie now, if not where they lay then.
    """
    choose("attribution method", method, dict.fromkeys(METHODS))
    if records < 1:
        raise ConfigError(f"expected at least one record to explain, got {records}")
    if layer is not None and method == "attention":
        raise ConfigError("a layer belongs to gradcam: attention is shown for every block")
    finished = open_run(run, entry=entry, data=data)
    probabilities = finished.predict(finished.records)
    if label is None:
        rows = np.arange(min(records, len(finished.ids)))
        targets = probabilities[rows].argmax(axis=1)
    else:
        number = choose("class", label, {name: k for k, name in enumerate(finished.classes)})
        rows = np.flatnonzero(finished.labels[:, number])[:records]
        if len(rows) == 0:
            raise DataError(f"no {finished.split} record of {run} is labelled {label}")
        targets = np.full(len(rows), number)
    ids = finished.ids[rows].tolist()
    samples = np.ascontiguousarray(finished.normalize(finished.records[rows]))
    model = finished.run.model
    attributions = (
        explain_attention(model, samples, ids=ids)
        if method == "attention"
        else (
            explain_classes(model, samples, targets, names=finished.classes, ids=ids, layer=layer),
        )
    )
    return Explained(
        finished=finished,
        attributions=attributions,
        classes=tuple(finished.classes[k] for k in targets.tolist()),
        probabilities=probabilities[rows, targets],
        labelled=finished.labels[rows, targets] == 1,
    )


def write_maps(explained: Explained, out: Path) -> str:
    """Write maps, names and digests as an .npz and return its SHA-256; its bytes repeat.

    ``maps`` (layers, n, ...) float32, ``layers``, ``digests`` (layers,), ``ids``, ``classes``,
    ``probabilities``, ``labelled`` (n,), ``method`` and ``weights``, the weights' digest.
    """
    parts = explained.attributions
    arrays: dict[str, NDArray[Any]] = {
        "maps": np.stack([part.maps for part in parts]),
        "layers": np.array([part.layer for part in parts]),
        "digests": np.array([part.digest for part in parts]),
        "ids": np.array(parts[0].ids),
        "classes": np.array(explained.classes),
        "probabilities": explained.probabilities,
        "labelled": explained.labelled,
        "method": np.array(parts[0].method),
        "weights": np.array(explained.finished.run.digest),
    }
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    write_atomic(out, buffer.getvalue())
    return f"sha256:{hashlib.sha256(buffer.getvalue()).hexdigest()}"
