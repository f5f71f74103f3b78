"""External datasets: recordings that a finished model is tested on without training on any of them.

A model whose training records are z-scored lead by lead has never seen millivolts. For such a model
the recordings of an external dataset are filtered and z-scored too.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

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

CLASS = "AFIB"
SIX_LEADS = 'data.leads="6"'
SIMULATED = "simulated, other records"
FIRST_RECORD = 1_000_000  # of the simulated records: beyond every record of a preset
RECORDS = {"smoke": 400, "small": 1500, "paper": 6000}  # that are simulated
RESAMPLES = 40  # the fewest that are allowed: the interval of the macro AUC is not used
BAND = (0.5, 40.0)  # Hz
FILTER_ORDER = 3
TOLERANCE = 0.05  # of a lead's mean from 0 and of its SD from 1, in all but a hundredth of leads
FLAT_SD = 1e-6  # a lead with a smaller SD is set to 0

STANDARDIZED_NOTE = (
    "The training records are z-scored lead by lead. Those of the other sets are brought into that "
    f"form: each lead of 10 s filtered to {BAND[0]:g}-{BAND[1]:g} Hz (Butterworth, order "
    f"{FILTER_ORDER}, forwards and backwards) and z-scored."
)


@dataclass(frozen=True)
class Source:
    """How a dataset is read; ``remark`` says in what it is not the published one."""

    reader: str
    settings: tuple[str, ...] = ()
    remark: str = ""


@dataclass(frozen=True)
class ExternalDataset:
    """A dataset to test models on.

    Attributes:
        path: its folder; None for ``records`` simulated ones.
        standardized: whether its records are filtered and z-scored first.
    """

    name: str
    path: Path | None
    source: Source
    records: int = 0
    standardized: bool = False


@dataclass(frozen=True)
class ExternalScore:
    """The scores of a model on a dataset, for the class `CLASS`.

    ``auc`` is None without positives or negatives. ``calls``: the share of records in which the
    model finds the class; None where the run has no threshold.
    """

    n: int
    positives: int
    auc: float | None
    calls: float | None


SCORE_FORM = {
    "n": int,
    "positives": int,
    "auc": (float, int, type(None)),
    "calls": (float, int, type(None)),
}
SOURCES: dict[str, Source] = {
    "afdb": Source("afdb"),
    "cpsc2018": Source("cpsc2018", (SIX_LEADS,)),
    "cpsc2018-original": Source("cpsc2018-original", (SIX_LEADS,)),
    "chapman": Source("chapman", (SIX_LEADS,)),
    "challenge": Source(
        "challenge", (SIX_LEADS,), "approximate: a challenge's records of any source"
    ),
    "mitdb": Source(
        "rhythms",
        ('data.lead_map={MLII="II", V1="I", V2="I", V4="I", V5="I"}',),
        "approximate: MIT-BIH Arrhythmia in place of AFDB; MLII and a chest lead taken as II and I",
    ),
    "cpsc2021": Source(
        "rhythms", (), "approximate: CPSC 2021 in place of AFDB; leads I and II as named"
    ),
    "rhythms": Source("rhythms", (), "approximate: records of one's own"),
}


def list_external_datasets(options: StudyOptions) -> tuple[ExternalDataset, ...]:
    """Return the datasets of --other, or simulated records that no model was trained on."""
    if not options.other:
        remark = "approximate: simulated records stand in for another hospital's"
        source = Source("simulated", (), remark)
        return (ExternalDataset(SIMULATED, None, source, RECORDS[options.size.name]),)
    datasets = []
    for text in options.other:
        name, equals, place = text.partition("=")
        if not equals or not place:
            raise StudyError(f"--other: expected NAME=PATH, such as afdb=data/afdb, got {text!r}")
        source = choose("other dataset", name, SOURCES)
        if not Path(place).is_dir():
            raise StudyError(f"--other {text}: there is no folder {str(place)!r}")
        datasets.append(ExternalDataset(name, Path(place), source))
    names = [dataset.name for dataset in datasets]
    if len(set(names)) < len(names):
        raise StudyError(f"--other: each name once, got {', '.join(names)}")
    return tuple(datasets)


def evaluate_runs(runs: Sequence[Path], dataset: ExternalDataset) -> tuple[ExternalScore, ...]:
    """Return the scores of each run on a dataset that it was not trained on."""
    records = digest_dataset(dataset)
    with _prepare(dataset) as (data, settings):
        return tuple(_evaluate(run, dataset, records, data, settings) for run in runs)


def _evaluate(
    run: Path, dataset: ExternalDataset, records: str, data: str, settings: Sequence[str]
) -> ExternalScore:
    """Test a model on a dataset and store the scores; a stripped run has those stored with it."""
    name = f"on-{dataset.name.replace(', ', '-').replace(' ', '-')}"
    name += "-standardized" if dataset.standardized else ""
    if not (run / WEIGHTS).exists():
        finding = read_finding(run, name, {"records": str, "verdict": SCORE_FORM})
        if finding is None or finding["records"] != records:
            raise StudyError(
                f"{run} is a stripped run without weights, and has no scores on these records of "
                f"{dataset.name}; archive it with --weights, or tabulate the study first where the "
                "weights are"
            )
        return ExternalScore(**finding["verdict"])
    scores = evaluate(run, data=data, settings=settings, split=WHOLE, resamples=RESAMPLES).scores
    score = read_score_of_class(scores, f"{run} on {data}")
    write_finding(run, name, {"records": records, "verdict": asdict(score)})
    return score


def digest_dataset(dataset: ExternalDataset) -> str:
    """Return a digest of the files of a dataset, or of what is simulated in its place."""
    if dataset.path is None:
        return digest_value({"simulated": dataset.records, "from": FIRST_RECORD})
    files = sorted(path for path in dataset.path.rglob("*") if path.is_file())
    return digest_value({str(f.relative_to(dataset.path)): hash_file(f) for f in files})


def read_score_of_class(scores: Mapping[str, Any] | None, where: str) -> ExternalScore:
    """Return the scores of `CLASS` in the scores of a split."""
    if scores is None or CLASS not in scores["classes"]:
        raise StudyError(f"{where}: there is no score of {CLASS}; choose data that have this class")
    part = scores["classes"][CLASS]
    calls = None if part["tp"] is None else (part["tp"] + part["fp"]) / scores["n"]
    return ExternalScore(scores["n"], part["positives"], part["auc"], calls)


def describe_dataset(dataset: ExternalDataset) -> str:
    """Return how many recordings and people a dataset has, and the warnings of its reader."""
    data = _read(dataset)
    recordings = {str(name).rpartition("/")[0] or str(name) for name in data.ids}
    people = "" if data.patients is None else f" of {len(set(data.patients))} people"
    seconds = f" of {data.X.shape[-1] / data.fs:g} s" if data.fs else ""
    counted = f"{len(data)} windows{seconds}, {len(recordings)} recordings{people}"
    return " ".join([f"{dataset.name}: {counted}.", *(f"{word}." for word in data.warnings)])


def _read(dataset: ExternalDataset) -> Dataset:
    if dataset.path is None:
        return simulate_ecg(dataset.records, start=FIRST_RECORD, leads="6")
    config = Config().change(data={"name": dataset.source.reader})
    return load(override(config, _list_settings(dataset)).data)


def _list_settings(dataset: ExternalDataset) -> tuple[str, ...]:
    return (f"data.path={json.dumps(str(dataset.path))}", *dataset.source.settings)


@contextmanager
def _prepare(dataset: ExternalDataset) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the name and the settings to read a dataset by.

    Records that are simulated or standardized are written to a temporary file first.
    """
    if dataset.path is not None and not dataset.standardized:
        yield dataset.source.reader, _list_settings(dataset)
        return
    data = _read(dataset)
    if data.fs is None or data.leads is None:
        raise StudyError(f"--other {dataset.name}: expected recordings of named leads, got images")
    samples = standardize(data.X, data.fs) if dataset.standardized else data.X
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


def is_standardized(config: Config) -> bool:
    """Return whether the leads of a run's training records have mean 0 and SD 1."""
    records = load(config.data).X
    if records.ndim != 3:
        return False
    means, deviations = records.mean(axis=2), records.std(axis=2)
    far = (np.abs(means) > TOLERANCE) | (np.abs(deviations - 1) > TOLERANCE)
    return bool(far.mean() < 0.01)


def standardize(records: NDArray[np.float32], fs: float) -> NDArray[np.float32]:
    """Return records (n, leads, time) filtered and z-scored, each lead of each record by itself."""
    from scipy.signal import butter, sosfiltfilt

    high = min(BAND[1], 0.45 * fs)
    sections = butter(FILTER_ORDER, (BAND[0], high), btype="bandpass", fs=fs, output="sos")
    plain = sosfiltfilt(sections, records.astype(np.float64), axis=2)
    plain -= plain.mean(axis=2, keepdims=True)
    spread = plain.std(axis=2, keepdims=True)
    scaled = np.divide(plain, spread, out=np.zeros_like(plain), where=spread > FLAT_SD)
    return np.asarray(scaled, dtype=np.float32)
