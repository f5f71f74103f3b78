"""A study from its name to its table: make the grid, make what is missing, read, write."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from seedless.core.errors import StudyError
from seedless.core.files import write_atomic
from seedless.core.registry import choose
from seedless.studies.catalog import open_study
from seedless.studies.cluster import run_ray
from seedless.studies.figures import save_figure
from seedless.studies.grid import Grid, Point
from seedless.studies.local import run_local
from seedless.studies.pooled import explain_pooling
from seedless.studies.results import read_results
from seedless.studies.sizes import Setting
from seedless.studies.store import State, Store
from seedless.studies.table import Table

Watch = Callable[[Sequence[tuple[Point, State]]], None]

ENGINES = {"local": run_local, "ray": run_ray}


@dataclass(frozen=True)
class Written:
    """What a study left: its tables, and the files they and the figure were written to."""

    tables: tuple[Table, ...]
    markdown: Path
    figure: Path
    counts: dict[str, int]


def plan_study(name: str, setting: Setting) -> Grid:
    """Return the grid of a study: nothing is executed."""
    return open_study(name).plan(setting)


def run_study(
    name: str,
    setting: Setting,
    folder: Path,
    *,
    engine: str = "local",
    runs_per_device: int = 1,
    again: bool = False,
    watch: Watch = lambda _: None,
) -> Written:
    """Make every run of a study that is not there yet, then its tables and its figure."""
    grid, store = plan_study(name, setting), Store(folder)
    points = list({point.key: point for point in grid.points}.values())
    if points:
        choose("engine", engine, ENGINES)(
            store,
            points,
            runs_per_device=runs_per_device,
            again=again,
            watch=lambda: watch([(point, store.state(point)) for point in points]),
        )
    return write_study(name, setting, folder)


def write_study(name: str, setting: Setting, folder: Path) -> Written:
    """Write the tables and the figure from the runs that are there; a missing one is an error."""
    study = open_study(name)
    grid, store = study.plan(setting), Store(folder)
    results = read_results(grid, store, setting)
    first, *rest = study.tabulate(results)
    if setting.folds:
        first = replace(first, notes=(*first.notes, explain_pooling(grid, setting.folds)))
    tables = (first, *rest)
    data = Path(setting.data).stem
    # Whatever changes a table is in its name, or one would replace another.
    more = [f"{setting.seeds}-seeds"] if setting.seeds else []
    more += [f"{setting.folds}-folds"] if setting.folds else []
    more += ["recorded-noise"] if setting.noise else []
    more += ["proved"] if setting.prove else []
    more += [other.partition("=")[0] for other in setting.other]
    place = folder / "tables" / "-".join([name, setting.scale, data, *more])
    place.parent.mkdir(exist_ok=True)
    head = (
        f"# {name}\n\n{study.question}\n\nScale {setting.scale}, data {data}, "
        f"{len({p.key for p in grid.points})} runs, grid `{grid.digest}`.\n\n"
    )
    text = head + "\n".join(table.to_markdown() for table in tables)
    try:
        write_atomic(place.with_suffix(".md"), text.encode())
        content = {"grid": grid.digest, "tables": [asdict(table) for table in tables]}
        plain = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
        write_atomic(place.with_suffix(".json"), plain.encode() + b"\n")
        figure = save_figure(study.draw(results), place.with_suffix(".png"))
    except OSError as error:
        raise StudyError(f"cannot write {place.parent}: {error.strerror}") from None
    counts = Counter(
        "failed" if not one.ok else "converged" if one.converged else "at chance"
        for one in results.outcomes
    )
    return Written(tables, place.with_suffix(".md"), figure, dict(counts))
