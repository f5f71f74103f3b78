"""Labels of a classification as a user gives them to `fit`: numbers, and the task they imply."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seedless.core.digests import to_numpy
from seedless.core.errors import DataError

GIVE_LOSS = (
    "give loss=, a function of the model's outputs and the targets, such as "
    "torch.nn.functional.mse_loss"
)


def read_task(labels: ArrayLike, classes: tuple[str, ...] | None) -> tuple[str, int]:
    """Return the task and the number of classes that the training labels imply."""
    array = read_labels(labels, "train labels")
    if array.ndim == 1:
        largest = int(array.max(initial=0))
        width = largest + 1 if classes is None else len(classes)
        if largest >= width:
            raise DataError(f"expected class numbers below {width}, got {largest}")
        return "multi-class", max(width, 2)
    if array.ndim != 2:
        raise DataError(
            f"expected labels (n,) or (n, K), got shape {array.shape}: for masks and other targets "
            f"{GIVE_LOSS}"
        )
    if classes is not None and len(classes) != array.shape[1]:
        raise DataError(f"{len(classes)} class names for {array.shape[1]} columns of labels")
    return "multi-label", array.shape[1]


def read_labels(labels: ArrayLike, what: str) -> NDArray[Any]:
    """Return labels as numbers; say how names of classes become numbers."""
    array = np.asarray(labels) if isinstance(labels, list | tuple | np.ndarray) else None
    if array is not None and array.size and isinstance(array.flat[0], str):
        raise DataError(
            f"expected {what} as numbers, got text such as {str(array.flat[0])!r}: names, numbers "
            "= np.unique(labels, return_inverse=True) numbers it; give classes=names to fit"
        )
    return to_numpy(labels, what)
