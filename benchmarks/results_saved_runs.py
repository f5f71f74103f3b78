"""Saved runs: the finished runs of studies that are not finished, in the repository.

    docs/results/kept/DIGEST.npz.xz

Each file is a part: some runs, with what `benchmarks.results` needs of them to write a page:
scores, digests of the receipt, environment, test predictions. Parts are only ever added, and each
is named by the digest of its content, so runs made on several days or machines join in one folder
and two branches never change the same file. Runs are identified by the key of their configuration;
two parts that hold one key must have the same weights.

The probabilities of a multi-label run are stored as float32 logits, which take half the space. That
is done only where the probabilities computed from them agree to the last bits of a float64 and give
the same AUC in every class. Otherwise the probabilities themselves are stored.
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.results_predictions import SPLIT, read_test_predictions
from benchmarks.results_runs import RunRecord, describe_run
from seedless.core.array_files import NUMBERS, TEXT, parse_npz
from seedless.core.bounded_reading import parse_json, read_file
from seedless.core.digests import canonical_json
from seedless.core.errors import StudyError
from seedless.core.files import write_atomic
from seedless.evaluate.auc import score_classes
from seedless.evaluate.predictions import Predictions, SplitPredictions
from seedless.studies.engine.grid import Point
from seedless.studies.engine.store import Outcome, State, Store

FOLDER = "kept"
# Studies whose tables need scores and predictions alone. Others read logs, weights or findings of a
# run's folder; their runs are archived (`seedless study archive`).
STUDIES = ("factorial", "main", "power", "ablation", "cv", "basis", "golden", "perclass", "order")
SCHEMA = 1
MAX_BYTES, MAX_UNPACKED = 2**25, 2**29
_NAME = re.compile(r"(?P<digest>[0-9a-f]{16})\.npz\.xz")
_ARRAY = re.compile(r"set[0-9]{1,4}_(ids|labels|classes|logits|probabilities)")


@dataclass(frozen=True)
class SavedRun:
    """A run of a part: its record, and what an `Outcome` holds of it."""

    record: RunRecord
    metrics: dict[str, Any] | None
    predictions: Predictions | None


def write_part(folder: Path, runs: Iterable[tuple[Outcome, RunRecord]]) -> Path | None:
    """Write some runs as a new part; None where there are none."""
    sets: dict[bytes, int] = {}
    arrays: dict[str, NDArray[Any]] = {}  # by their names in the file
    values: dict[tuple[int, str], list[NDArray[Any]]] = {}
    listed = []
    environments = {}
    for one, record in sorted(runs, key=lambda run: run[0].point.key):
        # [Step 1] What the page says of the run; the environment is held once.
        plain = asdict(record)
        if record.environment:
            environments[record.row["environment"]] = plain.pop("environment")
        entry: dict[str, Any] = {**plain, "metrics": _shorten_metrics(one.metrics)}
        # [Step 2] Its test predictions; runs tested on the same records share ids and labels.
        predictions = read_test_predictions(one)
        if predictions is not None:
            scored = predictions.splits[SPLIT]
            names = [scored.ids.tolist(), predictions.classes]
            number = sets.setdefault(canonical_json(names) + scored.labels.tobytes(), len(sets))
            kind, held = _pack_probabilities(predictions)
            group = values.setdefault((number, kind), [])
            entry |= {"set": number, "kind": kind, "place_in_set": len(group)}
            entry |= {"task": predictions.task}
            group.append(held)
            arrays[f"set{number}_ids"] = scored.ids
            arrays[f"set{number}_labels"] = scored.labels
            arrays[f"set{number}_classes"] = np.array(predictions.classes)
        listed.append(entry)
    if not listed:
        return None
    for (number, kind), group in values.items():
        whole = np.stack(group)
        arrays[f"set{number}_{kind}"] = _split_bytes(whole) if kind == "logits" else whole
    # [Step 3] One file, without times, so that the same runs give the same name.
    content = {"schema": SCHEMA, "runs": listed, "environments": environments}
    arrays["runs"] = np.frombuffer(canonical_json(content), np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **{name: arrays[name] for name in sorted(arrays)})
    digest = hashlib.sha256(buffer.getvalue()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{digest}.npz.xz"
    write_atomic(file, lzma.compress(buffer.getvalue(), preset=9))
    return file


def read_parts(folder: Path) -> dict[str, SavedRun]:
    """Return all saved runs by their keys.

    Where two parts have the same run, one with a second execution is preferred to one without, and
    a run that finished to one that failed.
    """
    runs: dict[str, SavedRun] = {}
    for file in sorted(folder.glob("*.npz.xz")):
        for run in _read_part(file):
            key = run.record.row["key"]
            known = runs.get(key)
            if known is not None and run.metrics is not None and known.metrics is not None:
                check_same_weights(key, known.record, run.record, file)
            if known is None or _count_known(run) > _count_known(known):
                runs[key] = run
    return runs


def check_same_weights(key: str, one: RunRecord, other: RunRecord, where: Path) -> None:
    """Refuse two runs of one configuration whose weights differ."""
    ours, theirs = (record.row["weights"]["digest"] for record in (one, other))
    if ours != theirs:
        raise StudyError(
            f"{where}: the run {key} has the weights {theirs[:23]}..., and the same run elsewhere "
            f"{ours[:23]}...: were they made on different machines? Save those of one only"
        )


def _count_known(run: SavedRun) -> int:
    return (run.metrics is not None) + (run.record.proof is not None)


def _read_part(file: Path) -> list[SavedRun]:
    # [Step 1] The bytes, within limits, and as their name says.
    named = _NAME.fullmatch(file.name)
    packed = read_file(file, MAX_BYTES, error=StudyError)
    try:
        content = lzma.LZMADecompressor().decompress(packed, MAX_UNPACKED)
    except lzma.LZMAError as error:
        raise StudyError(f"{file} cannot be unpacked: {error}; get it again") from None
    if named is None or hashlib.sha256(content).hexdigest()[:16] != named["digest"]:
        raise StudyError(f"{file}: its name is not the digest of its content; get it again")
    arrays = parse_npz(content, str(file), kinds=_find_kinds, max_arrays=4096, error=StudyError)
    if "runs" not in arrays:
        raise StudyError(f"{file} holds no runs; expected a file of `python -m benchmarks.results`")
    # [Step 2] The runs, each with the predictions that it names.
    listed = parse_json(arrays["runs"].tobytes(), str(file), error=StudyError)
    if listed.get("schema") != SCHEMA:
        raise StudyError(f"{file} has schema {listed.get('schema')!r}; expected {SCHEMA}")
    try:
        return [_read_run(entry, listed["environments"], arrays) for entry in listed["runs"]]
    except (LookupError, TypeError) as error:
        raise StudyError(f"{file} lacks a part of a run: {error!r}; get it again") from None


def _read_run(
    entry: dict[str, Any], environments: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> SavedRun:
    environment = environments[entry["row"]["environment"]] if entry["place"] else {}
    fields = ("row", "place", "records", "labelled", "seconds", "proof")
    record = RunRecord(environment=environment, **{name: entry[name] for name in fields})
    if "set" not in entry:
        return SavedRun(record, entry["metrics"], None)
    name = f"set{entry['set']}"
    labels, place = arrays[f"{name}_labels"], entry["place_in_set"]
    if entry["kind"] == "logits":
        planes = arrays[f"{name}_logits"][:, place]
        probabilities = _apply_sigmoid(_join_bytes(planes).reshape(labels.shape))
    else:
        probabilities = arrays[f"{name}_probabilities"][place]
    scored = SplitPredictions(arrays[f"{name}_ids"], probabilities, labels)
    predictions = Predictions(
        tuple(arrays[f"{name}_classes"].tolist()),
        record.row["weights"]["digest"],
        {SPLIT: scored},
        entry["task"],
    )
    return SavedRun(record, entry["metrics"], predictions)


def _find_kinds(name: str) -> str:
    return NUMBERS + TEXT if name == "runs" or _ARRAY.fullmatch(name) else ""


def _shorten_metrics(metrics: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return what tables read of a run's metrics: AUCs and counts, not thresholds or intervals."""
    if metrics is None:
        return None
    short = {name: metrics[name] for name in ("converged", "selected") if name in metrics}
    if SPLIT in metrics:
        test = metrics[SPLIT]
        short[SPLIT] = {name: v for name, v in test.items() if isinstance(v, int | float | None)}
        short[SPLIT]["classes"] = {
            name: {part: one[part] for part in ("auc", "positives")}
            for name, one in test["classes"].items()
        }
    return json.loads(canonical_json(short))  # type: ignore[no-any-return]


def _pack_probabilities(predictions: Predictions) -> tuple[str, NDArray[Any]]:
    """Return "logits" and float32 logits where they give the same scores; else probabilities."""
    scored = predictions.splits[SPLIT]
    probabilities = scored.probabilities
    with np.errstate(divide="ignore"):
        logits = (np.log(probabilities) - np.log1p(-probabilities)).astype(np.float32)
    if predictions.task == "multi-label" and np.isfinite(logits).all():
        back = _apply_sigmoid(logits)
        found, known = (
            score_classes(values, scored.labels, list(predictions.classes))
            for values in (back, probabilities)
        )
        # Two steps of a float64 in [0.5, 1): the most that exponentials of two machines differ.
        if found == known and np.abs(back - probabilities).max() <= 2.0**-52:
            return "logits", logits
    return "probabilities", probabilities


def _apply_sigmoid(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return probabilities as a run computes them: torch's sigmoid of float64."""
    import torch

    found: NDArray[np.float64] = torch.from_numpy(logits.astype(np.float64)).sigmoid().numpy()
    return found


def _split_bytes(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Return (4, runs, ...) bytes: like bytes lie side by side and compress better."""
    planes = values.astype("<f4").view(np.uint8).reshape(*values.shape, 4)
    return np.ascontiguousarray(np.moveaxis(planes, -1, 0))


def _join_bytes(planes: NDArray[np.uint8]) -> NDArray[np.float32]:
    joined: NDArray[np.float32] = np.ascontiguousarray(np.moveaxis(planes, 0, -1)).view("<f4")
    return joined


class JoinedStore(Store):
    """A store and the saved runs together: what one lacks is read from the other."""

    def __init__(self, folder: Path, kept: Mapping[str, SavedRun]) -> None:
        super().__init__(folder)
        self.kept = kept

    def state(self, point: Point) -> State:
        """Return the state of a run in the store; a saved run is done, or failed."""
        here = super().state(point)
        known = self.kept.get(point.key)
        if here == "done" or known is None:
            return here
        return "failed" if known.metrics is None else "done"

    def read(self, point: Point) -> Outcome:
        """Return how a run ended: from its folder, or as it was saved."""
        known = self.kept.get(point.key)
        if known is None or super().state(point) == "done":
            return super().read(point)
        row, run = known.record.row, self.run_folder(point)
        if known.metrics is None:
            return Outcome(point, run, None, None, row["error"])
        weights = row["weights"]["digest"]
        return Outcome(point, run, known.metrics, weights, None, row["data"], known.predictions)

    def describe(self, one: Outcome) -> RunRecord:
        """Return the record of a run that was read; if it was saved too, both must agree."""
        known = self.kept.get(one.point.key)
        if known is not None and super().state(one.point) != "done":
            return known.record
        record = describe_run(one)
        if known is not None and known.metrics is not None:
            check_same_weights(one.point.key, known.record, record, one.run)
            if record.proof is None:  # the folder was copied without it
                return replace(record, proof=known.record.proof)
        return record


def choose_new(
    pairs: Sequence[tuple[Outcome, RunRecord]], kept: Mapping[str, SavedRun]
) -> list[tuple[Outcome, RunRecord]]:
    """Return the runs that are not saved yet, or not with their second execution."""
    new = []
    for one, record in pairs:
        known = kept.get(one.point.key)
        now = (one.metrics is not None) + (record.proof is not None)
        if known is None or now > _count_known(known):
            new.append((one, record))
    return new
