"""Datasets a finished model is tried on: by name and path, each called what it is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from seedless.analysis.evaluation import evaluate
from seedless.analysis.external_data import WHOLE
from seedless.core.config import Config, override
from seedless.core.dataset import Dataset
from seedless.core.digests import digest_value
from seedless.core.errors import StudyError
from seedless.core.files import hash_file
from seedless.core.registry import choose
from seedless.data.loading import load
from seedless.data.simulators.ecg import simulate_ecg
from seedless.proof.receipt import WEIGHTS
from seedless.studies.engine.findings import read_finding, write_finding
from seedless.studies.engine.options import StudyOptions
from seedless.studies.protocols.standardize import standardize

CLASS = "AFIB"
SIX = 'data.leads="6"'
SIMULATED = "simulated, other records"
FIRST = 1_000_000  # beyond every record of a preset
RESAMPLES = 40  # as few as may be: the macro interval is not looked at
COUNTS = {"smoke": 400, "small": 1500, "paper": 6000}


@dataclass(frozen=True)
class Kind:
    """How a set is read, and in what it is not a published one; "" where it is."""

    reader: str
    settings: tuple[str, ...] = ()
    remark: str = ""


@dataclass(frozen=True)
class ExternalDataset:
    """A set to try models on. ``path`` is None where it is simulated: ``records`` of them.

    ``standard``: its records are filtered and z-scored first, as the models' own were.
    """

    name: str
    path: Path | None
    kind: Kind
    records: int = 0
    standard: bool = False


@dataclass(frozen=True)
class ExternalScore:
    """What a run's model is worth on a set, for the one class that is asked about.

    ``auc`` is None without positives or negatives, ``calls``, the share of records that are
    called, where the run had no threshold.
    """

    n: int
    positives: int
    auc: float | None
    calls: float | None


KINDS: dict[str, Kind] = {
    "afdb": Kind("afdb"),
    "cpsc2018": Kind("cpsc2018", (SIX,)),
    "cpsc2018-original": Kind("cpsc2018-original", (SIX,)),
    "chapman": Kind("chapman", (SIX,)),
    "challenge": Kind("challenge", (SIX,), "approximate: a challenge's records of any source"),
    "mitdb": Kind(
        "rhythms",
        ('data.lead_map={MLII="II", V1="I", V2="I", V4="I", V5="I"}',),
        "approximate: MIT-BIH Arrhythmia in place of AFDB; MLII and a chest lead taken as II and I",
    ),
    "cpsc2021": Kind(
        "rhythms", (), "approximate: CPSC 2021 in place of AFDB; leads I and II as named"
    ),
    "rhythms": Kind("rhythms", (), "approximate: records of one's own"),
}


def list_external_datasets(options: StudyOptions) -> tuple[ExternalDataset, ...]:
    """Return the sets that were named, or simulated records of which no model has seen any."""
    if not options.other:
        remark = "approximate: simulated records stand in for another hospital's"
        kind = Kind("simulated", (), remark)
        return (ExternalDataset(SIMULATED, None, kind, COUNTS[options.size.name]),)
    found = []
    for text in options.other:
        name, equals, place = text.partition("=")
        if not equals or not place:
            raise StudyError(f"--other: expected NAME=PATH, such as afdb=data/afdb, got {text!r}")
        kind = choose("other dataset", name, KINDS)
        if not Path(place).is_dir():
            raise StudyError(f"--other {text}: there is no folder {place}")
        found.append(ExternalDataset(name, Path(place), kind))
    names = [other.name for other in found]
    if len(set(names)) < len(names):
        raise StudyError(f"--other: each name once, got {', '.join(names)}")
    return tuple(found)


@lru_cache(maxsize=8)
def evaluate_runs(
    runs: tuple[tuple[Path, str], ...], other: ExternalDataset
) -> tuple[ExternalScore, ...]:
    """Return what each run, (folder, weights' digest), is worth on a set it was not trained on."""
    with _place(other) as (data, settings):
        return tuple(_judge(run, other, data, settings) for run, _ in runs)


def _judge(run: Path, other: ExternalDataset, data: str, settings: Sequence[str]) -> ExternalScore:
    """Try a model on a set and keep the verdict; a stripped run has the one that came with it."""
    name = f"on-{other.name.replace(', ', '-').replace(' ', '-')}"
    records = digest_dataset(other)
    name += "-standardized" if other.standard else ""
    if not (run / WEIGHTS).exists():
        found = read_finding(run, name)
        if found is None or found["records"] != records:
            raise StudyError(
                f"{run} is a stripped run without weights, and was not tried on these records of "
                f"{other.name} where it had them; bundle it with --weights, or tabulate the study "
                "there first"
            )
        return ExternalScore(**found["verdict"])
    scores = evaluate(run, data=data, settings=settings, split=WHOLE, resamples=RESAMPLES).scores
    verdict = read_score_of_class(scores, f"{run} on {data}")
    write_finding(run, name, {"records": records, "verdict": asdict(verdict)})
    return verdict


@lru_cache(maxsize=8)
def digest_dataset(other: ExternalDataset) -> str:
    """Return a digest of a set's files, or of what is simulated in its place."""
    if other.path is None:
        return digest_value({"simulated": other.records, "from": FIRST})
    files = sorted(path for path in other.path.rglob("*") if path.is_file())
    return digest_value({str(f.relative_to(other.path)): hash_file(f) for f in files})


def read_score_of_class(scores: Mapping[str, Any] | None, where: str) -> ExternalScore:
    """Return what the scores of a split say of the one class that is asked about."""
    if scores is None or CLASS not in scores["classes"]:
        raise StudyError(f"{where}: nothing is said of {CLASS}; choose data that have this class")
    part = scores["classes"][CLASS]
    calls = None if part["tp"] is None else (part["tp"] + part["fp"]) / scores["n"]
    return ExternalScore(scores["n"], part["positives"], part["auc"], calls)


@lru_cache(maxsize=8)
def describe_dataset(other: ExternalDataset) -> str:
    """Return of how many recordings and people a set is, and what its reader warned of."""
    data = _read(other)
    recordings = {str(name).rpartition("/")[0] or str(name) for name in data.ids}
    people = "" if data.patients is None else f" of {len(set(data.patients))} people"
    seconds = f" of {data.X.shape[-1] / data.fs:g} s" if data.fs else ""
    counted = f"{len(data)} windows{seconds}, {len(recordings)} recordings{people}"
    return " ".join([f"{other.name}: {counted}.", *(f"{word}." for word in data.warnings)])


def _read(other: ExternalDataset) -> Dataset:
    """Return a set's records as its reader has them, or simulated ones."""
    if other.path is None:
        return simulate_ecg(other.records, start=FIRST, leads="6")
    chosen = Config().change(data={"name": other.kind.reader})
    return load(override(chosen, _spell(other)).data)


def _spell(other: ExternalDataset) -> tuple[str, ...]:
    return (f"data.path={json.dumps(str(other.path))}", *other.kind.settings)


@contextmanager
def _place(other: ExternalDataset) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the name and the settings a set is read by; simulated records are written first."""
    if other.path is not None and not other.standard:
        yield other.kind.reader, _spell(other)
        return
    data = _read(other)
    if data.fs is None or data.leads is None:
        raise StudyError(f"--other {other.name}: expected recordings of named leads, got images")
    samples = standardize(data.X, data.fs) if other.standard else data.X
    with TemporaryDirectory() as folder:
        file = Path(folder) / "other.npz"
        np.savez(
            file,
            X=samples,
            Y=data.Y,
            folds=data.folds,
            ids=data.ids,
            classes=np.array(data.classes),
            leads=np.array(data.leads),
            fs=np.array(data.fs),
        )
        yield str(file), ()
