"""`seedless export`: the model of a run as a file that other programs can run."""

from pathlib import Path
from typing import Annotated

import typer

from seedless.cli.options import AsJson, DataPlace, Entry, Force, RunFolder, print_result


def export(
    run: RunFolder,
    onnx: Annotated[Path, typer.Option(metavar="FILE.onnx", help="The file to write.")],
    records: Annotated[int, typer.Option(min=1, help="The most test records to check.")] = 256,
    force: Force = False,
    entry: Entry = None,
    data: DataPlace = None,
    as_json: AsJson = False,
) -> None:
    """Write the model as ONNX, and check it on real records."""
    from seedless.analysis.onnx_export import TOLERANCE, export_run
    from seedless.runs.opened_run import describe_run

    done = export_run(run, onnx, records=records, force=force, entry=entry, data=data)
    size = done.file.stat().st_size
    values = {
        "file": str(done.file),
        "bytes": size,
        "digest": done.digest,
        "max_abs_difference": done.difference,
        "tolerance": TOLERANCE,
        "records": done.records,
    }
    text = (
        f"{done.file}\n{size:,} bytes\n{done.digest}\n"
        f"logits differ from the run's by at most {done.difference:.2g} on {done.records} "
        f"{done.opened.split} records ({TOLERANCE:g} allowed)"
    )
    print_result({**describe_run(done.opened), **values}, text, as_json)
