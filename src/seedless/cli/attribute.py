"""`seedless attribute`: what the predictions of a run are based on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seedless.cli.argument_checks import one_of
from seedless.cli.options import AsJson, DataPlace, Entry, Force, RunFolder, print_json, print_line

if TYPE_CHECKING:
    from seedless.analysis.attribute import Explained


def attribute(
    run: RunFolder,
    label: Annotated[
        str | None, typer.Option("--class", help="Explain this class, in records labelled with it.")
    ] = None,
    records: Annotated[int, typer.Option(min=1, help="The largest number of records.")] = 16,
    method: Annotated[
        str,
        typer.Option(
            help="gradcam or attention.",
            callback=one_of("attribution method", "gradcam", "attention"),
        ),
    ] = "gradcam",
    layer: Annotated[str | None, typer.Option(help="A layer other than the declared one.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.npz", help="Write the maps here.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE.html", help="Write a page with pictures here."),
    ] = None,
    force: Force = False,
    entry: Entry = None,
    data: DataPlace = None,
    as_json: AsJson = False,
) -> None:
    """Show where in a record the evidence for a class is.

    Without --class each record is explained for its most probable class.
    """
    from seedless.analysis.attribute import attribute_run, write_maps
    from seedless.runs.opened_run import check_output_file, describe_run

    for place in filter(None, (out, report)):
        check_output_file(run, place, force)
    result = attribute_run(
        run, label=label, records=records, method=method, layer=layer, entry=entry, data=data
    )
    digest = None if out is None else write_maps(result, out)
    if report is not None:
        from seedless.analysis.attribution_page import render_explained
        from seedless.report.page import write_page

        write_page(report, render_explained(result, run.resolve().name))
    rows, layers = _list_rows(result), [[one.layer, one.digest] for one in result.attributions]
    if as_json:
        file = None if out is None else {"path": str(out), "digest": digest}
        page = None if report is None else str(report)
        values = {
            "method": method,
            "layers": layers,
            "records": rows,
            "file": file,
            "page": page,
        }
        print_json({**describe_run(result.opened), **values})
        return
    wide, long = (max(len(row[key]) for row in rows) for key in ("id", "class"))
    for row in rows:
        print_line(
            f"{row['id']:<{wide}} {row['class']:<{long}} p {row['probability']:.4f}  "
            f"{'labelled' if row['labelled'] else 'not labelled':<12}  {row['strongest']}"
        )
    for name, one in layers:
        print_line(f"{method} {name}  {one}")
    if out is not None:
        print_line(f"{out}  {digest}")
    if report is not None:
        print_line(str(report))


def _list_rows(result: Explained) -> list[dict[str, Any]]:
    import numpy as np

    last = result.attributions[-1]
    rows = []
    for number, (name, label) in enumerate(zip(last.ids, result.classes, strict=True)):
        shown = last.maps[number]
        place = [int(axis) for axis in np.unravel_index(int(shown.argmax()), shown.shape)]
        rows.append(
            {
                "id": name,
                "class": label,
                "probability": float(result.probabilities[number]),
                "labelled": bool(result.labelled[number]),
                "strongest": _describe_place(place, result.opened.fs, bool(shown.any())),
            }
        )
    return rows


def _describe_place(place: list[int], fs: float | None, any_evidence: bool) -> str:
    if not any_evidence:
        return "no evidence"
    if len(place) == 2:
        return f"strongest at row {place[0]}, column {place[1]}"
    return f"strongest at {place[0] / fs:.2f} s" if fs else f"strongest at sample {place[0]}"
