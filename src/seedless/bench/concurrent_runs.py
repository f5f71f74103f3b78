"""Concurrent runs: do they have the same bits as alone, and how much faster are they?"""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from seedless.bench.measure import Say
from seedless.core.config import Config, override
from seedless.core.config_files import open_config
from seedless.core.errors import RunError
from seedless.core.registry import choose
from seedless.models import MODELS
from seedless.runs.parallel_runs import Result, TrainingJob, train_many
from seedless.runs.validation import open_validated


@dataclass(frozen=True)
class Pair:
    """The digest and seconds of a job, alone and together with the others; or its error."""

    job: str
    alone: str | None
    together: str | None
    alone_seconds: float
    together_seconds: float
    error: str | None

    @property
    def same(self) -> bool:
        """Whether both runs finished with the same bits."""
        return self.alone is not None and self.alone == self.together


@dataclass(frozen=True)
class ConcurrentRuns:
    """All jobs one after the other, and all at the same time. Seconds are of whole processes."""

    runs: int
    samples: int
    alone_seconds: float
    together_seconds: float
    pairs: tuple[Pair, ...]

    @property
    def same(self) -> bool:
        """Whether every job has the same bits both ways."""
        return all(pair.same for pair in self.pairs)

    @property
    def gain(self) -> float:
        """How many times more is trained in the same time."""
        return self.alone_seconds / self.together_seconds

    def as_values(self) -> dict[str, Any]:
        """Return plain values, with the samples trained per second both ways."""
        return {
            **asdict(self),
            "same": self.same,
            "gain": self.gain,
            "alone_samples_per_second": self.samples / self.alone_seconds,
            "together_samples_per_second": self.samples / self.together_seconds,
        }


def make_job_config(model: str, settings: Sequence[str] = ()) -> Config:
    """Return the configuration of a small job: two epochs on few samples."""
    if choose("model", model, MODELS).input_name == "channels":
        config = open_config("images-small").change(
            data={"records": 640}, train={"epochs": 2, "evaluate_every": 1}
        )
    else:
        config = open_config("demo").change(
            data={"preset": "tiny"}, train={"epochs": 2, "warmup_steps": 10}
        )
    config = config.change(
        model={"name": model, "small": True}, execution={"device": "auto", "threads": 1}
    )
    return override(config, settings)


def run_concurrently(
    config: Config, runs: int, *, work: Path | None = None, say: Say = lambda _: None
) -> ConcurrentRuns:
    """Train ``runs`` jobs one after the other, then at the same time, on the device of ``config``.

    The jobs start at different epochs of their order, so that no two have the same bits. Their
    folders are temporary, or under ``work``.

    Example: ``run_concurrently(make_job_config("conformer"), 4).same``
    """
    if runs < 1:
        raise RunError(f"expected at least one run, got {runs}")
    with TemporaryDirectory() as folder:
        place = work or Path(folder)
        file = place / "job.toml"
        file.write_text(config.to_toml(), encoding="utf-8")
        offsets = [f"order.offset={config.order.offset + number}" for number in range(runs)]

        def train(way: str, count: int) -> tuple[list[Result], float]:
            jobs = [
                TrainingJob(str(file), place / way / str(number), (offset,))
                for number, offset in enumerate(offsets)
            ]
            began = time.perf_counter()
            results = train_many(jobs, runs_per_device=count, devices=one_device())
            return results, time.perf_counter() - began

        say(f"training {runs} jobs, one after the other")
        alone, alone_seconds = train("alone", 1)
        say(f"training {runs} jobs at once")
        together, together_seconds = train("together", runs)
        samples = sum(count_samples(result) for result in together)
    return ConcurrentRuns(
        runs=runs,
        samples=samples,
        alone_seconds=alone_seconds,
        together_seconds=together_seconds,
        pairs=tuple(
            Pair(offset, one.digest, two.digest, one.seconds, two.seconds, explain(one, two))
            for offset, one, two in zip(offsets, alone, together, strict=True)
        ),
    )


def one_device() -> list[int] | None:
    """Return the first of several CUDA devices: concurrent runs must share one device."""
    return [0] if torch.cuda.device_count() > 1 else None


def count_samples(result: Result) -> int:
    """Return how many samples a run trained on: training records times epochs."""
    if not result.ok:
        return 0
    claims = open_validated(result.job.out).claims
    return int(claims["data"]["records"]["train"] * claims["config"]["values"]["train"]["epochs"])


def explain(*results: Result) -> str | None:
    """Return the last line that a failed run printed, or None where none failed."""
    for result in results:
        if not result.ok:
            said = (result.stderr.strip().splitlines() or ["nothing"])[-1]
            return f"exit code {result.exit_code}: {said.removeprefix('error: ')}"
    return None
