"""The page of a study: its question, tables and figure, and every run by its digest.

One HTML file that asks for nothing from outside and runs no script. Equal runs give equal bytes.
"""

from __future__ import annotations

import base64
from collections import Counter
from pathlib import Path
from typing import Any

from seedless.core.errors import StudyError
from seedless.core.files import write_atomic
from seedless.report.render import render
from seedless.studies.catalog import open_study
from seedless.studies.engine.options import StudyOptions
from seedless.studies.engine.results import Results, read_results
from seedless.studies.engine.runner import write_study
from seedless.studies.engine.store import Outcome, Store
from seedless.studies.engine.table import Table


def report_study(name: str, options: StudyOptions, folder: Path, out: Path | None = None) -> Path:
    """Write a study's tables and figure and the page that holds both; return the page's place.

    Left out, ``out`` lies beside the tables in the store. A missing run is an error, and so is a
    file that is there: nothing is replaced but the store's own page.
    """
    if out is not None and out.exists():
        raise StudyError(f"{out} is there already; choose another file for the page")
    written = write_study(name, options, folder)
    results = read_results(open_study(name).plan(options), Store(folder), options)
    place = out or written.markdown.with_suffix(".html")
    figure = written.markdown.with_suffix(".png").read_bytes()
    text = render_study(results, written.tables, figure)
    try:
        write_atomic(place, text.encode())
    except OSError as error:
        raise StudyError(f"cannot write {place}: {error.strerror or error}") from None
    return place


def render_study(results: Results, tables: tuple[Table, ...], figure: bytes) -> str:
    """Return the page as text; ``figure`` is a PNG."""
    grid, options = results.grid, results.options
    states = Counter(describe_state(one) for one in results.outcomes)
    return render(
        "study.html",
        title=f"Study {grid.study}",
        name=grid.study,
        question=open_study(grid.study).question,
        scale=options.scale,
        data=Path(options.data).stem,
        points=len(grid.points),
        runs=len({point.key for point in grid.points}),
        states=sorted(states.items()),
        digest=grid.digest,
        factor=", ".join(grid.factor) or "nothing",
        tables=tables,
        figure=f"data:image/png;base64,{base64.b64encode(figure).decode()}",
        outcomes=[show_outcome(one) for one in results.outcomes],
        failures=[(one.point.label, one.error) for one in results.outcomes if one.error],
    )


def describe_state(one: Outcome) -> str:
    """Say how a run ended."""
    if not one.ok:
        return "failed"
    return "converged" if one.converged else "at chance"


def show_outcome(one: Outcome) -> dict[str, Any]:
    """Return what the page says of a run."""
    return {
        "label": one.point.label,
        "key": one.point.key,
        "state": describe_state(one),
        "weights": (one.weights or "").removeprefix("sha256:"),
    }
