"""`seedless study list|plan|run|table|report`: the published experiments."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seedless.cli.options import AsJson, Settings, print_json
from seedless.core.progress import Progress

if TYPE_CHECKING:
    from seedless.studies.engine.grid import Point
    from seedless.studies.engine.options import StudyOptions
    from seedless.studies.engine.runner import Written
    from seedless.studies.engine.store import State

app = typer.Typer(help="Run a published experiment, on one machine or many.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="A study's name: `seedless study list`.")]
Scale = Annotated[str, typer.Option("--scale", help="smoke, small or paper.")]
Data = Annotated[
    str, typer.Option("--data", help="simulated, a dataset's name, or a file or folder.")
]
Place = Annotated[Path, typer.Option("--store", help="The folder all runs are kept in.")]
Seeds = Annotated[
    int | None, typer.Option("--seeds", min=1, help="Seeds an arm, instead of the scale's.")
]
Device = Annotated[str, typer.Option("--device", help="cpu, cuda or auto.")]
Folds = Annotated[
    int | None,
    typer.Option(
        "--folds",
        min=2,
        max=10,
        help="Hold out this many folds in turn and pool what is said of them.",
    ),
]
ExternalDataset = Annotated[
    list[str] | None,
    typer.Option("--other", help="NAME=PATH of a set to try models on; may be repeated."),
]
Noise = Annotated[
    Path | None,
    typer.Option("--noise-path", metavar="FOLDER", help="Recorded noise, instead of simulated."),
]
Prove = Annotated[
    bool, typer.Option("--prove", help="Execute a run of each arm again, in studies that can.")
]
Arms = Annotated[str | None, typer.Option("--arms", metavar="NAME,NAME", help="These arms alone.")]
STORE = Path("studies")
UNFINISHED = 3


@app.command("list")
def list_studies(as_json: AsJson = False) -> None:
    """List every study and what it asks."""
    from seedless.studies.catalog import STUDIES, open_study

    questions = {name: open_study(name).question for name in STUDIES}
    if as_json:
        print_json(questions)
        return
    for name, question in questions.items():
        typer.echo(f"{name:<14} {question}")


@app.command("plan")
def plan(
    name: Name,
    scale: Scale = "smoke",
    data: Data = "simulated",
    seeds: Seeds = None,
    device: Device = "auto",
    folds: Folds = None,
    other: ExternalDataset = None,
    settings: Settings = None,
    arms: Arms = None,
    as_json: AsJson = False,
) -> None:
    """Print the runs of a study; nothing is executed."""
    from seedless.studies.engine.runner import plan_study

    grid = plan_study(
        name, read_setting(scale, data, seeds, device, folds, other, settings, arms=arms)
    )
    if as_json:
        points = [
            {name: getattr(p, name) for name in ("key", "block", "arm", "replicate", "part")}
            for p in grid.points
        ]
        print_json({"study": name, "digest": grid.digest, "factor": grid.factor, "points": points})
    else:
        typer.echo(str(grid))


@app.command("run")
def run(
    name: Name,
    scale: Scale = "smoke",
    data: Data = "simulated",
    store: Place = STORE,
    seeds: Seeds = None,
    device: Device = "auto",
    folds: Folds = None,
    other: ExternalDataset = None,
    engine: Annotated[str, typer.Option("--engine", help="local or ray.")] = "local",
    runs_per_device: Annotated[
        int, typer.Option("--runs-per-device", min=1, help="Runs at once on a device.")
    ] = 1,
    again: Annotated[
        bool, typer.Option("--again", help="Try runs again that failed before.")
    ] = False,
    limit: Annotated[
        float | None,
        typer.Option("--limit", metavar="SECONDS", min=1, help="Begin no run that ends later."),
    ] = None,
    settings: Settings = None,
    arms: Arms = None,
    noise_path: Noise = None,
    prove: Prove = False,
    as_json: AsJson = False,
) -> None:
    """Make every run of a study that is not in the store yet, then its table and its figure.

    Exit code 1: every run failed. 3: not finished, because of --limit.
    """
    from seedless.studies.engine.runner import run_study

    progress = Progress(name, unit="runs", shown=not as_json)
    try:
        written = run_study(
            name,
            read_setting(
                scale, data, seeds, device, folds, other, settings, noise_path, prove, arms
            ),
            store,
            engine=engine,
            runs_per_device=runs_per_device,
            again=again,
            limit=limit,
            watch=lambda states: _show_states(progress, states),
        )
    except KeyboardInterrupt:
        typer.echo("\nstopped; the same command goes on where it was", err=True)
        sys.exit(130)
    finally:
        progress.close()
    _print(written, as_json)
    for why in written.failures:
        typer.echo(why, err=True)
    if written.failures:
        typer.echo("--again tries failed runs once more", err=True)
    if set(written.counts) == {"failed"}:
        sys.exit(1)  # there is a table, but of nothing
    if written.left:
        typer.echo(
            f"not finished: {written.left} runs are left; the same command goes on", err=True
        )
        sys.exit(UNFINISHED)


@app.command("table")
def table(
    name: Name,
    scale: Scale = "smoke",
    data: Data = "simulated",
    store: Place = STORE,
    seeds: Seeds = None,
    device: Device = "auto",
    folds: Folds = None,
    other: ExternalDataset = None,
    settings: Settings = None,
    arms: Arms = None,
    noise_path: Noise = None,
    prove: Prove = False,
    as_json: AsJson = False,
) -> None:
    """Print the table of a study whose runs are there, and write it with its figure."""
    from seedless.studies.engine.runner import write_study

    options = read_setting(
        scale, data, seeds, device, folds, other, settings, noise_path, prove, arms
    )
    _print(write_study(name, options, store), as_json)


@app.command("report")
def report(
    name: Name,
    scale: Scale = "smoke",
    data: Data = "simulated",
    store: Place = STORE,
    seeds: Seeds = None,
    device: Device = "auto",
    folds: Folds = None,
    other: ExternalDataset = None,
    settings: Settings = None,
    arms: Arms = None,
    noise_path: Noise = None,
    prove: Prove = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE.html", help="Where, if not in the store.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write one page of a study whose runs are there: tables, figure, every run's digest."""
    from seedless.studies.engine.page import report_study

    options = read_setting(
        scale, data, seeds, device, folds, other, settings, noise_path, prove, arms
    )
    page = report_study(name, options, store, out)
    if as_json:
        print_json({"page": str(page)})
    else:
        typer.echo(f"page    {page}")


def read_setting(
    scale: str,
    data: str,
    seeds: int | None,
    device: str,
    folds: int | None = None,
    other: list[str] | None = None,
    changes: list[str] | None = None,
    noise: Path | None = None,
    prove: bool = False,
    arms: str | None = None,
) -> StudyOptions:
    """Return what a study is asked to run on, from the options that several verbs share."""
    from seedless.studies.engine.options import StudyOptions

    return StudyOptions(
        scale=scale,
        data=data,
        seeds=seeds,
        device=device,
        folds=folds,
        other=tuple(other or ()),
        noise=None if noise is None else str(noise),
        prove=prove,
        changes=tuple(changes or ()),
        arms=tuple(name.strip() for name in arms.split(",")) if arms else (),
    )


def _print(written: Written, as_json: bool) -> None:
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
        typer.echo(f"{table}\n")
    typer.echo(f"table   {written.markdown}")
    if written.figure is not None:
        typer.echo(f"figure  {written.figure}")


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
