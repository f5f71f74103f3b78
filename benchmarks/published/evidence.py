"""The files of a paper's runs, read by seed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seedless.stats.compare import describe_arm
from seedless.stats.samples import split_converged

MIXED = "ecg/conformer_mixed/conformer_ms_s*_metrics.json"
KAIMING = "ecg/conformer_kaiming/conformer_kaiming_s*_metrics.json"
WEIGHTED = "basis_comparison/conformer_kaiming_cw/conformer_kaiming_cw_s*_metrics.json"
GOLDEN = "ecg/golden/conformer_combined_golden_metrics.json"
BASES = ("dct", "hadamard", "hartley", "sinusoidal")
COLLAPSED = 0.67  # the paper's bar for a conformer with class weights

Seeded = dict[int, float]


@dataclass(frozen=True)
class Found:
    """A claim's value from the files, how many runs it rests on, and what else they show."""

    value: Any
    n: tuple[int, ...]
    remark: str = ""


Claim = Callable[[Path], Found]


def read_json(folder: Path, name: str) -> Any:
    """Return the content of one file."""
    return json.loads((folder / name).read_text(encoding="utf-8"))


def find_files(folder: Path, pattern: str) -> dict[int, Path]:
    """Return the files of a pattern by their seed, in the order of the seeds."""
    found: dict[int, Path] = {}
    for path in folder.glob(pattern):
        seed = int(re.findall(r"_b?s(\d+)_", path.name)[0])
        if seed in found:
            raise ValueError(f"{pattern}: two files have the seed {seed}")
        found[seed] = path
    if not found:
        raise FileNotFoundError(f"no file in {folder} is {pattern}")
    return dict(sorted(found.items()))


def read_seeds(folder: Path, pattern: str, *field: str | int) -> Seeded:
    """Return one number a run, by its seed; the macro AUC where no field is named."""
    found: Seeded = {}
    for seed, path in find_files(folder, pattern).items():
        value = json.loads(path.read_text(encoding="utf-8"))
        for key in field or ("auc",):
            value = value[key]
        found[seed] = value
    return found


def name_basis(name: str) -> str:
    """Return the pattern of the twenty runs of one basis."""
    return f"basis_comparison/conformer_{name}/conformer_{name}_s*_metrics.json"


def drop_collapsed(runs: Seeded, above: float = COLLAPSED) -> Seeded:
    """Return the runs that converged."""
    places = split_converged(runs.values(), above).places
    return {seed: runs[seed] for place, seed in enumerate(runs) if place in places}


def summarize(folder: Path, pattern: str, above: float | None = None, n: bool = True) -> Found:
    """Mean, sample SD, and number of runs."""
    runs = read_seeds(folder, pattern)
    kept = runs if above is None else drop_collapsed(runs, above)
    arm = describe_arm(pattern, kept.values())
    lost = {seed: value for seed, value in runs.items() if seed not in kept}
    remark = f"set aside by seed: {lost}" if lost else ""
    return Found([arm.mean, arm.sd, *([arm.n] if n else [])], (arm.n,), remark)


def pair_up(a: Seeded, b: Seeded) -> tuple[list[float], list[float]]:
    """Return the values of the seeds that both have."""
    shared = [seed for seed in a if seed in b]
    return [a[seed] for seed in shared], [b[seed] for seed in shared]
