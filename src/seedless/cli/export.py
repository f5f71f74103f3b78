"""`seedless export`: the model of a run as a file that other programs can read."""

from pathlib import Path
from typing import Annotated

import typer

from seedless.cli.options import (
    AsJson,
    DataPlace,
    Entry,
    Force,
    RunFolder,
    print_result,
    write_output,
)
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
    if onnx is not None:
        write_onnx(run, onnx, records, force, entry, data, as_json)
    if cyclonedx is not None:
        write_ml_bom(run, cyclonedx, force, as_json)


def write_onnx(
    run: Path,
    out: Path,
    records: int,
    force: bool,
    entry: str | None,
    data: str | None,
    as_json: bool,
) -> None:
    """Write and check the ONNX file; print what was checked."""
    from seedless.analysis.onnx_export import TOLERANCE, export_run
    from seedless.runs.opened_run import describe_run

    done = export_run(run, out, records=records, force=force, entry=entry, data=data)
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


def write_ml_bom(run: Path, out: Path, force: bool, as_json: bool) -> None:
    """Write the bill of materials; print its digest."""
    from seedless.core.files import hash_file
    from seedless.report.ml_bom import SPEC_VERSION, make_ml_bom
    from seedless.runs.opened_run import check_output_file
    from seedless.runs.validation import open_validated

    check_output_file(run, out, force)
    write_output(out, make_ml_bom(open_validated(run).receipt))
    values = {"run": str(run), "file": str(out), "digest": hash_file(out)}
    text = f"{out}\nCycloneDX {SPEC_VERSION}\n{values['digest']}"
    print_result({**values, "cyclonedx": SPEC_VERSION}, text, as_json)
