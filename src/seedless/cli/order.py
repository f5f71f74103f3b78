"""`seedless order show NAME`: the epochs of a batch order, and their key collisions."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seedless.cli.completion import complete_orders
from seedless.cli.options import (
    AsJson,
    ConfigFile,
    Settings,
    make_group,
    print_json,
    print_line,
    read_config,
)

if TYPE_CHECKING:
    from seedless.ordering import Order

app = make_group("Show the epochs of a batch order.")


@app.command("show")
def show(
    name: Annotated[
        str,
        typer.Argument(
            help="content, golden, ...; a wrong name lists all.", autocompletion=complete_orders
        ),
    ],
    data: Annotated[
        str | None, typer.Option(help="A dataset or an .npz file; default: simulated ECGs.")
    ] = None,
    path: Annotated[str | None, typer.Option(help="The folder or file of the dataset.")] = None,
    epochs: Annotated[int, typer.Option(min=1, help="How many epochs to show.")] = 4,
    batch_size: Annotated[int | None, typer.Option(help="Samples in a batch.")] = None,
    seed: Annotated[int | None, typer.Option(help="The seed, for the order `seeded`.")] = None,
    as_json: AsJson = False,
    config: ConfigFile = None,
    settings: Settings = None,
) -> None:
    """Print the first epochs of a batch order on a dataset.

    For each epoch: digest, first rows, rank correlation with the epoch before.
    Samples are used as stored; a run orders normalized samples.
    """
    from seedless.core.registry import choose
    from seedless.data.loading import load
    from seedless.ordering import ORDERS, count_collisions, make_order

    resolved = read_config(
        config,
        settings,
        order__name=name,
        order__batch_size=batch_size,
        order__seed=seed,
        data__name=data,
        data__path=path,
    )
    chosen = resolved.order
    choose("order", chosen.name, ORDERS)  # a wrong name should not cost reading the data
    samples = load(resolved.data)
    order = make_order(X=samples.X, labels=samples.Y, **chosen.model_dump())
    result: dict[str, Any] = {
        "order": order.name,
        "data": samples.name,
        "records": len(samples),
        "samples": len(order),
        "batch_size": order.batch_size,
        "needs_losses": order.needs_losses,
        "epochs": _describe_epochs(order, epochs),
    }
    if chosen.name == "golden":
        result["collisions"] = asdict(count_collisions(samples.X[sorted(order.epoch(0))]))
    if as_json:
        print_json(result)
    else:
        _print(result)


def _describe_epochs(order: Order, count: int) -> list[dict[str, Any]]:
    """Return the digest, first rows, and rank correlation with the epoch before, of each epoch."""
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


def _print(result: dict[str, Any]) -> None:
    print_line(f"{result['order']} on {result['data']}")
    print_line(
        f"{result['samples']} samples of {result['records']} records, "
        f"batches of {result['batch_size']}"
        + ("; content order until losses are observed" if result["needs_losses"] else "")
    )
    print_line()
    print_line(f"{'epoch':>5} {'batches':>7} {'rank corr.':>10}  {'digest':<27} first rows")
    for epoch in result["epochs"]:
        drift = epoch["rank_correlation"]
        shown = "" if drift is None else f"{drift:.4f}"
        print_line(
            f"{epoch['epoch']:>5} {epoch['batches']:>7} {shown:>10}"
            f"  {epoch['digest'][:23]}...  {' '.join(map(str, epoch['first']))}"
        )
    if "collisions" in result:
        print_line()
        print_line(
            f"{'keys from':<14} {'records sharing':>15} {'groups':>7} {'largest':>7} entropy lost"
        )
        for kind, title in (("exact", "exact sums"), ("float32", "float32 sums")):
            shared = result["collisions"][kind]
            share = shared["records"] / result["samples"]
            print_line(
                f"{title:<14} {shared['records']:>7} ({share:5.1%}) {shared['groups']:>7} "
                f"{shared['largest']:>7} {shared['entropy_lost']:.4%}"
            )
