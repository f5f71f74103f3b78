"""The HTML page of one or more finished runs, with example records of the first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seedless.analysis.examples import draw_examples
from seedless.analysis.loop_report import is_recorded, render_recorded
from seedless.audit.verification import verify as verify_run
from seedless.core.errors import NEEDS_PAGE, RunError
from seedless.core.files import AnyPath, match_paths, say_no_run
from seedless.report.page import Verdict, render_page, write_page
from seedless.report.run_view import RunView, make_view
from seedless.report.scores import differ_in_settings
from seedless.runs.folder import CONFIG
from seedless.runs.opened_run import check_output_file
from seedless.runs.streamed_results import has_user_loss
from seedless.runs.validation import ValidatedRun, open_validated

PAGE = "report.html"


def report(
    *runs: AnyPath,
    out: AnyPath | None = None,
    examples: int = 2,
    verify: bool = False,
    force: bool = False,
) -> Path:
    """Write one HTML page about finished runs, and return its path.

    The page makes no requests and runs no scripts; equal runs give equal bytes.

    Args:
        runs: folders of finished runs, scored on the same records for the same task, or of runs of
            scripts and recorded loops; or patterns such as "runs/a-*".
        out: the file to write; by default report.html in the folder of the one run. Several runs
            need a file.
        examples: how many test records of the first run are drawn.
        verify: execute the one run again, and put the verdict on the page.
        force: replace a file that exists.

    >>> seedless.report("runs/mine")  # doctest: +SKIP
    PosixPath('runs/mine/report.html')
    """
    folders = [folder for run in runs for folder in _find_folders(run)]
    page = _choose_page(folders, None if out is None else Path(out), force)
    if verify and len(folders) > 1:
        raise RunError("verify is for the page of one run: `seedless verify` each of several")
    labels = name_runs(folders)
    recorded = [is_recorded(run) for run in folders]
    if any(recorded):
        if verify or not all(recorded):
            raise RunError(
                "scripts and loops of your own have a page of their own, without other runs and "
                "without verify: `seedless verify RUN --execute` runs a script again"
            )
        return write_page(page, render_recorded(folders, labels))
    opened = [open_validated(run) for run in folders]
    views = [view_run(run, label) for run, label in zip(opened, labels, strict=True)]
    check_comparable(views)
    text = render_page(
        views,
        title=f"seedless report: {labels[0] if len(views) == 1 else f'{len(views)} runs'}",
        verdict=_execute_again(folders[0]) if verify else None,
        examples=draw_examples(opened[0], examples),
        varied=differ_in_settings(views),
    )
    return write_page(page, text)


def _find_folders(run: AnyPath) -> list[Path]:
    """Return the run folder, or the folders that a pattern such as "runs/a-*" matches."""
    matches = match_paths(run)
    if matches == [Path(run)]:
        return matches
    folders = [path for path in matches if path.is_dir()]
    if not folders:
        raise RunError(f"{say_no_run(run)}: expected a run folder, or a pattern such as 'runs/a-*'")
    return folders


def _choose_page(runs: Sequence[Path], out: Path | None, force: bool) -> Path:
    """Return the file to write; refuse one that exists, or that is in a run folder."""
    if not runs:
        raise RunError("a report needs at least one run folder")
    if out is None:
        if len(runs) > 1:
            raise RunError(NEEDS_PAGE)
        return runs[0] / PAGE
    if not (len(runs) == 1 and out.resolve() == (runs[0] / PAGE).resolve()):
        for run in runs:
            check_output_file(run, out, force)
    return out


def name_runs(runs: Sequence[Path]) -> list[str]:
    """Return the shortest ends of the paths that are different from each other."""
    paths = [run.resolve() for run in runs]
    for path in paths:
        if paths.count(path) > 1:
            raise RunError(f"{path} is named twice; a run is compared with others, not with itself")
    for parts in range(1, 6):
        names = ["/".join(path.parts[-parts:]) for path in paths]
        if len(set(names)) == len(names):
            return names
    return [str(path) for path in paths]


def check_comparable(views: Sequence[RunView]) -> None:
    """Refuse runs that differ in their task or classes."""
    first = views[0]
    for other in views[1:]:
        for what in ("task", "classes"):
            one, two = ((view.predicate.get("data") or {}).get(what) for view in (first, other))
            if one != two:
                raise RunError(
                    f"{first.label} and {other.label} differ in their {what}: {one} and {two}. A "
                    "page compares runs of one task"
                )


def view_run(run: ValidatedRun, label: str) -> RunView:
    """Return a run as a page or a card shows it; one with a loss of its own has no predictions."""
    config = run.read_file(CONFIG).decode()
    predictions = None if has_user_loss(run.claims) else run.read_predictions()
    return make_view(label, run.receipt, config, run.trail, run.log, predictions)


def _execute_again(run: Path) -> Verdict:
    """Return the verdict of `verify`; without its duration, so that equal runs give equal pages."""
    verdict = verify_run(run).as_dict()
    return Verdict(verdict["outcome"], verdict["sentence"])
