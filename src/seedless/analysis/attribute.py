"""Attribution maps of a finished run: which parts of test records matter to its predictions."""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seedless.core.digests import digest_bytes
from seedless.core.errors import ConfigError, DataError
from seedless.core.files import AnyPath, write_atomic
from seedless.core.registry import choose
from seedless.evaluate.attention import explain_attention
from seedless.evaluate.attribution import Attribution
from seedless.evaluate.gradcam import explain_classes
from seedless.numerics.saved_flags import run_by_itself
from seedless.runs.opened_run import OpenRun, open_run

METHODS = ("gradcam", "attention")


@dataclass(frozen=True, eq=False)
class Explained:
    """Attribution maps of some records, one set for each layer, and the predictions for them.

    Attributes:
        classes: (n,) the class that is explained.
        probabilities: (n,) of that class.
        labelled: (n,) whether the record is labelled with it.
    """

    opened: OpenRun
    attributions: tuple[Attribution, ...]
    classes: tuple[str, ...]
    probabilities: NDArray[np.float64]
    labelled: NDArray[np.bool_]


@run_by_itself()
def attribute_run(
    run: AnyPath,
    *,
    label: str | None = None,
    records: int = 16,
    method: str = "gradcam",
    layer: str | None = None,
    entry: str | None = None,
    data: str | None = None,
) -> Explained:
    """Return attribution maps for the first records of a run's test split.

    Args:
        run: the run folder.
        label: a class, whose labelled records are explained. By default each record is explained
            for its most probable class.
        records: how many records at most; they are in the order of their contents.
        method: "gradcam", or "attention" for models that have it.
        layer: the layer of Grad-CAM; by default the one that the model declares.
        entry: for a run of `fit`, "package.module:function" that returns its model and arrays.
        data: the path of the data, if they were moved.

    >>> attribute_run("runs/mine", label="AFIB").attributions[0].maps.shape  # doctest: +SKIP
    (16, 1000)
    """
    choose("attribution method", method, dict.fromkeys(METHODS))
    if records < 1:
        raise ConfigError(f"expected at least one record to explain, got {records}")
    if layer is not None and method == "attention":
        raise ConfigError("a layer belongs to gradcam: attention is shown for every block")
    opened = open_run(run, entry=entry, data=data)
    probabilities = opened.predict(opened.records)
    if label is None:
        rows = np.arange(min(records, len(opened.ids)))
        targets = probabilities[rows].argmax(axis=1)
    else:
        number = choose("class", label, {name: k for k, name in enumerate(opened.classes)})
        rows = np.flatnonzero(opened.labels[:, number])[:records]
        if len(rows) == 0:
            raise DataError(f"no {opened.split} record of {run} is labelled {label}")
        targets = np.full(len(rows), number)
    ids = opened.ids[rows].tolist()
    samples = np.ascontiguousarray(opened.normalize(opened.records[rows]))
    model = opened.run.model
    attributions = (
        explain_attention(model, samples, ids=ids)
        if method == "attention"
        else (explain_classes(model, samples, targets, names=opened.classes, ids=ids, layer=layer),)
    )
    return Explained(
        opened=opened,
        attributions=attributions,
        classes=tuple(opened.classes[k] for k in targets.tolist()),
        probabilities=probabilities[rows, targets],
        labelled=opened.labels[rows, targets] == 1,
    )


def write_maps(explained: Explained, out: Path) -> str:
    """Write maps, names and digests as an .npz and return its SHA-256; equal maps give equal bytes.

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
        "weights": np.array(explained.opened.run.digest),
    }
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    write_atomic(out, buffer.getvalue())
    return digest_bytes(buffer.getvalue())
