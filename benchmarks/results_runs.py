"""What the pages of docs/results say of one run, read from its folder once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from seedless.core.config import DataConfig
from seedless.core.digests import digest_value
from seedless.data.loading import load
from seedless.proof.receipt import get_content_digest, read_receipt
from seedless.studies.engine.findings import PROOF, PROOF_FORM, read_finding
from seedless.studies.engine.store import Outcome
from seedless.train.log import LOG_FILE, read_log


@dataclass(frozen=True)
class RunRecord:
    """A run as the pages describe it.

    Attributes:
        row: its key and error; where it finished its scores, and the digests of its receipt.
        environment: the whole environment that its receipt names; {} where it failed.
        place: the same in short: device, versions, mode and precision.
        records: how many records it was trained, validated and tested with.
        labelled: how many of all records carry a label, and how many records there are.
        seconds: spent on epochs, by its log.
        proof: what a second execution gave, "identical" or "differs"; None without one.
    """

    row: dict[str, Any]
    environment: dict[str, Any]
    place: dict[str, Any]
    records: dict[str, int]
    labelled: list[int]
    seconds: float
    proof: str | None


def describe_run(one: Outcome) -> RunRecord:
    """Return the record of a run, from its folder."""
    row: dict[str, Any] = {"key": one.point.key, "error": one.error}
    if not one.ok:
        return RunRecord(row, {}, {}, {}, [], 0.0, None)
    claims = read_receipt(one.run)["predicate"]
    row |= {
        "receipt": claims["digest"],
        "scores": _list_scores(one),
        "config": claims["config"]["digest"],
        "source": claims["source"]["digest"],
        "data": get_content_digest(claims),
        "initialization": claims["initialization"]["weights"],
        "trail": claims["trail"],
        "weights": claims["weights"],
        "predictions": claims["predictions"],
        "environment": digest_value(claims["environment"]),
    }
    proof = read_finding(one.run, PROOF, PROOF_FORM)
    return RunRecord(
        row,
        claims["environment"],
        _describe_place(claims),
        claims["data"]["records"],
        list(_count_labelled(one.point.config.data.model_dump_json())),
        round(sum(line["seconds"] for line in read_log(one.run / LOG_FILE)), 3),
        None if proof is None else proof["outcome"],
    )


def list_receipts(outcomes: Iterable[Outcome], records: Iterable[RunRecord]) -> dict[str, Any]:
    """Return what each run's receipt says in short, its scores, and the environments they name."""
    labels = {one.point.key: one.point.label for one in outcomes}
    runs, environments = [], {}
    for record in records:
        runs.append({**record.row, "run": labels[record.row["key"]]})
        if record.environment:
            environments[record.row["environment"]] = record.environment
    return {"runs": runs, "environments": environments}


def list_places(records: Iterable[RunRecord]) -> list[dict[str, Any]]:
    """Return where runs were made, with the number of runs of each place."""
    made = [record.place for record in records if record.place]
    counts = Counter(digest_value(place) for place in made)
    places = {digest_value(place): place for place in made}
    return [{**places[key], "runs": counts[key]} for key in sorted(counts)]


def count_proofs(records: Iterable[RunRecord]) -> dict[str, int]:
    """Return how many runs were executed again, and how many of them gave the same bits."""
    found = [record.proof for record in records if record.proof is not None]
    return {"all": len(found), "identical": found.count("identical")}


def _list_scores(one: Outcome) -> dict[str, Any]:
    """Return the test scores of a finished run: macro AUC, and the AUC of each class by name."""
    test = (one.metrics or {}).get("test")
    if test is None:
        return {}
    classes = {name: part["auc"] for name, part in test["classes"].items()}
    return {"macro_auc": test["macro_auc"], "classes": classes}


def _describe_place(claims: dict[str, Any]) -> dict[str, Any]:
    """Return in short where a finished run was made."""
    machine, execution = claims["environment"], claims["config"]["values"]["execution"]
    on_gpu = execution["device"] == "cuda" and machine["devices"]
    return {
        "device": machine["devices"][0]["name"] if on_gpu else machine["cpu"]["model"],
        "python": machine["python"],
        "torch": machine["packages"]["torch"],
        "mode": execution["mode"],
        "precision": execution["precision"],
        "source": claims["source"]["digest"],
        "version": claims["source"]["version"],
    }


def _count_labelled(settings: str) -> tuple[int, int]:
    """Return how many records carry a label, of how many. Folds do not choose records."""
    whole = DataConfig.model_validate_json(settings).model_copy(
        update={"test_fold": None, "val_fold": None}
    )
    return _load_and_count(whole.model_dump_json())


@cache
def _load_and_count(settings: str) -> tuple[int, int]:
    dataset = load(DataConfig.model_validate_json(settings))
    return int(dataset.Y.any(axis=1).sum()), len(dataset)
