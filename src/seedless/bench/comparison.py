"""Our training step compared with plain PyTorch: the configuration, the figures and the verdict.

Like is compared with like: a step's ratio is the one to the strongest rival, the fastest step with
torch's own layers in the same precision.
"""

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch

from seedless.bench.flags import run_with_flags
from seedless.bench.measure import DEFAULT_LIMIT, Clock, Measured, Say, measure
from seedless.bench.rivals import (
    OURS,
    PLAIN,
    PUBLISHED,
    check_comparable,
    choose_rivals,
    list_rivals,
)
from seedless.core.config import Config, override
from seedless.core.errors import ConfigError
from seedless.core.registry import choose
from seedless.models import MODELS
from seedless.numerics.determinism import make_deterministic
from seedless.numerics.environment import capture_environment
from seedless.runs.prepare import prepare

WALL, PROCESSOR = "wall", "processor"
CLOCKS: dict[str, Clock] = {WALL: time.perf_counter, PROCESSOR: time.process_time}


@dataclass(frozen=True)
class Row:
    """The figures of one rival; ratios say how many times as fast as another it is.

    Attributes:
        strongest: the name of the fastest plain rival in the same precision.
        to_strongest: the ratio to that one.
        to_deterministic: the ratio to the plain deterministic one, whose precision is fp32.
    """

    name: str
    kind: str
    precision: str
    ms_per_step: float | None
    samples_per_second: float | None
    first_seconds: float | None
    peak_bytes: int | None
    strongest: str | None
    to_strongest: float | None
    to_deterministic: float | None
    repeats: bool | None
    digest: str | None
    rounds_ms: tuple[float, ...]
    error: str | None


@dataclass(frozen=True)
class Comparison:
    """What was compared, in which environment, and one row per rival.

    Attributes:
        complete: whether every rival has had all its turns, or has failed.
        clock: a name in `CLOCKS`.
        other_cores: the processor cores that other programs kept busy while steps were measured,
            the mean of all turns; None where the system does not say.
    """

    model: str
    small: bool
    parameters: int
    device: str
    batch: int
    steps: int
    rounds: int
    complete: bool
    clock: str
    other_cores: float | None
    rows: tuple[Row, ...]
    verdict: str
    environment: dict[str, Any]

    def as_values(self) -> dict[str, Any]:
        """Return all but the environment as plain values."""
        values = asdict(self)
        del values["environment"]
        return values


def make_config(
    model: str, batch: int, device: str = "auto", settings: Sequence[str] = ()
) -> Config:
    """Return a configuration on simulated samples, with enough of them for two whole batches."""
    choose("model", model, MODELS)
    images = MODELS[model].input_name == "channels"
    data = (
        {"name": "simulated-images", "size": 32, "channels": 3, "records": max(4 * batch, 100)}
        if images
        else {"name": "simulated", "records": max(4 * batch, 100)}
    )
    config = Config().change(
        data=data,
        model={"name": model},
        order={"batch_size": batch},
        execution={"device": device},
    )
    return override(config, settings)


def compare(
    config: Config,
    *,
    steps: int = 20,
    rounds: int = 5,
    only: Sequence[str] = (),
    limit: float = DEFAULT_LIMIT,
    clock: str = WALL,
    say: Say = lambda _: None,
    record: Callable[[Comparison], None] = lambda _: None,
) -> Comparison:
    """Measure one training step of ours and of plain PyTorch, in turns in this process.

    Torch's flags and threads, and its compiler's settings, have their earlier values when it
    returns.

    Args:
        config: what is trained, such as `make_config` returns.
        steps: how many steps each rival makes in its turn.
        rounds: how many turns each rival has.
        only: parts of the names of rivals to measure; by default all are measured.
        limit: the seconds a rival may take in all, its compilation included.
        clock: "wall", or "processor": the processor time of all threads, of steps on a CPU.
        say: called with a line of text at each start and round.
        record: called after every turn with what has been measured so far.

    Example: ``print(compare(make_config("conformer", batch=16), steps=3, rounds=3).verdict)``
    """
    check_comparable(config)
    choose("clock", clock, CLOCKS)
    with run_with_flags(lambda: None):
        problem = prepare(config).problem
        if clock == PROCESSOR and problem.device.type != "cpu":
            raise ConfigError(
                f"expected the wall clock for steps on {problem.device.type}, got the processor's: "
                "it does not count a GPU's time; leave --processor-time out, or add --device cpu"
            )
        size = config.order.batch_size
        batches = [
            torch.from_numpy(rows).to(problem.device)
            for rows in problem.order.schedule(0).batches
            if len(rows) == size
        ]
        if not batches:
            raise ConfigError(
                f"there are {len(problem.train)} training samples, too few for a batch of {size}; "
                "raise data.records or lower --batch"
            )
        rivals = choose_rivals(list_rivals(problem), only)
        with run_with_flags(partial(make_deterministic, threads=problem.config.execution.threads)):
            environment = capture_environment()

        def build(measured: Sequence[Measured]) -> Comparison:
            rows = make_rows(measured, size)
            finished = [row for row in rows if row.error or len(row.rounds_ms) == rounds]
            return Comparison(
                model=config.model.name,
                small=config.model.small,
                parameters=sum(parameter.numel() for parameter in problem.model.parameters()),
                device=problem.device.type,
                batch=size,
                steps=steps,
                rounds=rounds,
                complete=len(finished) == len(rivals),
                clock=clock,
                other_cores=_mean([cores for one in measured for cores in one.other_cores]),
                rows=rows,
                verdict=describe_verdict(rows),
                environment=environment,
            )

        measured = measure(
            rivals,
            batches,
            steps=steps,
            rounds=rounds,
            limit=limit,
            clock=CLOCKS[clock],
            say=say,
            record=lambda some: record(build(some)),
        )
        return build(measured)


def make_rows(measured: Sequence[Measured], batch: int) -> tuple[Row, ...]:
    """Return the figures of each rival, and its ratios to the plain ones."""
    strongest = find_strongest(measured)
    published = [one.median for one in measured if one.rival.kind == PUBLISHED]
    rows = []
    for one in measured:
        median = one.median
        rival = strongest.get(one.rival.precision)
        rows.append(
            Row(
                name=one.rival.name,
                kind=one.rival.kind,
                precision=one.rival.precision,
                ms_per_step=None if median is None else 1e3 * median,
                samples_per_second=None if median is None else batch / median,
                first_seconds=one.first_seconds,
                peak_bytes=one.peak_bytes,
                strongest=None if rival is None else rival.rival.name,
                to_strongest=_divide(rival.median if rival else None, median),
                to_deterministic=_divide(published[0] if published else None, median),
                repeats=one.repeats,
                digest=one.digest,
                rounds_ms=tuple(1e3 * seconds for seconds in one.seconds),
                error=one.error,
            )
        )
    return tuple(rows)


def find_strongest(measured: Sequence[Measured]) -> dict[str, Measured]:
    """Return the fastest step with torch's own layers, for each precision."""
    strongest: dict[str, Measured] = {}
    for one in measured:
        if one.rival.kind in (PLAIN, PUBLISHED) and one.median is not None:
            best = strongest.get(one.rival.precision)
            if best is None or one.median < (best.median or 0.0):
                strongest[one.rival.precision] = one
    return strongest


def _mean(values: Sequence[float]) -> float | None:
    return statistics.mean(values) if values else None


def _divide(other: float | None, own: float | None) -> float | None:
    return other / own if other and own else None


def describe_verdict(rows: Sequence[Row]) -> str:
    """Return a sentence for each precision: our fastest step and the strongest rival."""
    sentences = []
    for precision in dict.fromkeys(row.precision for row in rows if row.kind == OURS):
        ours = [row for row in rows if row.kind == OURS and row.precision == precision]
        best = min(ours, key=lambda row: row.ms_per_step or math.inf)
        if best.to_strongest is None:
            sentences.append(f"{precision}: no verdict, because ours or every rival is missing")
            continue
        bits = "repeats" if best.repeats else "DOES NOT REPEAT"
        sentences.append(
            f"{precision}: {best.name} is {best.to_strongest:.2f} times as fast as "
            f"{best.strongest}, the strongest rival, and {bits} bit for bit"
        )
    return "\n".join(sentences) or "no verdict: no step of ours was measured"
