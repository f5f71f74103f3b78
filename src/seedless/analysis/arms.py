"""The runs of one arm of a comparison: run folders, or anyone's JSON files of results."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seedless.core.bounded_reading import MAX_JSON_BYTES, parse_json, read_file
from seedless.core.config import REPLICATE_KEYS, flatten
from seedless.core.errors import StatsError, UnknownNameError
from seedless.core.files import hash_file, match_paths
from seedless.core.registry import suggest
from seedless.init.starts import write_out_defaults
from seedless.models import MODELS
from seedless.proof.receipt import get_content_digest
from seedless.runs.streamed_results import has_user_loss
from seedless.runs.validation import open_validated
from seedless.stats.samples import read_sample

_IN_NAME = re.compile(r"(?:^|[_-])(?:b?s|seed)[_-]?(\d+)(?=[_.-]|$)")


@dataclass(frozen=True, eq=False)
class ScoredRun:
    """The score of one run, and the facts that a fair comparison needs.

    Attributes:
        path: None for a plain number.
        identity: digest of the weights, or of a JSON file: runs with equal ones are one run.
        seeds: the numbers by which the run can be matched, by name.
        settings: the flat configuration; empty for a JSON file, as are the next three.
        problem: digest of the data, task and classes.
        positives: of each class that the score is about.
        converged: whether the run's metrics say so.
    """

    path: Path | None
    score: float
    identity: str
    seeds: Mapping[str, int]
    settings: Mapping[str, Any] = field(default_factory=dict)
    problem: Mapping[str, Any] = field(default_factory=dict)
    positives: Mapping[str, int] = field(default_factory=dict)
    converged: bool | None = None
    source: str | None = None


@dataclass(frozen=True, eq=False)
class ArmRuns:
    """All runs of an arm, sorted by path, and the files that matched but are not runs."""

    name: str
    runs: tuple[ScoredRun, ...]
    ignored: tuple[Path, ...] = ()

    @property
    def scores(self) -> list[float]:
        """The score of each run."""
        return [run.score for run in self.runs]


def collect_runs(
    name: str, places: Sequence[str | Path], metric: str, split: str, key: str | None
) -> ArmRuns:
    """Read the runs that a pattern names; with ``key``, the JSON files and that field of each."""
    paths = _expand(name, places)
    if key is not None:
        return ArmRuns(name, tuple(_read_file(path, key) for path in paths))
    folders = [path for path in paths if path.is_dir()]
    if not folders:
        raise StatsError(
            f"arm {name}: {paths[0]} is a file. For JSON files say which number to read, such as "
            "--field auc; for runs name their folders"
        )
    files = tuple(path for path in paths if not path.is_dir())
    return ArmRuns(name, tuple(_read_run(path, metric, split) for path in folders), files)


def number_runs(name: str, values: Iterable[float], paired: bool) -> ArmRuns:
    """Return plain numbers as an arm, matched by position where they are pairs."""
    numbers = read_sample(values, f"arm {name}")
    return ArmRuns(
        name,
        tuple(
            ScoredRun(None, float(score), f"{name} {place}", {"place": place} if paired else {})
            for place, score in enumerate(numbers)
        ),
    )


def _expand(name: str, places: Sequence[str | Path]) -> list[Path]:
    """Return the paths that patterns match, each once, sorted."""
    paths: set[Path] = set()
    for place in places:
        matches = match_paths(place)
        if not matches:
            raise StatsError(f"arm {name}: nothing matches {str(place)!r}")
        paths.update(matches)
    return sorted(paths)


def _read_run(run: Path, metric: str, split: str) -> ScoredRun:
    claims = open_validated(run).claims
    metrics, data, source = claims["metrics"], claims["data"], claims["source"]
    if has_user_loss(claims):
        raise StatsError(
            f"{run} is a run with a loss of its own, which has no scores of classes: compare its "
            "metrics.json with --field, such as --field validation.loss"
        )
    problem = {name: data[name] for name in ("task", "classes")}
    problem["digest"] = get_content_digest(claims)
    settings = _write_out_start(flatten(claims["config"]["values"]))
    part = metrics.get(split) if split in ("test", "validation", "train") else None
    if not isinstance(part, dict):
        known = [name for name in ("test", "validation", "train") if name in metrics]
        raise StatsError(f"{run} has no scores of {split!r}; --split takes {', '.join(known)}")
    value, classes = _find_metric(run, part, metric)
    return ScoredRun(
        path=run,
        score=_read_number(value, f"{run}: {split} {metric}"),
        identity=claims["weights"]["digest"],
        seeds={name: settings[name] for name in REPLICATE_KEYS if settings.get(name) is not None},
        settings=settings,
        problem=problem,
        positives={name: part["classes"][name]["positives"] for name in classes},
        converged=metrics["converged"],
        source=source["digest"],
    )


def _write_out_start(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with residual scale and head as the start had them.

    Two arms that leave them out may differ in them, because their starts have other defaults.
    """
    model = MODELS.get(settings["model.name"])
    declared = "as declared" if model is None else model.head
    scale, heads = write_out_defaults(
        settings["init.basis"], settings["init.residual_scale"], settings["init.heads"], declared
    )
    return {**settings, "init.residual_scale": scale, "init.heads": heads}


def _find_metric(run: Path, part: Mapping[str, Any], metric: str) -> tuple[Any, list[str]]:
    """Return a score and the classes it is about; "auc:AFIB" is the AUC of one class."""
    name, colon, label = metric.partition(":")
    classes = part["classes"]
    if not colon:
        return look_up(part, metric, f"{run}: metric"), list(classes)
    if label not in classes:
        raise UnknownNameError(
            f"{run}: unknown class {label!r}{suggest(label, classes)}; known: {', '.join(classes)}"
        )
    return look_up(classes[label], name, f"{run}: metric of {label}"), [label]


def _read_file(path: Path, key: str) -> ScoredRun:
    try:
        content = read_file(path, MAX_JSON_BYTES, follow_links=True, error=StatsError)
    except IsADirectoryError:
        raise StatsError(f"{path} is a folder; --field reads JSON files, leave it out") from None
    except OSError as error:
        raise StatsError(f"cannot read {path}: {error.strerror}") from None
    content = parse_json(content, str(path), allow_nan=True, error=StatsError)
    seeds = {}
    stored = content.get("seed") if isinstance(content, dict) else None
    if isinstance(stored, int) and not isinstance(stored, bool):
        seeds["the field seed"] = stored
    if digits := _IN_NAME.findall(path.stem):
        seeds["the seed in the file name"] = int(digits[-1])
    score = _read_number(look_up(content, key, f"{path}: field"), f"{path}: {key}")
    return ScoredRun(path, score, hash_file(path), seeds)


def look_up(content: Any, key: str, where: str) -> Any:
    """Return the value at a dotted path such as per_auc.AFIB or scores.0."""
    for part in key.split("."):
        if isinstance(content, dict):
            known = list(content)
        elif isinstance(content, list):
            known = [str(place) for place in range(len(content))]
        else:
            known = []
        if part not in known:
            shown = ", ".join(known[:12]) + (", ..." if len(known) > 12 else "")
            raise UnknownNameError(
                f"{where} {key!r}: there is no {part!r}{suggest(part, known)}; known: "
                f"{shown or 'nothing below a single value'}"
            )
        content = content[part] if isinstance(content, dict) else content[int(part)]
    return content


def _read_number(value: Any, where: str) -> float:
    if value is None:
        raise StatsError(
            f"{where} is undefined for this run: it has only positives or only negatives"
        )
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise StatsError(f"{where}: expected a number, got {str(value)[:60]!r}")
    if not math.isfinite(value):
        raise StatsError(f"{where} is {value}: leave the run out, or find out why it has no score")
    return float(value)
