"""`seedless robustness`: how much noise lowers the scores of a run."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seedless.cli.argument_checks import one_of
from seedless.cli.options import AsJson, DataPlace, Entry, RunFolder, print_line, print_result

if TYPE_CHECKING:
    from seedless.evaluate.robustness import Row


def robustness(
    run: RunFolder,
    noise: Annotated[
        str,
        typer.Option(
            help="simulated, or nstdb (recorded).",
            callback=one_of("noise source", "simulated", "nstdb"),
        ),
    ] = "simulated",
    noise_path: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where nstdb is, if not fetched.")
    ] = None,
    snr: Annotated[
        str, typer.Option(metavar="DB,DB,...", help="Signal-to-noise ratios in dB.")
    ] = "24,12,6,0",
    entry: Entry = None,
    data: DataPlace = None,
    as_json: AsJson = False,
) -> None:
    """Add noise to test records and print how the score drops."""
    ratios = _read_ratios(snr)
    from seedless.analysis.robustness import measure_run_robustness
    from seedless.runs.opened_run import describe_run

    result = measure_run_robustness(
        run,
        source=noise,
        noise_path=noise_path,
        snrs=ratios,
        entry=entry,
        data=data,
        watch=(lambda _: None) if as_json else _print,
    )
    about, rows = describe_run(result.opened), [asdict(row) for row in result.rows]
    text = f"\n{noise} noise on {len(result.opened.ids)} {about['split']} records"
    print_result({**about, "noise": noise, "rows": rows}, text, as_json)


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
        print_line(f"{'noise':<6} {'SNR dB':>7} {'macro AUC':>10} {'drop':>8}")
    ratio = "" if row.snr_db is None else f"{row.snr_db:g}"
    score = "-" if row.macro_auc is None else f"{row.macro_auc:.4f}"
    drop = "-" if row.drop is None else f"{row.drop:.4f}"
    print_line(f"{row.kind:<6} {ratio:>7} {score:>10} {drop:>8}")
