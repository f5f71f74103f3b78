"""The grid of a study: its runs, planned before any is executed, to be read and hashed.

The arms of a block are compared with each other, so they may differ only in the factor under study.
A grid whose arms differ in anything else is refused. Basis, residual scale and head of a start, and
the batch order, are factors of their own: none of them is part of another.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seedless.core.config import REPLICATE_KEYS, Config, flatten
from seedless.core.digests import digest_value
from seedless.core.errors import StudyError
from seedless.init import INITIALIZATIONS
from seedless.studies.engine.run_identity import name_run

# Sections whose settings are factors of their own, so that the whole section is never one factor.
SEPARATE_SECTIONS = ("init", "order")


@dataclass(frozen=True)
class Point:
    """One run of a study.

    Attributes:
        arm: the name under which it is compared, such as "mixed".
        replicate: which repetition of the arm, such as "seed 3" or "seed-free". Replicates of the
            same name in two arms are compared as a pair.
        block: which group of arms it belongs to, such as a dataset or a model.
        part: which fold, where the test predictions of several runs are pooled; otherwise "".
    """

    arm: str
    replicate: str
    config: Config
    block: str = ""
    part: str = ""

    @property
    def key(self) -> str:
        """The name of its run folder: 16 digits of the digest of its configuration."""
        return name_run(self.config.digest)

    @property
    def label(self) -> str:
        """Its name in messages and tables."""
        names = (self.block, self.arm, self.replicate, self.part)
        return " / ".join(name for name in names if name)


def seed_points(
    arms: Iterable[str], seeds: int, build: Callable[[str, int], Config], block: str = ""
) -> list[Point]:
    """Return one point per arm and seed; ``build(arm, seed)`` returns its configuration."""
    return [
        Point(arm, f"seed {seed}", build(arm, seed), block) for arm in arms for seed in range(seeds)
    ]


def offset_points(arm: str, count: int, config: Config, block: str = "") -> list[Point]:
    """Return replicates of a run without a seed: each takes other epochs' permutations.

    Offsets are as far apart as a run is long, so no two replicates share a permutation.
    """
    points = []
    for number in range(count):
        replicate = config.change(order={"offset": number * config.train.epochs})
        points.append(Point(arm, f"offset {number}", replicate, block))
    return points


@dataclass(frozen=True)
class Grid:
    """The runs of a study.

    Attributes:
        factor: the settings in which the arms of a block may differ; several if they are crossed.
        block_factors: (block, factor) of blocks that have a factor of their own.
    """

    study: str
    factor: tuple[str, ...]
    points: tuple[Point, ...]
    block_factors: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def factor_of(self, block: str) -> tuple[str, ...]:
        """Return the settings in which the arms of a block may differ."""
        return dict(self.block_factors).get(block, self.factor)

    @property
    def digest(self) -> str:
        """The digest of every run and of its place in the study."""
        return digest_value(
            {
                "study": self.study,
                "points": [[p.block, p.arm, p.replicate, p.config.digest] for p in self.points],
            }
        )

    @property
    def runs(self) -> tuple[Point, ...]:
        """Its different runs, each as its first point: points of one configuration share a run."""
        first: dict[str, Point] = {}
        for point in self.points:
            first.setdefault(point.key, point)
        return tuple(first.values())

    @property
    def arms(self) -> tuple[str, ...]:
        """The names of its arms, in the order of the grid."""
        return tuple(dict.fromkeys(point.arm for point in self.points))

    @property
    def blocks(self) -> tuple[str, ...]:
        """The names of its blocks, in the order of the grid."""
        return tuple(dict.fromkeys(point.block for point in self.points))

    @property
    def arms_by_block(self) -> tuple[tuple[str, str], ...]:
        """Each (block, arm), block after block."""
        pairs = dict.fromkeys((point.block, point.arm) for point in self.points)
        return tuple(sorted(pairs, key=lambda pair: self.blocks.index(pair[0])))

    def points_of(self, arm: str, block: str | None = None) -> tuple[Point, ...]:
        """Return the points of an arm, in one block or in all."""
        return tuple(p for p in self.points if p.arm == arm and block in (None, p.block))

    def list_differences(self, block: str, one: str, other: str) -> list[str]:
        """Return the settings in which two arms of a block differ, without those of replicates."""
        first, second = (
            _drop_replicates(self.points_of(arm, block)[0].config) for arm in (one, other)
        )
        return sorted(k for k in {*first, *second} if first.get(k) != second.get(k))

    def __str__(self) -> str:
        if not self.points:
            return f"{self.study}: no runs, {self.digest}"
        width = max(len(point.label) for point in self.points)
        lines = [f"{point.key}  {point.label:<{width}}" for point in self.points]
        head = f"{self.study}: {len(self.points)} points, {len(self.runs)} runs, {self.digest}"
        return "\n".join([head, f"arms differ in {', '.join(self.factor)}", *lines])


def make_grid(
    study: str,
    factor: Iterable[str],
    points: Iterable[Point],
    block_factors: Mapping[str, Iterable[str]] | None = None,
) -> Grid:
    """Return a grid whose arms are equal except for the factor, or raise what else differs."""
    factors = tuple((block, tuple(names)) for block, names in (block_factors or {}).items())
    grid = Grid(study, tuple(factor), tuple(points), factors)
    for setting in {*grid.factor, *(setting for _, settings in factors for setting in settings)}:
        if setting in SEPARATE_SECTIONS:
            raise StudyError(
                f"{study}: {setting} is not one factor: name the settings under study, such as "
                "init.basis, init.residual_scale, init.heads or order.name"
            )
    # [Step 1] Each name stands for one run: tables are indexed by it.
    names = [(point.block, point.arm, point.replicate) for point in grid.points]
    for name in names:
        if names.count(name) > 1:
            raise StudyError(f"{study}: {' / '.join(filter(None, name))} is in the grid twice")
    for point in grid.points:
        _check_written_out(study, point)
    for block in grid.blocks:
        members = [point for point in grid.points if point.block == block]
        _check_factor(grid, members)
        _check_pairs(grid, members)
    return grid


def _check_written_out(study: str, point: Point) -> None:
    """Refuse a start whose residual scale or head is left to a default, which its basis decides."""
    init = point.config.init
    for key, value in (("residual_scale", init.residual_scale), ("heads", init.heads)):
        if value is None:
            raise StudyError(
                f"{study}: {point.label} leaves init.{key} out, and its default depends on the "
                "basis: write it out"
            )


def _check_factor(grid: Grid, points: Sequence[Point]) -> None:
    """[Step 2] Refuse points of a block that differ in more than the factor and the seeds."""
    first, factor = points[0], grid.factor_of(points[0].block)
    expected = _fixed_settings(factor, first.config)
    for point in points[1:]:
        settings = _fixed_settings(factor, point.config)
        odd = sorted(k for k in {*expected, *settings} if expected.get(k) != settings.get(k))
        if odd:
            listed = [f"{key} is {expected.get(key)!r} and {settings.get(key)!r}" for key in odd]
            raise StudyError(
                f"{grid.study}: {first.label} and {point.label} differ in more than "
                f"{', '.join(factor) or 'nothing'}: {'; '.join(listed)}. Give both arms the same "
                "setting, or name it as a factor"
            )


def _check_pairs(grid: Grid, points: Sequence[Point]) -> None:
    """[Step 3] Refuse replicates of the same name whose seeds differ: they would not be pairs."""
    seeds: dict[str, dict[str, Any]] = {}
    for point in points:
        values = flatten(point.config.model_dump())
        if values["order.seed"] is not None:
            del values["order.offset"]  # the seed of an order is what makes it another replicate
        if INITIALIZATIONS[point.config.init.basis].keyed_by != "offset":
            del values["init.offset"]
        for key in (key for key in REPLICATE_KEYS if key in values):
            known = seeds.setdefault(point.replicate, {})
            if values[key] is not None and known.setdefault(key, values[key]) != values[key]:
                raise StudyError(
                    f"{grid.study}: {point.label} has {key} {values[key]}, {point.replicate} of "
                    f"another arm has {known[key]}: replicates of the same name are paired"
                )


def _fixed_settings(factor: tuple[str, ...], config: Config) -> dict[str, Any]:
    """Return the settings that are neither the factor nor a seed of a replicate."""
    return {
        key: value
        for key, value in _drop_replicates(config).items()
        if not any(key == name or key.startswith(f"{name}.") for name in factor)
    }


def _drop_replicates(config: Config) -> dict[str, Any]:
    """Return every setting but the seeds and offsets of replicates."""
    settings = flatten(config.identity())
    return {key: value for key, value in settings.items() if key not in REPLICATE_KEYS}
