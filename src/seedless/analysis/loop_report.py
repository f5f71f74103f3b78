"""The HTML page of runs of scripts and of recorded loops."""

import os
from collections.abc import Sequence
from pathlib import Path

from seedless.audit.loop_comparison import compare_loops
from seedless.core.errors import RunError
from seedless.proof.loop_lines import read_loop
from seedless.proof.receipt import FILE as RECEIPT
from seedless.proof.trail import FILE as TRAIL
from seedless.report.loop_page import FirstDifference, LoopView, render_loop_page
from seedless.runs.folder import CONFIG
from seedless.runs.script_run import is_script_run, open_script


def is_recorded(run: Path) -> bool:
    """Whether a folder holds the run of a script, or the trail of the user's own loop."""
    if is_script_run(run):
        return True
    is_run = any(os.path.lexists(run / name) for name in (RECEIPT, CONFIG))
    return not is_run and (run / TRAIL).is_file()


def render_recorded(runs: Sequence[Path], labels: Sequence[str]) -> str:
    """Return the page of runs of scripts and of recorded loops, compared with the first of them."""
    views = [open_view(run, label) for run, label in zip(runs, labels, strict=True)]
    differences = [_find_difference(views[0], other) for other in views[1:]]
    title = f"seedless report: {labels[0] if len(views) == 1 else f'{len(views)} runs'}"
    return render_loop_page(views, differences, title=title)


def open_view(run: Path, label: str) -> LoopView:
    """Return a run as the page shows it; one that is not what its receipt says is refused."""
    if is_script_run(run):
        opened = open_script(run)
        return LoopView(label, dict(enumerate(opened.trails)), opened.receipt, opened.data)
    trails = read_loop(run)
    if any(len(trail) < 2 for trail in trails.values()):
        raise RunError(f"{run} has an empty trail: no step was recorded, nothing to show")
    return LoopView(label, trails)


def _find_difference(first: LoopView, other: LoopView) -> FirstDifference | None:
    found, _ = compare_loops(first.trails, other.trails)
    return None if found is None else FirstDifference(other.label, found.step, found.names)
