"""`seedless train CONFIG --out RUN`: train a model and write the run folder."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seedless.cli.group import Processes, join_processes, start_processes
from seedless.cli.options import STOPPED, AsJson, Settings, print_json, print_line
from seedless.core.rendezvous import is_first_process

if TYPE_CHECKING:
    from seedless.runs.folder import Run


def train(
    config: Annotated[str, typer.Argument(help="A preset's name, such as demo, or a TOML file.")],
    out: Annotated[Path, typer.Option("--out", help="The run folder to write.")],
    force: Annotated[bool, typer.Option("--force", help="Replace an existing run.")] = False,
    processes: Processes = 1,
    as_json: AsJson = False,
    settings: Settings = None,
) -> None:
    """Train a model and write weights, trail and receipt."""
    from seedless.core.config import override
    from seedless.core.config_files import open_config

    resolved = override(open_config(config), settings or [])
    changes = [part for setting in settings or [] for part in ("--set", setting)]
    flags = ["--force"] * force + ["--json"] * as_json
    start_processes(resolved, processes, ["train", config, "--out", str(out), *flags, *changes])
    from seedless.runs.progress import TrainingProgress
    from seedless.runs.train import train_run

    progress = TrainingProgress(out.name, shown=not as_json and is_first_process())
    with (
        stop_on_interrupt() as stop,
        closing(progress),
        join_processes(resolved) as group,
    ):
        finished = train_run(
            resolved, out, force=force, observers=(progress,), stop=stop, group=group
        )
    show_run(finished, as_json)


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
        print_line("NOT CONVERGED          the score is at chance; try train.warmup_steps")
    print_line(f"{'weights':<22} {claims['weights']['digest']}")
    print_line(f"{'md5':<22} {claims['weights']['md5']}")
    print_line(f"{'trail head':<22} {claims['trail']['head']}")
    print_line(f"{'run':<22} {finished.path}   (seedless verify {finished.path})")
