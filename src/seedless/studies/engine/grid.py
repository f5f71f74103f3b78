"""A grid: the runs of a study, made before any is executed, so that it can be read and hashed.

Arms of one block are compared with each other. They differ in the factor under study and in
nothing else; a grid in which they do is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from seedless.core.config import REPLICATE_KEYS, Config, flatten
from seedless.core.digests import digest_value
from seedless.core.errors import StudyError


@dataclass(frozen=True)
class Point:
    """One run of a study.

    Attributes:
        arm: what it is compared as, such as "mixed".
        replicate: which repetition, such as "seed 3" or "seed-free"; equal ones are paired.
        block: arms of one block are compared with each other; a dataset or a model, say.
        part: which fold of a replicate whose test predictions are pooled; "" where it is one run.
    """

    arm: str
    replicate: str
    config: Config
    block: str = ""
    part: str = ""

    @property
    def key(self) -> str:
        """The name of its run folder: 16 digits of its configuration's digest."""
        return self.config.digest.removeprefix("sha256:")[:16]

    @property
    def label(self) -> str:
        """How a person calls it."""
        names = (self.block, self.arm, self.replicate, self.part)
        return " / ".join(name for name in names if name)


@dataclass(frozen=True)
class Grid:
    """The runs of a study.

    ``factor``: settings, or whole sections, in which the arms of a block may differ; ``also`` names
    blocks that ask another question, and what their arms may differ in instead.
    """

    study: str
    factor: tuple[str, ...]
    points: tuple[Point, ...]
    also: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def factor_of(self, block: str) -> tuple[str, ...]:
        """Return what the arms of a block may differ in."""
        return dict(self.also).get(block, self.factor)

    @property
    def digest(self) -> str:
        """A digest over every run, its place in the study included."""
        return digest_value(
            {
                "study": self.study,
                "points": [[p.block, p.arm, p.replicate, p.config.digest] for p in self.points],
            }
        )

    def of(self, arm: str, block: str | None = None) -> tuple[Point, ...]:
        """Return the runs of an arm, in one block or in all."""
        return tuple(p for p in self.points if p.arm == arm and block in (None, p.block))

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms, as they come."""
        return tuple(dict.fromkeys(point.arm for point in self.points))

    @property
    def blocks(self) -> tuple[str, ...]:
        """The blocks, as they come."""
        return tuple(dict.fromkeys(point.block for point in self.points))

    def __str__(self) -> str:
        if not self.points:
            return f"{self.study}: no runs, {self.digest}"
        width = max(len(point.label) for point in self.points)
        lines = [f"{point.key}  {point.label:<{width}}" for point in self.points]
        runs = len({point.key for point in self.points})
        head = f"{self.study}: {len(self.points)} points, {runs} runs, {self.digest}"
        return "\n".join([head, f"arms differ in {', '.join(self.factor)}", *lines])


def make_grid(
    study: str,
    factor: Iterable[str],
    points: Iterable[Point],
    also: Mapping[str, Iterable[str]] | None = None,
) -> Grid:
    """Return a grid whose arms are equal but for the factor, or say in what else they differ."""
    others = tuple((block, tuple(names)) for block, names in (also or {}).items())
    grid = Grid(study, tuple(factor), tuple(points), others)
    names = [(point.block, point.arm, point.replicate) for point in grid.points]
    for name in names:
        if names.count(name) > 1:
            raise StudyError(f"{study}: {' / '.join(filter(None, name))} stands in the grid twice")
    for block in grid.blocks:
        _check_block(grid, block)
    return grid


def _check_block(grid: Grid, block: str) -> None:
    """Refuse arms that differ in more than the factor, and replicates that are no pairs."""
    points = [point for point in grid.points if point.block == block]
    first, factor = points[0], grid.factor_of(block)
    wanted = _outside(factor, first.config)
    for point in points[1:]:
        found = _outside(factor, point.config)
        odd = sorted(key for key in {*wanted, *found} if wanted.get(key) != found.get(key))
        if odd:
            told = "; ".join(f"{key} is {wanted.get(key)!r} and {found.get(key)!r}" for key in odd)
            raise StudyError(
                f"{grid.study}: {first.label} and {point.label} differ in more than "
                f"{', '.join(factor) or 'nothing'}: {told}. Give both arms the same, or name it as "
                "a factor"
            )
    seeds: dict[str, dict[str, Any]] = {}
    for point in points:
        values = flatten(point.config.identity())
        for key in REPLICATE_KEYS:
            if key == "order.offset" and values["order.seed"] is not None:
                continue  # the seed of an order is what makes it another replicate
            known = seeds.setdefault(point.replicate, {})
            if values[key] is not None and known.setdefault(key, values[key]) != values[key]:
                raise StudyError(
                    f"{grid.study}: {point.label} has {key} {values[key]}, another arm's "
                    f"{point.replicate} has {known[key]}: replicates of one name are paired"
                )


def _outside(factor: tuple[str, ...], config: Config) -> dict[str, Any]:
    """Return the settings that are neither the factor nor what makes a replicate."""
    return {
        key: value
        for key, value in flatten(config.identity()).items()
        if key not in REPLICATE_KEYS
        and not any(key == name or key.startswith(f"{name}.") for name in factor)
    }
