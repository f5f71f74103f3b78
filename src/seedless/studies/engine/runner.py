"""A study from its plan to its tables: execute missing runs, measure, tabulate, draw, write."""

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
from seedless.core.rendezvous import check_group_settings
from seedless.data.loading import check_data_exists
from seedless.studies.engine.arm_tables import tabulate_progress
from seedless.studies.engine.figures import encode_png
from seedless.studies.engine.fold_pooling import explain_pooling
from seedless.studies.engine.gpu_sharing import Say, share_gpus
from seedless.studies.engine.grid import Point
from seedless.studies.engine.local_workers import (
    list_unfinished,
    order_by_replicate,
    run_local,
    uses_cuda,
)
from seedless.studies.engine.ray_workers import run_ray
from seedless.studies.engine.results import Results, read_results
from seedless.studies.engine.store import State, Store
from seedless.studies.engine.study import Plan
from seedless.studies.engine.table import Table, escape_cell

Watch = Callable[[Sequence[tuple[Point, State]]], None]

ENGINES = {"local": run_local, "ray": run_ray}


@dataclass(frozen=True)
class WrittenStudy:
    """The tables of a study, and the files they and the figure were written to.

    Attributes:
        counts: how many runs ended in which way.
        left: how many runs are not finished; if any, there are no results and no figure.
        failures: why runs failed, one sentence per reason.
    """

    tables: tuple[Table, ...]
    markdown: Path
    figure: Path | None
    counts: dict[str, int]
    left: int = 0
    failures: tuple[str, ...] = ()
    results: Results | None = None


def run_study(
    plan: Plan,
    folder: str | Path,
    *,
    engine: str = "local",
    runs_per_device: int = 1,
    processes: int = 1,
    again: bool = False,
    limit: float | None = None,
    watch: Watch = lambda _: None,
    say: Say = lambda _: None,
) -> WrittenStudy:
    """Execute the runs of a study that the store lacks, then write its tables and its figure.

    Args:
        plan: what `Study.plan` returned.
        folder: the store; it is created where it does not exist.
        engine: "local" for workers on this machine, "ray" for a Ray cluster.
        runs_per_device: how many runs share a device at the same time. Local runs that share a GPU
            do so through NVIDIA's multi-process service, where the machine has it.
        processes: how many processes of one machine train a run. It must be in portable arithmetic,
            whose bits do not depend on it.
        again: try runs that failed before.
        limit: seconds; no run is started that would probably end later. Where runs are left, the
            table shows how far the study is.
        watch: called now and then with the state of every run.
        say: called with what was done besides training, in words.

    Example: ``run_study(open_study("basis").plan(StudyOptions()), "studies")``
    """
    store, runs = Store(Path(folder)), plan.grid.runs
    # A missing dataset is reported once, before any run starts, and not as a failure of every run.
    needed = [p.config.data for p in runs if again or store.state(p) in ("begun", "waiting")]
    for text in dict.fromkeys(data.model_dump_json() for data in needed):
        check_data_exists(DataConfig.model_validate_json(text))
    execute = choose("engine", engine, ENGINES)
    if processes > 1:  # so are settings that no run on several processes can have
        for point in list_unfinished(store, runs):
            check_group_settings(point.config, processes)
    shared = runs_per_device if engine == "local" and list_unfinished(store, runs) else 1
    with share_gpus(shared, on_cuda=uses_cuda(runs), say=say):
        if runs:
            execute(
                store,
                order_by_replicate(runs),
                runs_per_device=runs_per_device,
                processes=processes,
                again=again,
                limit=limit,
                watch=lambda: watch([(point, store.state(point)) for point in runs]),
            )
    left = list_unfinished(store, runs)
    return write_progress(plan, store) if left else write_study(plan, store)


def collect_results(plan: Plan, store: Store) -> Results:
    """Read the runs of a study and measure on them what its tables need; nothing is trained."""
    results = read_results(plan.grid, store, plan.options)
    return replace(results, measured=plan.study.measure(results))


def write_study(plan: Plan, store: Store) -> WrittenStudy:
    """Write the tables and the figure of a finished study; a missing run is an error."""
    results = collect_results(plan, store)
    first, *rest = plan.study.tabulate(results)
    if plan.options.folds:
        note = explain_pooling(plan.grid, plan.options.folds)
        first = replace(first, notes=(*first.notes, note))
    tables = (first, *rest)
    counts = Counter(one.state for one in results.outcomes)
    failures = explain_failures(results)
    text = describe_plan(plan) + describe_counts(counts, failures)
    text += "\n".join(table.to_markdown() for table in tables)
    content = {"grid": plan.grid.digest, "tables": [asdict(table) for table in tables]}
    plain = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    place = store.folder / "tables" / name_tables(plan)
    markdown = _write(place.with_name(f"{place.name}.md"), text.encode())
    _write(place.with_name(f"{place.name}.json"), plain.encode() + b"\n")
    figure = _write(place.with_name(f"{place.name}.png"), encode_png(plan.study.draw(results)))
    return WrittenStudy(tables, markdown, figure, dict(counts), failures=failures, results=results)


def write_progress(plan: Plan, store: Store) -> WrittenStudy:
    """Write how many runs of each arm are finished, for a study that is not finished."""
    table = tabulate_progress(plan.grid, store)
    text = describe_plan(plan) + table.to_markdown()
    place = store.folder / "tables" / f"{name_tables(plan)}-unfinished.md"
    markdown = _write(place, text.encode())
    states = Counter(str(store.state(point)) for point in plan.grid.runs)
    left = states["begun"] + states["waiting"]
    return WrittenStudy((table,), markdown, None, dict(states), left)


def _write(path: Path, content: bytes) -> Path:
    try:
        path.parent.mkdir(exist_ok=True)
        write_atomic(path, content)
    except OSError as error:
        raise StudyError(f"cannot write {path.parent}: {error.strerror}") from None
    return path


def explain_failures(results: Results) -> tuple[str, ...]:
    """Return why runs failed: each reason once, with the first run and the number of the others."""
    reasons: dict[str, list[str]] = {}
    for one in results.outcomes:
        if one.error is not None:
            reasons.setdefault(one.error, []).append(one.point.label)
    return tuple(
        f"{labels[0]}{f' and {len(labels) - 1} more' if len(labels) > 1 else ''} failed: {why}"
        for why, labels in reasons.items()
    )


def describe_counts(counts: Mapping[str, int], failures: Sequence[str]) -> str:
    """Return how many runs ended in which way, with the reasons of failures, as Markdown."""
    if not counts:
        return ""
    ended = ", ".join(f"{counts.get(k, 0)} {k}" for k in ("converged", "at chance", "failed"))
    reasons = "".join(f"- {escape_cell(why)}\n" for why in failures)
    return f"Ended: {ended}.\n\n" + (f"{reasons}\n" if reasons else "")


def describe_plan(plan: Plan) -> str:
    """Return the first lines of a study's Markdown file: name, question, options and grid."""
    options, grid = plan.options, plan.grid
    changed = f", with {', '.join(options.changes)}" if options.changes else ""
    changed += f", arms {', '.join(options.arms)} alone" if options.arms else ""
    return (
        f"# {plan.study.name}\n\n{plan.study.question}\n\nScale {options.scale}{changed}, data "
        f"{Path(options.data).stem}, {len(grid.runs)} runs, grid `{grid.digest}`.\n\n"
    )


def name_tables(plan: Plan) -> str:
    """Return the name of the files with a study's tables, without a suffix.

    Every option that changes a table is part of the name, so that tables do not replace each other.
    """
    options = plan.options
    more = [f"{options.seeds}-seeds"] if options.seeds else []
    more += [f"{options.folds}-folds"] if options.folds else []
    more += ["recorded-noise"] if options.noise else []
    more += ["proved"] if options.prove else []
    more += [other.partition("=")[0] for other in options.other]
    more += [f"{len(options.arms)}-arms-{digest_value(options.arms)[7:13]}"] if options.arms else []
    more += [re.sub(r"[^\w-]+", "-", change) for change in options.changes]
    return "-".join([plan.study.name, options.scale, Path(options.data).stem, *more])
