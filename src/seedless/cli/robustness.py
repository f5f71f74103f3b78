"""`seedless robustness`: what noise does to a run's scores."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seedless.cli.options import AsJson, DataPlace, Entry, print_json

if TYPE_CHECKING:
    from seedless.evaluate.robustness import Row


def robustness(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished run.")],
    noise: Annotated[
        str, typer.Option("--noise", help="simulated, or nstdb: the recorded noise.")
    ] = "simulated",
    noise_path: Annotated[
        Path | None,
        typer.Option("--noise-path", metavar="FOLDER", help="Where nstdb lies, if not fetched."),
    ] = None,
    snr: Annotated[
        str,
        typer.Option("--snr", metavar="DB,DB,...", help="Signal-to-noise ratios in dB."),
    ] = "24,12,6,0",
    entry: Entry = None,
    data: DataPlace = None,
    as_json: AsJson = False,
) -> None:
    """Add noise to RUN's test records, before normalization, and print what each kind costs."""
    from seedless.analysis.robustness import measure_run_robustness
    from seedless.runs.opening import describe_run

    ratios = _read_ratios(snr)
    found = measure_run_robustness(
        run,
        source=noise,
        noise_path=noise_path,
        snrs=ratios,
        entry=entry,
        data=data,
        watch=(lambda _: None) if as_json else _print,
    )
    if as_json:
        rows = [asdict(row) for row in found.rows]
        print_json({**describe_run(found.opened), "noise": noise, "rows": rows})
    else:
        said = describe_run(found.opened)
        typer.echo(f"\n{noise} noise on {len(found.opened.ids)} {said['split']} records")


def _read_ratios(text: str) -> list[float]:
    from seedless.core.errors import ConfigError

    try:
        return [float(part) for part in text.replace(",", " ").split()]
    except ValueError:
        raise ConfigError(
            f"expected --snr as numbers in dB, such as 24,12,0; got {text!r}"
        ) from None


def _print(row: Row) -> None:
    if row.kind == "clean":
        typer.echo(f"{'noise':<6} {'SNR dB':>7} {'macro AUC':>10} {'drop':>8}")
    ratio = "" if row.snr_db is None else f"{row.snr_db:g}"
    score = "-" if row.macro_auc is None else f"{row.macro_auc:.4f}"
    drop = "-" if row.drop is None else f"{row.drop:.4f}"
    typer.echo(f"{row.kind:<6} {ratio:>7} {score:>10} {drop:>8}")
