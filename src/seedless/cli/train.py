"""`seedless train CONFIG --out RUN`: train a model and write the run folder."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seedless.cli.argument_checks import check_not_finished
from seedless.cli.completion import complete_presets
from seedless.cli.group import Processes, join_processes, start_processes
from seedless.cli.options import STOPPED, AsJson, Settings, print_json, print_line
from seedless.core.rendezvous import is_first_process

if TYPE_CHECKING:
    from seedless.runs.finished_run import Run
    from seedless.runs.progress import TrainingProgress
    from seedless.train.progress_state import Observer


def train(
    config: Annotated[
        str,
        typer.Argument(
            help="A preset (`seedless config show` lists them), or a TOML file.",
            autocompletion=complete_presets,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="The run folder to write.")],
    force: Annotated[bool, typer.Option("--force", help="Replace an existing run.")] = False,
    processes: Processes = 1,
    as_json: AsJson = False,
    settings: Settings = None,
) -> None:
    """Train a model and write weights, trail and receipt."""
    from seedless.core.config import override
    from seedless.core.config_files import open_config
    from seedless.core.setting_choices import check_choices
    from seedless.core.weights_file import check_weights_exist
    from seedless.data.loading import check_data_exists

    resolved = override(open_config(config), settings or [])
    check_choices(resolved)
    check_weights_exist(resolved)
    check_data_exists(resolved.data)
    check_not_finished(out, force)
    changes = [part for setting in settings or [] for part in ("--set", setting)]
    flags = ["--force"] * force + ["--json"] * as_json
    start_processes(resolved, processes, ["train", config, "--out", str(out), *flags, *changes])
    from seedless.proof.receipt import PAGE
    from seedless.runs.progress import TrainingProgress
    from seedless.runs.train import train_run

    progress = TrainingProgress(out.name, shown=not as_json and is_first_process(), page=out / PAGE)
    observers = make_observers(out, progress)
    with (
        stop_on_interrupt() as stop,
        closing(progress),
        join_processes(resolved) as group,
    ):
        finished = train_run(
            resolved, out, force=force, observers=observers, stop=stop, group=group
        )
    show_run(finished, as_json)


def make_observers(run: Path, progress: TrainingProgress) -> tuple[Observer, ...]:
    """Return what follows a run: the progress, and in the first process the page about it."""
    from seedless.runs.progress_page import ProgressPage

    return (progress, ProgressPage(run)) if is_first_process() else (progress,)


@contextmanager
def stop_on_interrupt() -> Iterator[Callable[[], bool]]:
    """Let the first Ctrl-C stop the run after the current step, and a second one at once.

    Yields a function that says whether Ctrl-C was pressed.
    """
    from seedless.runs.train import InterruptedRunError

    requested = False

    def request_stop(number: int, frame: Any) -> None:
        nonlocal requested
        if requested:
            raise KeyboardInterrupt
        requested = True

    before = signal.signal(signal.SIGINT, request_stop)
    try:
        yield lambda: requested
    except InterruptedRunError as stopped:
        if is_first_process():
            print_line(str(stopped), err=True)
        sys.exit(STOPPED)
    except KeyboardInterrupt:
        print_line(
            "stopped at once; `seedless resume` continues from the last checkpoint", err=True
        )
        sys.exit(STOPPED)
    finally:
        signal.signal(signal.SIGINT, before)


def print_scores(split: str, scores: Mapping[str, Any]) -> None:
    """Print the macro AUC of a split, or its loss and metrics where the user has a loss."""
    if "macro_auc" in scores:
        score = scores["macro_auc"]
        shown = {"macro AUC": "none: too few classes" if score is None else f"{score:.4f}"}
    else:
        shown = {name: f"{value:.4f}" for name, value in scores.items() if name != "n"}
    for name, text in shown.items():
        print_line(f"{f'{split} {name}':<22} {text} (n = {scores['n']})")


def show_run(finished: Run, as_json: bool) -> None:
    """Print the scores and digests of a finished run; of several processes, the first one does."""
    if not is_first_process():
        return
    claims = finished.claims
    if as_json:
        print_json({"run": str(finished.path), **claims})
        return
    selected, metrics = claims["metrics"]["selected"], claims["metrics"]
    for name in ("validation", "test", "train"):
        if name in metrics:
            print_scores(name, metrics[name])
    print_line(f"{'selected epoch':<22} {selected['epoch']}")
    if metrics["converged"] is False:
        from seedless.runs.convergence import describe_failure

        print_line(f"{'NOT CONVERGED':<22} {describe_failure(claims)}")
    print_line(f"{'weights':<22} {claims['weights']['digest']}")
    print_line(f"{'md5':<22} {claims['weights']['md5']}")
    print_line(f"{'trail head':<22} {claims['trail']['head']}")
    print_line(f"{'run':<22} {finished.path}")
    place = shlex.quote(str(finished.path))
    print_line()
    print_line(f"seedless verify {place}      trains it again and compares every bit")
    print_line(f"seedless report {place}      writes a page: curves, scores, examples, proof")
    print_line(f"seedless evaluate {place}    prints the scores of each class")
