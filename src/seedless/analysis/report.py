"""The page of one or more finished runs, wherever they lie."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seedless.analysis.examples import draw_examples
from seedless.audit.validation import validate
from seedless.audit.verification import verify
from seedless.core.errors import RunError
from seedless.report.page import Verdict, write_page
from seedless.report.runview import RunView, read_run
from seedless.report.scores import differ_in_settings
from seedless.runs.opening import check_output_file

PAGE = "report.html"


def write_report(
    runs: Sequence[Path],
    out: Path | None = None,
    *,
    examples: int = 2,
    again: bool = False,
    force: bool = False,
) -> Path:
    """Write the page of these runs; by default into the folder of the one run there is.

    Args:
        runs: folders of finished runs, scored on the same records for the same task.
        out: the file to write; several runs need one.
        examples: how many records of the first run's test set are drawn.
        again: execute the one run again, and put the verdict on the page.
        force: replace a file that is there.
    """
    if not runs:
        raise RunError("a report needs at least one run folder")
    if out is None:
        if len(runs) > 1:
            raise RunError("a report of several runs belongs to none of them: name a file, --out")
        out = runs[0] / PAGE
    elif not (len(runs) == 1 and out.resolve() == (runs[0] / PAGE).resolve()):
        for run in runs:
            check_output_file(run, out, force)
    if again and len(runs) > 1:
        raise RunError("--verify is for the page of one run: `seedless verify` each of several")
    views = [read_run(run, label) for run, label in zip(runs, name_runs(runs), strict=True)]
    check_alike(views)
    verdict = _judge(runs, again)
    title = f"seedless report: {views[0].label if len(views) == 1 else f'{len(views)} runs'}"
    pictures = draw_examples(runs[0], examples) if views[0].predictions is not None else []
    return write_page(
        out,
        views,
        title=title,
        verdict=verdict,
        examples=pictures,
        varied=differ_in_settings(views),
    )


def name_runs(runs: Sequence[Path]) -> list[str]:
    """Return as much of each path's end as tells the runs apart."""
    paths = [run.resolve() for run in runs]
    for path in paths:
        if paths.count(path) > 1:
            raise RunError(f"{path} is given twice; a run is compared with others, not with itself")
    for parts in range(1, 6):
        names = ["/".join(path.parts[-parts:]) for path in paths]
        if len(set(names)) == len(names):
            return names
    return [str(path) for path in paths]


def check_alike(views: Sequence[RunView]) -> None:
    """Refuse runs whose scores say nothing about each other."""
    first = views[0]
    for other in views[1:]:
        for what in ("task", "classes"):
            one, two = ((view.predicate.get("data") or {}).get(what) for view in (first, other))
            if one != two:
                raise RunError(
                    f"{first.label} and {other.label} differ in their {what}: {one} and {two}. A "
                    "page compares runs of one task"
                )


def _judge(runs: Sequence[Path], again: bool) -> Verdict | None:
    """Return the verdict on the run: of a repeat where asked, else only where one is not valid.

    How long a repeat took is left out, so that pages repeat.
    """
    if again:
        found = verify(runs[0]).as_dict()
        return Verdict(found["outcome"], found["sentence"])
    for run in runs:
        problems = validate(run).problems
        if problems:
            return Verdict("invalid", f"{run.name}: {problems[0]}" if runs[1:] else problems[0])
    return None
