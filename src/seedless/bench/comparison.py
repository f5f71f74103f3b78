"""Our training step compared with plain PyTorch: the configuration, the figures and the verdict."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch

from seedless.bench.flags import run_with_flags
from seedless.bench.measure import Measured, Say, measure
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


@dataclass(frozen=True)
class Row:
    """The figures of one rival; ratios say how many times faster than plain PyTorch it is.

    ``to_plain``: against the faster of the plain rivals. ``to_deterministic``: against the plain
    deterministic one.
    """

    name: str
    kind: str
    precision: str
    ms_per_step: float | None
    samples_per_second: float | None
    first_seconds: float | None
    peak_bytes: int | None
    to_plain: float | None
    to_deterministic: float | None
    repeats: bool | None
    digest: str | None
    rounds_ms: tuple[float, ...]
    error: str | None


@dataclass(frozen=True)
class Comparison:
    """What was compared, in which environment, and one row per rival."""

    model: str
    small: bool
    parameters: int
    device: str
    batch: int
    steps: int
    rounds: int
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
    say: Say = lambda _: None,
) -> Comparison:
    """Measure one training step of ours and of plain PyTorch, in turns in this process.

    Torch's flags and threads have their earlier values when it returns. Compiled code keeps the
    compiler's own settings (`seedless.train.step_modes.configure_compiler`), which affect nothing
    else.

    Args:
        config: what is trained, such as `make_config` returns.
        steps: how many steps each rival makes in its turn.
        rounds: how many turns each rival has.
        only: parts of the names of rivals to measure; by default all are measured.
        say: called with a line of text at each start and round.

    Example: ``print(compare(make_config("conformer", batch=16), steps=3, rounds=3).verdict)``
    """
    check_comparable(config)
    with run_with_flags(lambda: None):
        problem = prepare(config).problem
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
        measured = measure(rivals, batches, steps=steps, rounds=rounds, say=say)
        with run_with_flags(partial(make_deterministic, threads=problem.config.execution.threads)):
            environment = capture_environment()
    rows = make_rows(measured, size)
    return Comparison(
        model=config.model.name,
        small=config.model.small,
        parameters=sum(parameter.numel() for parameter in problem.model.parameters()),
        device=problem.device.type,
        batch=size,
        steps=steps,
        rounds=rounds,
        rows=rows,
        verdict=describe_verdict(rows),
        environment=environment,
    )


def make_rows(measured: Sequence[Measured], batch: int) -> tuple[Row, ...]:
    """Return the figures of each rival, and its ratios to the plain ones."""
    plain = _fastest(measured, PLAIN)
    published = _fastest(measured, PUBLISHED)
    rows = []
    for one in measured:
        median = one.median
        rows.append(
            Row(
                name=one.rival.name,
                kind=one.rival.kind,
                precision=one.rival.precision,
                ms_per_step=None if median is None else 1e3 * median,
                samples_per_second=None if median is None else batch / median,
                first_seconds=one.first_seconds,
                peak_bytes=one.peak_bytes,
                to_plain=plain / median if plain and median else None,
                to_deterministic=published / median if published and median else None,
                repeats=one.repeats,
                digest=one.digest,
                rounds_ms=tuple(1e3 * seconds for seconds in one.seconds),
                error=one.error,
            )
        )
    return tuple(rows)


def _fastest(measured: Sequence[Measured], kind: str) -> float | None:
    medians = [one.median for one in measured if one.rival.kind == kind and one.median is not None]
    return min(medians, default=None)


def describe_verdict(rows: Sequence[Row]) -> str:
    """Return a sentence on our fastest float32 step compared with the plain rivals."""
    ours = [row for row in rows if row.kind == OURS and row.precision == "fp32" and row.ms_per_step]
    if not ours:
        return "no verdict: no form of ours in fp32 was measured"
    best = min(ours, key=lambda row: row.ms_per_step or 0.0)
    against = [
        f"{ratio:.2f} x {name}"
        for name, ratio in ((PLAIN, best.to_plain), (PUBLISHED, best.to_deterministic))
        if ratio is not None
    ]
    if not against:
        return "no verdict: neither plain rival was measured"
    bits = "repeats" if best.repeats else "DOES NOT REPEAT"
    return f"ours fp32 is {' and '.join(against)} in speed ({best.name}), and {bits} bit for bit"
