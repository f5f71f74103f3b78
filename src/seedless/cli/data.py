"""`seedless data`: list, fetch, check and show datasets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seedless.cli.completion import complete_datasets
from seedless.cli.options import (
    AsJson,
    ConfigFile,
    Settings,
    make_group,
    print_json,
    print_line,
    print_result,
    read_config,
)
from seedless.core.display import escape_text

if TYPE_CHECKING:
    from seedless.core.dataset import Dataset

app = make_group("List, download, check and show datasets.")

Name = Annotated[
    str,
    typer.Argument(
        help="A name of `seedless data list`, or an .npz file.", autocompletion=complete_datasets
    ),
]
Place = Annotated[
    str | None, typer.Argument(metavar="PATH", help="Its folder or file, if it was not fetched.")
]


@app.command("list")
def list_datasets(as_json: AsJson = False) -> None:
    """List every dataset with its size and licence."""
    from seedless.data.catalog import CATALOG, as_dict

    if as_json:
        print_json([as_dict(entry) for entry in CATALOG.values()])
        return
    print_line(f"{'name':<18} {'kind':<6} {'samples':>8} {'classes':>7} {'download':>9}  licence")
    for entry in CATALOG.values():
        samples = f"{sum(entry.sizes.values()):,}" if entry.sizes else "any"
        samples = "" if entry.kind == "noise" else samples
        size = f"{entry.size / 1e6:,.0f} MB" if entry.size else "none"
        classes = len(entry.classes) or ""
        print_line(
            f"{entry.name:<18} {entry.kind:<6} {samples:>8} {classes:>7} {size:>9}  {entry.licence}"
        )
        larger = f"--size {', '.join(map(str, entry.larger))} too" if entry.larger else ""
        if entry.note or larger:
            print_line(f"{'':<18} {'; '.join(text for text in (entry.note, larger) if text)}")


@app.command("fetch")
def fetch_dataset(
    name: Annotated[
        str,
        typer.Argument(help="A name of `seedless data list`.", autocompletion=complete_datasets),
    ],
    to: Annotated[Path | None, typer.Option(help="The folder; default: in the cache.")] = None,
    extra: Annotated[
        list[str] | None, typer.Option(help="Further files, such as 500 for PTB-XL at 500 Hz.")
    ] = None,
    size: Annotated[
        int | None, typer.Option(help="Height and width in pixels: 64, 128 or 224 for MedMNIST.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Download a dataset and check the hash of every file.

    If it was interrupted, the same command continues.
    """
    from seedless.core.cache_location import find_cache_folder
    from seedless.data.catalog import find_entry
    from seedless.data.download.fetch import fetch

    entry = find_entry(name, size)
    folder = to if to is not None else find_cache_folder() / "downloads" / entry.name
    place = fetch(entry, folder, extras=tuple(extra or ()), progress=not as_json)
    values = {"name": entry.name, "path": str(place)}
    print_result(values, f"{entry.name} is in {place}", as_json)


@app.command("check")
def check(
    name: Name,
    path: Place = None,
    labels_only: Annotated[
        bool, typer.Option("--labels-only", help="Count labels only; PATH is PTB-XL's table.")
    ] = False,
    as_json: AsJson = False,
    config: ConfigFile = None,
    settings: Settings = None,
) -> None:
    """Read a dataset, count its classes and check its signals."""
    from seedless.data.quality_checks import check_label_quality, check_quality

    if name == "nstdb":
        _check_noise(path, as_json)
        return
    if labels_only:
        result = check_label_quality(
            _read_labels(name, path, read_config(config, settings).data.task)
        )
        digest = None
    else:
        data = _load(name, path, config, [*(settings or []), "data.cache=false"])
        result, digest = check_quality(data), data.digest
    text = str(result) if digest is None else f"{result}\ndigest {digest}"
    print_result({**result.as_dict(), "digest": digest}, text, as_json)


@app.command("show")
def show(
    name: Name,
    path: Place = None,
    label: Annotated[str | None, typer.Option("--class", help="A record of this class.")] = None,
    record: Annotated[str | None, typer.Option(help="The record with this id.")] = None,
    out: Annotated[Path | None, typer.Option(help="The file; default: NAME-ID.png.")] = None,
    as_json: AsJson = False,
    config: ConfigFile = None,
    settings: Settings = None,
) -> None:
    """Write a record as a PNG, an ECG on ECG paper.

    ECG paper has 25 mm/s and 10 mm/mV, or the scale that is printed on it
    where unit or rate are not known. Images are enlarged.
    """
    from seedless.report.record_picture import draw_record, save_png

    data = _load(name, path, config, settings)
    row = _pick(data, label, record)
    labels = [c for c, present in zip(data.classes, data.Y[row], strict=True) if present]
    title = escape_text(f"{data.name}  {data.ids[row]}  {', '.join(labels) or 'unlabelled'}")
    title += _describe_person(data, row)
    figure = draw_record(data.X[row], leads=data.leads, fs=data.fs, units=data.units, title=title)
    safe = str(data.ids[row]).replace("/", "-")
    file = save_png(figure, out if out is not None else Path(f"{Path(data.name).stem}-{safe}.png"))
    values = {
        "file": str(file),
        "id": str(data.ids[row]),
        "labels": labels,
        "warnings": list(data.warnings),
    }
    notes = [f"warning: {escape_text(text)}" for text in data.warnings]
    print_result(values, "\n".join([title, f"written to {file}", *notes]), as_json)


def _load(name: str, path: str | None, config: Path | None, settings: list[str] | None) -> Dataset:
    from seedless.data.loading import load

    return load(read_config(config, settings, data__name=name, data__path=path).data)


def _check_noise(path: str | None, as_json: bool) -> None:
    """Print the channels and seconds of each kind of noise; it has no records or classes."""
    from seedless.data.loading import find_download
    from seedless.data.readers.nstdb import read_noise

    noise = read_noise(path if path is not None else find_download("nstdb"))
    result = {
        kind: {"channels": len(signal), "seconds": signal.shape[1] / noise.fs}
        for kind, signal in noise.kinds.items()
    }
    lines = [
        f"{k}: {one['channels']} channels of {one['seconds']:.1f} s" for k, one in result.items()
    ]
    print_result({"name": "nstdb", "noise": result}, "\n".join(lines), as_json)


def _read_labels(name: str, path: str | None, task: str | None) -> Any:
    """Read PTB-XL's label table: a CSV file, or the folder that holds ptbxl_database.csv."""
    from seedless.core.errors import DataError
    from seedless.data.readers.ptbxl_labels import read_labels

    if name != "ptb-xl" or path is None:
        raise DataError(
            "--labels-only reads PTB-XL's table: seedless data check ptb-xl FILE.csv --labels-only"
        )
    table = Path(path)
    if table.is_dir():
        tables = sorted(table.glob("ptbxl_database*.csv"))
        whole = table / "ptbxl_database.csv"
        if whole not in tables and len(tables) > 1:
            names = ", ".join(file.name for file in tables)
            raise DataError(f"{table}: several tables, {names}; give the one to read as PATH")
        table = whole if whole in tables or not tables else tables[0]
    return read_labels(table, task=task or "rhythm")


def _pick(data: Dataset, label: str | None, record: str | None) -> int:
    """Return the row with an id, else the first row of a class, else the first row."""
    import numpy as np

    from seedless.core.errors import DataError
    from seedless.core.registry import choose, suggest

    rows = np.arange(len(data))
    if record is not None:
        rows = np.flatnonzero(data.ids == record)
        if len(rows) == 0:
            hint = suggest(record, [str(name) for name in data.ids[:5000]])
            example = "" if hint else f"; its first id is {str(data.ids[0])!r}"
            raise DataError(f"{data.name} has no record {record!r}{hint}{example}")
    if label is not None:
        column = choose("class", label, {name: k for k, name in enumerate(data.classes)})
        rows = rows[data.Y[rows, column] == 1]
        if len(rows) == 0:
            raise DataError(f"{data.name}: no such record is labelled {label}")
    return int(rows[0])


def _describe_person(data: Dataset, row: int) -> str:
    parts = []
    if data.sex is not None and data.sex[row]:
        parts.append(str(data.sex[row]))
    if data.age is not None and data.age[row] == data.age[row]:
        parts.append(f"{data.age[row]:.0f} years")
    return "  " + ", ".join(parts) if parts else ""
