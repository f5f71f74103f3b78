"""The records to which two models give different answers. An answer is the most probable class.

The most probable class needs no threshold, so no record changes because of how a threshold was
chosen. It suits records with about one label each. An answer is *right* where
the class is one of the record's labels; with several labels, two different answers may be right.
"""

from dataclasses import dataclass

import numpy as np

from seedless.evaluate.churn import Share, check_comparable, find_share
from seedless.evaluate.intervals import LEVEL
from seedless.evaluate.predictions import Predictions


@dataclass(frozen=True)
class ChangedAnswer:
    """A record with the names of its labels, and the answer and its probability in each run."""

    id: str
    labels: tuple[str, ...]
    answers: tuple[str, str]
    probabilities: tuple[float, float]


@dataclass(frozen=True)
class ChangedAnswers:
    """How many records change, and in how many of them which of the two answers is right."""

    share: Share
    first_only: int
    second_only: int
    both: int
    neither: int
    records: tuple[ChangedAnswer, ...]


def compare_answers(
    first: Predictions, second: Predictions, split: str = "test", level: float = LEVEL
) -> ChangedAnswers:
    """Return the records whose most probable class differs; records are matched by id."""
    check_comparable(("the first run", "the second run"), (first, second), split)
    # [Step 1] Bring the records of both into the order of their ids.
    parts = (first.splits[split], second.splits[split])
    orders = [np.argsort(part.ids) for part in parts]
    ids, labels = parts[0].ids[orders[0]], parts[0].labels[orders[0]]
    probabilities = [part.probabilities[order] for part, order in zip(parts, orders, strict=True)]
    # [Step 2] The answers, and whether each is one of the labels.
    rows = np.arange(len(ids))
    answers = [one.argmax(axis=1) for one in probabilities]
    is_right = [labels[rows, one] == 1 for one in answers]
    changed = answers[0] != answers[1]
    one, two = (right[changed] for right in is_right)
    # [Step 3] The records that change.
    names = first.classes
    records = tuple(
        ChangedAnswer(
            id=str(ids[row]),
            labels=tuple(name for name, hot in zip(names, labels[row], strict=True) if hot),
            answers=(names[answers[0][row]], names[answers[1][row]]),
            probabilities=(float(probabilities[0][row].max()), float(probabilities[1][row].max())),
        )
        for row in np.flatnonzero(changed)
    )
    return ChangedAnswers(
        share=find_share(changed, level),
        first_only=int((one & ~two).sum()),
        second_only=int((two & ~one).sum()),
        both=int((one & two).sum()),
        neither=int((~one & ~two).sum()),
        records=records,
    )
