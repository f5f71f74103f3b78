"""What a user should know of labels that are read as they are, and may be meant otherwise."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def describe_labels(labels: NDArray[Any], task: str, name: str = "Y") -> list[str]:
    """Return notes on labels (n, K) of 0 and 1, in words; none where there is no doubt.

    The shape of the labels alone decides the task, so that a record more or less never changes it.

    Args:
        labels: one row for each sample; of a "multi-class" task each has one 1.
        task: "multi-label" where the user gave (n, K), "multi-class" for class numbers.
        name: the user's name of the labels.

    >>> import numpy as np
    >>> describe_labels(np.eye(3), "multi-label")[0][:44]
    'Y (3, 3) has exactly one 1 in each row and i'
    """
    if task == "multi-label":
        if labels.shape[1] < 2 or (labels.sum(axis=1) != 1).any():
            return []
        shape = tuple(labels.shape)
        return [
            f"{name} {shape} has exactly one 1 in each row and is read as several yes-or-no "
            "questions a sample (binary cross-entropy, multi-label); if each sample has one class, "
            f"give class numbers, {name}.argmax(axis=1)"
        ]
    counts = labels.sum(axis=0, dtype=np.int64)
    if (counts > 0).sum() == 1:
        return [f"{name} has one class only, {counts.argmax()}: there is nothing to tell apart"]
    if len(counts) > 2 and counts[0] == 0 and counts[1:].all():
        return [
            f"the class numbers in {name} go from 1 to {len(counts) - 1}, and are counted from 0: "
            f"class 0 has no sample; {name} - 1 leaves it out"
        ]
    return []
