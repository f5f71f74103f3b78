"""The page of a study: question, tables, figure, and every run with its digest.

One HTML file that loads nothing from elsewhere and runs no script. Equal runs give equal bytes.
"""

import base64
from collections import Counter
from pathlib import Path

from seedless.core.digests import get_hex
from seedless.core.errors import StudyError
from seedless.core.files import write_atomic
from seedless.report.contents import add_contents
from seedless.report.render import render
from seedless.studies.engine.results import Results
from seedless.studies.engine.runner import write_study
from seedless.studies.engine.store import Store
from seedless.studies.engine.study import Plan
from seedless.studies.engine.table import Table


def report_study(plan: Plan, store: Store, out: Path | None = None) -> Path:
    """Write the tables and the figure of a study and a page with both; return the page's path.

    Without ``out`` the page is written next to the tables in the store and replaces an earlier one.
    A file ``out`` that exists is not replaced. A missing run is an error.
    """
    if out is not None and out.exists():
        raise StudyError(f"{out} exists already; choose another file for the page")
    written = write_study(plan, store)
    assert written.results is not None
    assert written.figure is not None
    place = out or written.markdown.with_suffix(".html")
    figure = written.figure.read_bytes()
    text = render_study(plan.study.question, written.results, written.tables, figure)
    try:
        write_atomic(place, text.encode())
    except OSError as error:
        raise StudyError(f"cannot write {place}: {error.strerror or error}") from None
    return place


def render_study(question: str, results: Results, tables: tuple[Table, ...], figure: bytes) -> str:
    """Return the page as text; ``figure`` is the content of a PNG file."""
    grid, outcomes = results.grid, results.outcomes
    page = render(
        "study.html",
        title=f"Study {grid.study}",
        name=grid.study,
        question=question,
        scale=results.options.scale,
        data=Path(results.options.data).stem,
        points=len(grid.points),
        runs=len(grid.runs),
        states=sorted(Counter(one.state for one in outcomes).items()),
        digest=grid.digest,
        factor=", ".join(grid.factor) or "nothing",
        tables=tables,
        figure=f"data:image/png;base64,{base64.b64encode(figure).decode()}",
        outcomes=[
            {
                "label": one.point.label,
                "key": one.point.key,
                "state": one.state,
                "weights": get_hex(one.weights or ""),
            }
            for one in outcomes
        ],
        failures=[(one.point.label, one.error) for one in outcomes if one.error],
    )
    return add_contents(page)
