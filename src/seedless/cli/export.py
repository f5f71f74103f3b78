"""`seedless export`: a run's model as a file that other programs run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seedless.cli.options import AsJson, DataPlace, Entry, print_json


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished run.")],
    onnx: Annotated[Path, typer.Option("--onnx", metavar="FILE.onnx", help="The file to write.")],
    records: Annotated[
        int, typer.Option("--records", min=1, help="Test records to check it on, at most.")
    ] = 256,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file if it is there.")
    ] = False,
    entry: Entry = None,
    data: DataPlace = None,
    as_json: AsJson = False,
) -> None:
    """Write RUN's selected weights as ONNX, normalization included, checked on real records."""
    from seedless.analysis.export import TOLERANCE, export_run
    from seedless.runs.opening import describe_run

    done = export_run(run, onnx, records=records, force=force, entry=entry, data=data)
    size = done.file.stat().st_size
    if as_json:
        said = {
            "file": str(done.file),
            "bytes": size,
            "digest": done.digest,
            "max_abs_difference": done.difference,
            "tolerance": TOLERANCE,
            "records": done.records,
        }
        print_json({**describe_run(done.opened), **said})
        return
    typer.echo(
        f"{done.file}\n{size:,} bytes\n{done.digest}\n"
        f"logits differ from the run's by at most {done.difference:.2g} on {done.records} "
        f"{done.opened.split} records ({TOLERANCE:g} allowed)"
    )
