"""What a receipt states of its data: is it consistent, and does it suit the settings?

Nothing is read here but the receipt and the configuration. Whether the data are as stated is found
by executing the run again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from seedless.core.config import DataConfig
from seedless.core.dataset import ROLES, check_protocol
from seedless.core.errors import SeedlessError
from seedless.core.mismatch import is_same_json
from seedless.data.loading import choose_splits
from seedless.data.splits import count_accepted, digest_facts
from seedless.proof.receipt import get_major
from seedless.runs.prepare import USER_MODEL

if TYPE_CHECKING:
    from seedless.runs.validation import ValidatedRun

_SCORED = {"val": "validation", "test": "test"}  # the splits of the data, by their names in metrics


def check_data(run: ValidatedRun) -> list[str]:
    """Return what is wrong with the records and splits that a receipt states of its data."""
    facts, config, metrics = run.claims["data"], run.config.data, run.claims["metrics"]
    problems = [
        f"the {scored} scores are of {metrics[scored]['n']} records, the data have "
        f"{facts['records'].get(split)}"
        for split, scored in _SCORED.items()
        if scored in metrics and metrics[scored]["n"] != facts["records"].get(split)
    ]
    if get_major(run.claims["schema"]) == "1":
        return problems  # schema 1 states nothing of the splits but their records
    # [Step 1] The digest covers the content, the role of every record, and the classes.
    if digest_facts(facts) != facts["digest"]:
        problems.append("the digest of the data is not that of their content and splits")
    # [Step 2] Each split has records and a digest, and each pair of splits a count.
    splits = [role for role in ROLES if role in facts["splits"]]
    pairs = [f"{a}/{b}" for place, a in enumerate(splits) for b in splits[place + 1 :]]
    if not {*splits} == {*facts["splits"]} == {*facts["records"]} or "train" not in splits:
        problems.append("the receipt does not state records and a digest for each split")
    counts = [*facts["records"].values(), *facts["repeated"].values()]
    if {*facts["repeated"]} != {*pairs} or not all(type(n) is int and n >= 0 for n in counts):
        problems.append("the receipt does not count the records that are in two splits")
    elif sum(facts["repeated"].values()) > count_accepted(config):
        problems.append(
            f"records in two splits: expected at most {count_accepted(config)}, as catalogued or "
            f"accepted, got {sum(facts['repeated'].values())}"
        )
    # [Step 3] The folds of each split are those that the configuration gives it.
    return problems + check_splits(facts, config)


def check_splits(facts: Mapping[str, Any], config: DataConfig) -> list[str]:
    """Compare the folds of each split with the configuration; `fit` has splits without folds."""
    protocol = facts["protocol"]
    if config.name == USER_MODEL:
        return [] if protocol is None else ["the receipt of a run of fit() states folds"]
    try:
        check_protocol(protocol, "the receipt")
        folds = np.array([fold for split in protocol.values() for fold in split], dtype=np.int64)
        expected = choose_splits(config, folds)
    except SeedlessError as error:
        return [str(error)]
    if not is_same_json(protocol, {split: sorted(expected[split]) for split in expected}):
        return ["the folds of the splits in the receipt are not those that config.toml gives them"]
    return []
