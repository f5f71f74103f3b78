"""`seedless study list|plan|run|table|report|archive|unpack`: the published experiments."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seedless.cli.argument_checks import one_of_studies
from seedless.cli.completion import complete_studies
from seedless.cli.options import (
    STOPPED,
    AsJson,
    make_group,
    print_json,
    print_line,
    print_result,
    print_text,
)
from seedless.cli.study_options import takes_grid_options
from seedless.core.progress import Progress

if TYPE_CHECKING:
    from seedless.studies.engine.grid import Point
    from seedless.studies.engine.options import StudyOptions
    from seedless.studies.engine.runner import WrittenStudy
    from seedless.studies.engine.store import State, Store
    from seedless.studies.engine.study import Plan

app = make_group("Plan, run and tabulate the published experiments.")

Name = Annotated[
    str,
    typer.Argument(
        help="The name of a study: `seedless study list`.",
        callback=one_of_studies,
        autocompletion=complete_studies,
    ),
]
StoreFolder = Annotated[Path, typer.Option("--store", help="The folder that holds all runs.")]
STORE = Path("studies")
UNFINISHED = 3


@app.command("list")
def list_all(as_json: AsJson = False) -> None:
    """List every study and its question."""
    from seedless.studies.catalog import list_studies

    questions = list_studies()
    lines = [f"{name:<14} {question}" for name, question in questions.items()]
    print_result(questions, "\n".join(lines), as_json)


def _plan(name: str, options: StudyOptions) -> Plan:
    from seedless.studies.catalog import open_study

    return open_study(name).plan(options)


@app.command("plan")
@takes_grid_options
def plan_runs(name: Name, options: StudyOptions, as_json: AsJson = False) -> None:
    """Print the runs of a study; nothing is executed."""
    grid = _plan(name, options).grid
    fields = ("key", "block", "arm", "replicate", "part")
    points = [{field: getattr(point, field) for field in fields} for point in grid.points]
    values = {"study": name, "digest": grid.digest, "factor": grid.factor, "points": points}
    print_result(values, grid, as_json)


@app.command("run")
@takes_grid_options
def run(
    name: Name,
    options: StudyOptions,
    store: StoreFolder = STORE,
    engine: Annotated[str, typer.Option("--engine", help="local or ray.")] = "local",
    runs_per_device: Annotated[
        int, typer.Option("--runs-per-device", min=1, help="Runs on a device at the same time.")
    ] = 1,
    processes: Annotated[
        int, typer.Option("--processes", min=1, max=1024, help="Processes that train each run.")
    ] = 1,
    again: Annotated[bool, typer.Option("--again", help="Try runs that failed before.")] = False,
    limit: Annotated[
        float | None,
        typer.Option(
            "--limit", metavar="SECONDS", min=1, help="Start no run that would end later."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Execute the missing runs of a study, then write its tables.

    The figure is written, too.
    Exit code 1: every run failed. 3: not finished, because of --limit.
    (One run of a script of your own: seedless run.)
    """
    from seedless.studies.engine.runner import run_study

    progress = Progress(name, unit="runs", shown=not as_json)
    try:
        written = run_study(
            _plan(name, options),
            store,
            engine=engine,
            runs_per_device=runs_per_device,
            processes=processes,
            again=again,
            limit=limit,
            watch=lambda states: _show_states(progress, states),
            say=lambda text: print_line(text, err=True),
        )
    except KeyboardInterrupt:
        print_line(err=True)
        print_line("stopped; the same command continues from here", err=True)
        sys.exit(STOPPED)
    finally:
        progress.close()
    _print(written, as_json)
    for why in written.failures:
        print_line(why, err=True)
    if written.failures:
        print_line("--again tries failed runs once more", err=True)
    if set(written.counts) == {"failed"}:
        sys.exit(1)
    if written.left:
        print_line(
            f"not finished: {written.left} runs are left; the same command continues", err=True
        )
        sys.exit(UNFINISHED)


@app.command("table")
@takes_grid_options
def table(
    name: Name, options: StudyOptions, store: StoreFolder = STORE, as_json: AsJson = False
) -> None:
    """Print the tables of a study whose runs are finished.

    They are also written to the store, with the figure.
    """
    from seedless.studies.engine.runner import write_study

    plan = _plan(name, options)
    _print(write_study(plan, _open_store(store, plan.grid.runs)), as_json)


@app.command("report")
@takes_grid_options
def report(
    name: Name,
    options: StudyOptions,
    store: StoreFolder = STORE,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE.html", help="The page, if not in the store."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write one HTML page about a study, with all its digests.

    (A page about single runs: seedless report.)
    """
    from seedless.studies.engine.page import report_study

    plan = _plan(name, options)
    page = report_study(plan, _open_store(store, plan.grid.runs), out)
    print_result({"page": str(page)}, f"page    {page}", as_json)


@app.command("archive")
@takes_grid_options
def archive(
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME...", help="Names of studies: `seedless study list`."),
    ],
    options: StudyOptions,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The file to write.")],
    store: StoreFolder = STORE,
    weights: Annotated[bool, typer.Option("--weights", help="Include the weights.")] = False,
    part_size: Annotated[
        int | None,
        typer.Option("--part-size", metavar="MIB", help="Write several files, none larger."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write finished runs as one file, to continue elsewhere.

    It holds receipts, configurations, scores and predictions,
    without trails and checkpoints. The same runs give the same bytes.
    (To give one run with its proof to others: seedless bundle.)
    """
    from seedless.studies.catalog import open_study
    from seedless.studies.engine.run_archive import write_run_archives

    studies = [open_study(name) for name in names]
    # Studies differ in the options they use; here an option applies to those that use it.
    plans = [study.plan(study.drop_unused(options)) for study in studies]
    points = [point for plan in plans for point in plan.grid.points]
    written = write_run_archives(
        _open_store(store, points),
        points,
        out,
        weights=weights,
        part_size=part_size,
        force=force,
    )
    values = [{**asdict(one), "file": str(one.file)} for one in written]
    lines = [f"{one.file}  runs: {one.runs}, {one.size:,} bytes, {one.digest}" for one in written]
    print_result(values, "\n".join(lines), as_json)


@app.command("unpack")
def unpack(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Files of `seedless study archive`.")
    ],
    store: StoreFolder = STORE,
    as_json: AsJson = False,
) -> None:
    """Put the runs of an archive into a store.

    Each is checked against its receipt.
    """
    from seedless.studies.engine.run_archive import unpack_run_archive
    from seedless.studies.engine.store import Store

    unpacked = {str(file): unpack_run_archive(file, Store(store)) for file in files}
    lines = [
        f"{file}  runs: {one.new} new, {one.known} known, {one.failed} failed"
        for file, one in unpacked.items()
    ]
    values = {file: asdict(one) for file, one in unpacked.items()}
    print_result(values, "\n".join(lines), as_json)


def _open_store(folder: Path, points: Sequence[Point]) -> Store:
    """Return the store that holds runs; one that does not exist is refused and not made."""
    from seedless.core.errors import StudyError
    from seedless.studies.engine.store import Store

    if points and not folder.is_dir():
        raise StudyError(f"no store at {str(folder)!r}: `seedless study run` makes one")
    return Store(folder)


def _print(written: WrittenStudy, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "tables": [asdict(table) for table in written.tables],
                "markdown": str(written.markdown),
                "figure": None if written.figure is None else str(written.figure),
                "runs": written.counts,
                "left": written.left,
                "failures": list(written.failures),
            }
        )
        return
    for table in written.tables:
        print_text(f"{table}\n")
    print_line(f"table   {written.markdown}")
    if written.figure is not None:
        print_line(f"figure  {written.figure}")


def _show_states(progress: Progress, states: Sequence[tuple[Point, State]]) -> None:
    """Show how many runs are in which state, and which are executed now."""
    counts = Counter(state for _, state in states)
    running = [point.label for point, state in states if state == "begun"]
    progress.total = len(states)
    progress.update(
        counts["done"],
        f"{counts['failed']} failed, {counts['begun']} running"
        + (f": {', '.join(running[:2])}" if running else ""),
    )
