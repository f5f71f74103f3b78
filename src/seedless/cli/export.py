"""`seedless export`: the model of a run as a file that other programs can read."""

from pathlib import Path
from typing import Annotated

import typer

from seedless.cli.options import AsJson, DataPlace, Entry, Force, RunFolder, print_result
from seedless.core.errors import ConfigError


def export(
    run: RunFolder,
    onnx: Annotated[
        Path | None, typer.Option(metavar="FILE.onnx", help="Write the model as ONNX.")
    ] = None,
    cyclonedx: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="Write its bill of materials.")
    ] = None,
    records: Annotated[int, typer.Option(min=1, help="The most test records to check.")] = 256,
    force: Force = False,
    entry: Entry = None,
    data: DataPlace = None,
    as_json: AsJson = False,
) -> None:
    """Write the model as ONNX, or its bill of materials.

    --onnx checks the file on real records. --cyclonedx writes an ML-BOM: what
    the model is, its scores, and how it was made, from the receipt alone.
    """
    if (onnx is None) == (cyclonedx is None):
        raise ConfigError("expected one of --onnx FILE.onnx and --cyclonedx FILE.json")
    from seedless.analysis.run_export import export as export_files

    done = export_files(
        run,
        onnx=onnx,
        cyclonedx=cyclonedx,
        records=records,
        force=force,
        entry=entry,
        data=data,
    )
    print_result(done.as_dict(), done, as_json)
