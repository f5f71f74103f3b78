"""The splits of a run's data, as its receipt states them, and records that are in two of them.

A record is repeated if another split has a sample with the same content digest. A model that was
trained on a record of the test split scores too well there, so repeated records are counted, and a
run with more of them than the catalog or the user accepts is refused. A near duplicate, such as a
copy with one value changed, has another digest and is not found.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seedless.core.config import DataConfig
from seedless.core.dataset import ROLES, Dataset
from seedless.core.digests import digest_value
from seedless.core.errors import DataError
from seedless.data.catalog import CATALOG

Contents = Mapping[str, NDArray[np.uint8]]  # split -> content digests of its samples, (n, 32)

# The facts of the data that the digest of a receipt of schema 2 is made from.
_BOUND = ("classes", "content", "protocol", "splits", "task")


def describe_dataset(data: Dataset) -> dict[str, Any]:
    """Return what a receipt states of the content of a dataset and of its splits."""
    contents = group_contents(data)
    facts = {
        "content": data.digest,
        "protocol": {split: sorted(folds) for split, folds in data.protocol.items()},
        "splits": {split: data.digest_split(split) for split in contents},
        "records": {split: len(content) for split, content in contents.items()},
        "repeated": count_repeated(contents),
        "task": data.task,
        "classes": list(data.classes),
    }
    return {**facts, "digest": digest_facts(facts)}


def group_contents(data: Dataset) -> Contents:
    """Return the content digests of each split that has records."""
    return {split: data.digests[rows] for split in data.protocol if len(rows := data.rows(split))}


def digest_facts(facts: Mapping[str, Any]) -> str:
    """Return one digest of the content of the data and of the role that each record has."""
    return digest_value({name: facts[name] for name in _BOUND})


def count_repeated(contents: Contents) -> dict[str, int]:
    """Return, for each pair of splits, how many records of the second the first has too.

    >>> import numpy as np
    >>> one, two = np.zeros((1, 32), np.uint8), np.ones((1, 32), np.uint8)
    >>> count_repeated({"train": np.concatenate([one, two]), "test": one})
    {'train/test': 1}
    """
    return {
        f"{first}/{second}": len(_find_rows(contents[first], contents[second]))
        for first, second in combinations((role for role in ROLES if role in contents), 2)
    }


def name_repeated(contents: Contents, names: Mapping[str, Sequence[str]]) -> str:
    """Return the first repeated record in words, by its names in both splits, or ""."""
    for first, second in combinations((role for role in ROLES if role in contents), 2):
        for row in _find_rows(contents[first], contents[second])[:1]:
            same = (contents[first] == contents[second][row]).all(axis=1)
            twin = int(np.flatnonzero(same)[0])
            return f"{names[first][twin]} ({first}) and {names[second][row]} ({second})"
    return ""


def refuse_repeated(facts: Mapping[str, Any], config: DataConfig, example: str) -> None:
    """Refuse data with more repeated records than are catalogued or accepted.

    Args:
        facts: what the receipt states of the data.
        example: one repeated record in words, as `name_repeated` returns it.
    """
    catalogued, count = _get_catalogued(config), sum(facts["repeated"].values())
    if catalogued is not None and config.repeated is not None:
        raise DataError(
            f"data.repeated is {config.repeated}, but the catalog knows that {config.name} has "
            f"{catalogued} records that are in two splits: leave data.repeated out"
        )
    if count <= count_accepted(config):
        return
    advice = (
        "this is not the published file: get it again"
        if catalogued is not None
        else f"take them out of one split, or accept them with data.repeated={count}, which the "
        "receipt and every verdict then state"
    )
    pairs = ", ".join(f"{pair} {number}" for pair, number in facts["repeated"].items() if number)
    raise DataError(
        f"{config.name}: records in two splits: expected at most {count_accepted(config)}, found "
        f"{count} ({pairs}), for example {example}. A model must not be tested on what it was "
        f"trained on: {advice}"
    )


def count_accepted(config: DataConfig) -> int:
    """Return how many repeated records the catalog has or, where it has no count, the user accepts.

    >>> count_accepted(DataConfig(name="breastmnist"))
    1
    """
    catalogued = _get_catalogued(config)
    return (config.repeated or 0) if catalogued is None else catalogued


def describe_repeated(repeated: Mapping[str, int], config: DataConfig) -> str:
    """Return the count of repeated records in words; "" where there are none.

    >>> describe_repeated({"train/val": 0, "train/test": 1}, DataConfig(name="breastmnist"))
    '1 record is in two splits (catalogued: 1)'
    """
    count = sum(repeated.values())
    if count == 0:
        return ""
    subject = "1 record is" if count == 1 else f"{count:,} records are"
    source = "accepted" if _get_catalogued(config) is None else "catalogued"
    return f"{subject} in two splits ({source}: {count_accepted(config):,})"


def _get_catalogued(config: DataConfig) -> int | None:
    entry = CATALOG.get(config.name)
    return None if entry is None else entry.repeated


def _find_rows(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> list[int]:
    """Return the rows of the second array of digests that the first one holds too."""
    known = {row.tobytes() for row in first}
    return [number for number, row in enumerate(second) if row.tobytes() in known]
