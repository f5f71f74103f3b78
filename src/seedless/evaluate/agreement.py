"""Agreement of answers and labels where each record has one class: confusion matrix, kappa.

Cohen's kappa (1960) is the agreement beyond what chance would give: 1 - sum(w o) / sum(w e), with
the observed counts o, those e that independent answers of the same frequencies would have, and the
weights w, 0 on the diagonal. Unweighted, every other weight is 1; with quadratic weights (1968) it
is the squared distance of the two classes, which suits grades.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

_GRADE = re.compile(r"(\D*[^\W\d_])\W*(\d+)")


def count_confusions(
    probabilities: NDArray[np.float64], labels: NDArray[np.uint8]
) -> NDArray[np.int64]:
    """Return counts (K, K): records of each class (row) by the most probable class (column).

    >>> count_confusions(np.array([[0.9, 0.1], [0.8, 0.2]]), np.array([[1, 0], [0, 1]])).tolist()
    [[1, 0], [1, 0]]
    """
    classes = labels.shape[1]
    pairs = labels.argmax(axis=1) * classes + probabilities.argmax(axis=1)
    return np.bincount(pairs, minlength=classes**2).reshape(classes, classes)


def compute_kappa(counts: NDArray[np.int64], *, weighted: bool = False) -> float | None:
    """Return Cohen's kappa of counts (K, K), or that with quadratic weights.

    None where labels and answers are all of one class: then chance agreement is perfect too.
    """
    places = np.arange(len(counts), dtype=np.float64)
    distance = places[:, None] - places
    weights = distance**2 if weighted else (distance != 0).astype(np.float64)
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    chance = float((weights * expected).sum())
    return None if chance == 0 else 1 - float((weights * counts).sum()) / chance


def are_grades(classes: Sequence[str]) -> bool:
    """Whether names of three classes or more are grades: one word with numbers that go up by one.

    "class 0", "class 1", ... are default names, not grades.

    >>> are_grades(["grade 0", "grade 1", "grade 2"]), are_grades(["class 0", "class 1", "class 2"])
    (True, False)
    """
    found = [_GRADE.fullmatch(name.strip()) for name in classes]
    matches = [match for match in found if match is not None]
    if len(classes) < 3 or len(matches) < len(classes):
        return False
    words = {match[1].strip().lower() for match in matches}
    numbers = [int(match[2]) for match in matches]
    steps = {b - a for a, b in pairwise(numbers)}
    return len(words) == 1 and words != {"class"} and steps == {1}
