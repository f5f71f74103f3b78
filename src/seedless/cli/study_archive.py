"""`seedless study bundle|unpack`: a study begun on one machine, and finished on another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seedless.cli.options import AsJson, Settings, print_json
from seedless.cli.study import (
    STORE,
    Data,
    Device,
    ExternalDataset,
    Folds,
    Place,
    Scale,
    Seeds,
    read_setting,
)

if TYPE_CHECKING:
    from seedless.studies.engine.grid import Point
    from seedless.studies.engine.options import StudyOptions


def bundle(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="Studies: `seedless study list`.")
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The file to write.")],
    scale: Scale = "smoke",
    data: Data = "simulated",
    store: Place = STORE,
    seeds: Seeds = None,
    device: Device = "auto",
    folds: Folds = None,
    other: ExternalDataset = None,
    settings: Settings = None,
    weights: Annotated[bool, typer.Option("--weights", help="Take the weights along.")] = False,
    part_size: Annotated[
        int | None,
        typer.Option("--part-size", metavar="MIB", help="Several files, none of them larger."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write what is finished of a study, or of several, as one file; the same runs, the same bytes.

    Receipts, configurations, scores and predictions go along; trails and checkpoints do not.
    """
    from seedless.studies.engine.run_archive import write_run_archives
    from seedless.studies.engine.store import Store

    points = _gather(names, read_setting(scale, data, seeds, device, folds, other, settings))
    place = Store(store)
    parcels = write_run_archives(
        place, points, out, weights=weights, part_size=part_size, force=force
    )
    if as_json:
        print_json([{**asdict(parcel), "file": str(parcel.file)} for parcel in parcels])
        return
    for parcel in parcels:
        typer.echo(f"{parcel.file}  runs: {parcel.runs}, {parcel.size:,} bytes, {parcel.digest}")


def unpack(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Bundles of studies.")],
    store: Place = STORE,
    as_json: AsJson = False,
) -> None:
    """Put the runs of a bundle into a store, each checked against its receipt."""
    from seedless.studies.engine.run_archive import unpack_run_archive
    from seedless.studies.engine.store import Store

    found = {str(file): unpack_run_archive(file, Store(store)) for file in files}
    if as_json:
        print_json({file: asdict(one) for file, one in found.items()})
        return
    for file, one in found.items():
        typer.echo(f"{file}  runs: {one.new} new, {one.known} known, {one.failed} failed")


def _gather(names: Sequence[str], options: StudyOptions) -> list[Point]:
    """Return the points of several studies; an option counts where a study has a use for it."""
    from seedless.studies.catalog import open_study

    points: list[Point] = []
    for name in names:
        study = open_study(name)
        folds = options.folds if "folds" in study.takes else None
        other = options.other if "other" in study.takes else ()
        points += study.plan(replace(options, folds=folds, other=other)).points
    return points
