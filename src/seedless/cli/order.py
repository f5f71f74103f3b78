"""`seedless order show NAME`: the permutations an order makes, and what they cost."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seedless.cli.options import AsJson, ConfigFile, Settings, print_json, read_config

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seedless.ordering import Order

app = typer.Typer(help="Seed-free batch order.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass


@app.command("show")
def show(
    name: Annotated[
        str,
        typer.Argument(help="content, golden, seeded, herding, ...; a wrong name lists all."),
    ],
    data: Annotated[
        Path | None,
        typer.Option(help="An .npz file with X and, if there are labels, Y. [default: a stand-in]"),
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="How many epochs to show.")] = 4,
    batch_size: Annotated[int | None, typer.Option(help="Samples a batch.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the seeded control.")] = None,
    as_json: AsJson = False,
    config: ConfigFile = None,
    settings: Settings = None,
) -> None:
    """Print an order's first epochs on some data: digests, first rows, drift between epochs."""
    from seedless.core.registry import choose
    from seedless.ordering import STRATEGIES, collisions, make_order

    resolved = read_config(
        config, settings, order__name=name, order__batch_size=batch_size, order__seed=seed
    ).order
    choose("order", resolved.name, STRATEGIES)  # a wrong name should not cost reading the data
    samples, labels, source = _read_arrays(data) if data else _make_stand_in()
    order = make_order(
        resolved.name,
        samples,
        labels=labels,
        batch_size=resolved.batch_size,
        seed=resolved.seed,
        offset=resolved.offset,
        keep_unlabelled=resolved.keep_unlabelled,
    )
    found: dict[str, Any] = {
        "order": order.name,
        "data": source,
        "records": len(samples),
        "samples": len(order),
        "batch_size": order.batch_size,
        "needs_losses": order.needs_losses,
        "epochs": _describe_epochs(order, epochs),
    }
    if resolved.name == "golden":
        found["collisions"] = asdict(collisions(samples[sorted(order.epoch(0))]))
    if as_json:
        print_json(found)
    else:
        _print(found)


def _describe_epochs(order: Order, count: int) -> list[dict[str, Any]]:
    """Each epoch's digest, first rows, and rank correlation with the epoch before."""
    import numpy as np

    described = []
    before = None
    for epoch in range(count):
        schedule = order.schedule(epoch)
        rows = np.concatenate(schedule.batches)
        place = np.argsort(rows).astype(np.float64)
        drift = None
        if before is not None and len(place) > 1:
            drift = round(float(np.corrcoef(before, place)[0, 1]), 4)
        before = place
        described.append(
            {
                "epoch": epoch,
                "batches": len(schedule.batches),
                "digest": schedule.digest,
                "first": rows[:8].tolist(),
                "rank_correlation": drift,
            }
        )
    return described


def _print(found: dict[str, Any]) -> None:
    typer.echo(f"{found['order']} on {found['data']}")
    typer.echo(
        f"{found['samples']} samples of {found['records']} records, "
        f"batches of {found['batch_size']}"
        + ("; content order until losses are observed" if found["needs_losses"] else "")
    )
    typer.echo(f"\n{'epoch':>5} {'batches':>7} {'rank corr.':>10}  {'digest':<27} first rows")
    for epoch in found["epochs"]:
        drift = epoch["rank_correlation"]
        shown = "" if drift is None else f"{drift:.4f}"
        typer.echo(
            f"{epoch['epoch']:>5} {epoch['batches']:>7} {shown:>10}"
            f"  {epoch['digest'][:23]}...  {' '.join(map(str, epoch['first']))}"
        )
    if "collisions" in found:
        typer.echo(
            f"\n{'keys from':<14} {'records sharing':>15} {'groups':>7} {'largest':>7} entropy lost"
        )
        for kind, title in (("exact", "exact sums"), ("float32", "float32 sums")):
            shared = found["collisions"][kind]
            share = shared["records"] / found["samples"]
            typer.echo(
                f"{title:<14} {shared['records']:>7} ({share:5.1%}) {shared['groups']:>7} "
                f"{shared['largest']:>7} {shared['entropy_lost']:.4%}"
            )


def _read_arrays(path: Path) -> tuple[NDArray[Any], NDArray[Any] | None, str]:
    """Read X (times `scale`, where there is one) and Y from an .npz file, never unpickling."""
    from zipfile import BadZipFile

    import numpy as np

    from seedless.core.errors import DataError

    try:
        with np.load(path, allow_pickle=False) as arrays:
            if "X" not in arrays:
                raise DataError(f"{path} holds {', '.join(arrays) or 'nothing'}; expected X, and Y")
            samples = arrays["X"]
            if "scale" in arrays:
                samples = samples.astype(np.float32) * np.float32(arrays["scale"])
            return samples, arrays.get("Y"), path.name
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None
    except (BadZipFile, AttributeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"{path} is not an .npz file of plain arrays (pickled objects are never loaded)"
        ) from None


def _make_stand_in() -> tuple[NDArray[Any], NDArray[Any], str]:
    """Make 1,024 records of 2 leads x 64 samples in 4 classes of unequal size, from the counter."""
    import numpy as np

    from seedless.numerics.counter import draw
    from seedless.numerics.normal import normal_quantile

    samples = normal_quantile(draw(0, "stand-in samples", 1024 * 128)).reshape(1024, 2, 64)
    shares = np.array([0.7, 0.9, 0.98])
    labels = np.searchsorted(shares, draw(0, "stand-in labels", 1024))
    return samples.astype(np.float32), labels, "1,024 stand-in records (--data takes your own)"
