"""A study from its name to its table: make the grid, make what is missing, read, write."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from seedless.core.config import DataConfig
from seedless.core.digests import digest_value
from seedless.core.errors import StudyError
from seedless.core.files import write_atomic
from seedless.core.registry import choose
from seedless.data.loading import check_data_exists
from seedless.studies.catalog import open_study
from seedless.studies.engine.figures import save_figure
from seedless.studies.engine.fold_pooling import explain_pooling
from seedless.studies.engine.grid import Grid, Point
from seedless.studies.engine.local_workers import list_unfinished, order_by_replicate, run_local
from seedless.studies.engine.options import StudyOptions
from seedless.studies.engine.ray_workers import run_ray
from seedless.studies.engine.results import Results, read_results
from seedless.studies.engine.store import State, Store
from seedless.studies.engine.study import tabulate_progress
from seedless.studies.engine.table import Table

Watch = Callable[[Sequence[tuple[Point, State]]], None]

ENGINES = {"local": run_local, "ray": run_ray}


@dataclass(frozen=True)
class Written:
    """What a study left: its tables, and the files they and the figure were written to.

    ``left``: runs that are still to be made; without a figure then. ``failures``: why runs failed,
    a sentence a reason.
    """

    tables: tuple[Table, ...]
    markdown: Path
    figure: Path | None
    counts: dict[str, int]
    left: int = 0
    failures: tuple[str, ...] = ()


def plan_study(name: str, options: StudyOptions) -> Grid:
    """Return the grid of a study: nothing is executed."""
    return open_study(name).plan(options)


def run_study(
    name: str,
    options: StudyOptions,
    folder: Path,
    *,
    engine: str = "local",
    runs_per_device: int = 1,
    again: bool = False,
    limit: float | None = None,
    watch: Watch = lambda _: None,
) -> Written:
    """Make every run of a study that is not there yet, then its tables and its figure.

    Where a ``limit`` in seconds leaves runs to be made, the table is one of how far it is.
    """
    grid, store = plan_study(name, options), Store(folder)
    points = list({point.key: point for point in grid.points}.values())
    # A dataset that is not there is the user's to mend: said once, not a failure of every run.
    wanted = [p.config.data for p in points if again or store.state(p) in ("begun", "waiting")]
    for text in dict.fromkeys(data.model_dump_json() for data in wanted):
        check_data_exists(DataConfig.model_validate_json(text))
    if points:
        choose("engine", engine, ENGINES)(
            store,
            order_by_replicate(points),
            runs_per_device=runs_per_device,
            again=again,
            limit=limit,
            watch=lambda: watch([(point, store.state(point)) for point in points]),
        )
    left = list_unfinished(store, points)
    return write_progress(name, options, folder) if left else write_study(name, options, folder)


def write_study(name: str, options: StudyOptions, folder: Path) -> Written:
    """Write the tables and the figure from the runs that are there; a missing one is an error."""
    study = open_study(name)
    grid, store = study.plan(options), Store(folder)
    results = read_results(grid, store, options)
    first, *rest = study.tabulate(results)
    if options.folds:
        first = replace(first, notes=(*first.notes, explain_pooling(grid, options.folds)))
    tables = (first, *rest)
    place = name_tables(name, options, folder)
    counts = Counter(
        "failed" if not one.ok else "converged" if one.converged else "at chance"
        for one in results.outcomes
    )
    failures = explain_failures(results)
    head = describe_grid(name, options, grid) + describe_counts(counts, failures)
    text = head + "\n".join(table.to_markdown() for table in tables)
    try:
        place.parent.mkdir(exist_ok=True)
        write_atomic(place.with_suffix(".md"), text.encode())
        content = {"grid": grid.digest, "tables": [asdict(table) for table in tables]}
        plain = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
        write_atomic(place.with_suffix(".json"), plain.encode() + b"\n")
        figure = save_figure(study.draw(results), place.with_suffix(".png"))
    except OSError as error:
        raise StudyError(f"cannot write {place.parent}: {error.strerror}") from None
    written = place.with_suffix(".md")
    return Written(tables, written, figure, dict(counts), failures=failures)


def explain_failures(results: Results) -> tuple[str, ...]:
    """Return why runs failed, each reason once with how many it ended and the first of them."""
    reasons: dict[str, list[str]] = {}
    for one in results.outcomes:
        if one.error is not None:
            reasons.setdefault(one.error, []).append(one.point.label)
    return tuple(
        f"{labels[0]}{f' and {len(labels) - 1} more' if len(labels) > 1 else ''} failed: {why}"
        for why, labels in reasons.items()
    )


def describe_counts(counts: Mapping[str, int], failures: Sequence[str]) -> str:
    """Return how the runs ended, for every study and whatever its tables hold."""
    if not counts:
        return ""
    ended = ", ".join(f"{counts.get(k, 0)} {k}" for k in ("converged", "at chance", "failed"))
    reasons = "".join(f"- {why}\n" for why in failures)
    return f"Ended: {ended}.\n\n" + (f"{reasons}\n" if reasons else "")


def write_progress(name: str, options: StudyOptions, folder: Path) -> Written:
    """Write how far a study is, arm by arm: for one that is not finished."""
    grid, store = open_study(name).plan(options), Store(folder)
    table = tabulate_progress(grid, store)
    place = name_tables(name, options, folder)
    place = place.with_name(f"{place.name}-unfinished.md")
    text = describe_grid(name, options, grid) + table.to_markdown()
    try:
        place.parent.mkdir(exist_ok=True)
        write_atomic(place, text.encode())
    except OSError as error:
        raise StudyError(f"cannot write {place.parent}: {error.strerror}") from None
    points = {point.key: point for point in grid.points}
    states = Counter(str(store.state(point)) for point in points.values())
    left = states["begun"] + states["waiting"]
    return Written((table,), place, None, dict(states), left)


def describe_grid(name: str, options: StudyOptions, grid: Grid) -> str:
    """Return the head of a study's page."""
    changed = f", with {', '.join(options.changes)}" if options.changes else ""
    changed += f", arms {', '.join(options.arms)} alone" if options.arms else ""
    return (
        f"# {name}\n\n{open_study(name).question}\n\nScale {options.scale}{changed}, data "
        f"{Path(options.data).stem}, {len({p.key for p in grid.points})} runs, grid "
        f"`{grid.digest}`.\n\n"
    )


def name_tables(name: str, options: StudyOptions, folder: Path) -> Path:
    """Return where a study's tables lie, without a suffix.

    Whatever changes a table is in its name, or one would replace another.
    """
    more = [f"{options.seeds}-seeds"] if options.seeds else []
    more += [f"{options.folds}-folds"] if options.folds else []
    more += ["recorded-noise"] if options.noise else []
    more += ["proved"] if options.prove else []
    more += [other.partition("=")[0] for other in options.other]
    more += [f"{len(options.arms)}-arms-{digest_value(options.arms)[7:13]}"] if options.arms else []
    more += [re.sub(r"[^\w-]+", "-", change) for change in options.changes]
    return folder / "tables" / "-".join([name, options.scale, Path(options.data).stem, *more])
