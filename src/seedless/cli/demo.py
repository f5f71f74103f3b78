"""`seedless demo`: the same bits in two processes, a verification, a negative control, a page."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seedless.cli.options import AsJson, Settings, print_json
from seedless.core.progress import Progress

if TYPE_CHECKING:
    from seedless.analysis.demo import Demo


def demo(
    out: Annotated[Path, typer.Option("--out", help="The folder to write.")] = Path("runs/demo"),
    arithmetic: Annotated[
        str, typer.Option(help="native, or portable (the same bits on every processor).")
    ] = "native",
    as_json: AsJson = False,
    settings: Settings = None,
) -> None:
    """Train a small model twice and show that every bit agrees.

    A third run, in which one bit is flipped, must differ. Two more, with
    seeds 1 and 2, show for how many records the answer depends on the seed.
    Exit code 0: all of this holds. 1: it does not.
    """
    from seedless.core.config import override
    from seedless.core.config_files import open_config
    from seedless.core.setting_choices import check_choices

    began = time.monotonic()
    stages = _Stages(shown=not as_json)
    chosen = [*(settings or []), f"execution.arithmetic={arithmetic}"]
    check_choices(override(open_config("demo"), chosen))
    from seedless.analysis.demo import run_demo

    result = run_demo(out, chosen, show=stages.show)
    stages.close()
    if as_json:
        print_json(_summarize(result))
    else:
        _print(result, time.monotonic() - began)
    raise typer.Exit(0 if result.ok else 1)


class _Stages:
    """One progress display for each stage of the demo."""

    def __init__(self, *, shown: bool) -> None:
        self._shown, self._title = shown, ""
        self._progress = Progress("", shown=False)

    def show(self, title: str, done: int, total: int) -> None:
        """Show how many of the epochs of a stage are done."""
        if not total:  # nothing has started yet
            return
        if title != self._title:
            self.close()
            self._title = title
            self._progress = Progress(title, total, "epochs", shown=self._shown)
        self._progress.total = total  # a run that begins later adds its epochs
        self._progress.update(done)

    def close(self) -> None:
        """Leave the last state of the stage behind."""
        self._progress.close()


def _summarize(result: Demo) -> dict[str, Any]:
    return {
        "ok": result.ok,
        "identical": result.identical,
        "control_differs_at_epoch": result.control_differs,
        "verify": dict(result.verdict),
        "digests": [list(row) for row in result.digests],
        "weights": {name: receipt["weights"] for name, receipt in result.receipts.items()},
        "test": result.receipts["first"]["metrics"]["test"],
        "seeds": _read_scores(result),
        "flips": {
            name: {
                "count": changed.share.count,
                "n": changed.share.n,
                "right": {
                    "first_only": changed.first_only,
                    "second_only": changed.second_only,
                    "both": changed.both,
                    "neither": changed.neither,
                },
            }
            for name, changed in result.flips.items()
        },
        "page": str(result.folder / "report.html"),
        "seconds": round(result.seconds, 1),
    }


def _print(result: Demo, seconds: float) -> None:
    from seedless.analysis.demo import LABELS
    from seedless.core.digests import get_hex

    typer.echo("\nState after each epoch (weights, buffers, optimizer), SHA-256:\n")
    typer.echo(f"{'epoch':>5}  {'process 1':<18} {'process 2':<18}   one bit flipped")
    for epoch, row in enumerate(result.digests):
        first, second, control = (get_hex(digest)[:16] for digest in row)
        same = "=" if first == second else "≠"
        other = "=" if first == control else "≠"
        typer.echo(f"{epoch:>5}  {first:<16} {same} {second:<16} {other}   {control}")
    typer.echo("\nTrained weights:\n")
    for name, label in LABELS.items():
        receipt = result.receipts[name]
        typer.echo(f"{label:<16} md5 {receipt['weights']['md5']}")
        typer.echo(f"{'':<16} {receipt['weights']['digest']}")
    _print_classes(result)
    verdict = result.verdict
    same = "identical" if result.identical else "NOT IDENTICAL"
    typer.echo(f"\ntwo processes      {same} in all {len(result.digests)} states")
    typer.echo(f"seedless verify    {verdict['outcome']}: {verdict['sentence']}")
    from_epoch = result.control_differs
    differs = "DOES NOT DIFFER: the proof proves nothing" if from_epoch is None else "differs"
    when = "" if from_epoch is None else f" from epoch {from_epoch} on, as it must"
    typer.echo(f"one bit flipped    {differs}{when}")
    _print_flips(result)
    typer.echo(f"time               {seconds:.0f} s")
    typer.echo(f"\n{result.folder / 'report.html'}")


def _print_flips(result: Demo) -> None:
    """Print how many records get a different answer from another seed, and from a repeat."""
    seeds, repeats = result.flips["seeds"], result.flips["repeats"]
    first, second = _read_scores(result).values()
    answer = "test records get a different answer (the most probable class)"
    typer.echo(f"two seeds          macro AUC {_format(first)} and {_format(second)}")
    typer.echo(f"                   {seeds.share.count} of {seeds.share.n} {answer};")
    typer.echo(
        f"                   seed 1 alone is right for {seeds.first_only} of them, "
        f"seed 2 alone for {seeds.second_only}"
    )
    typer.echo(f"without a seed     {repeats.share.count} of {repeats.share.n} {answer}")


def _read_scores(result: Demo) -> dict[str, float | None]:
    """Return the macro AUC of the two seeds on the test set."""
    return {
        name: result.receipts[name]["metrics"]["test"]["macro_auc"] for name in ("seed-1", "seed-2")
    }


def _format(score: float | None) -> str:
    return "not defined" if score is None else f"{score:.3f}"


def _print_classes(result: Demo) -> None:
    test = result.receipts["first"]["metrics"]["test"]
    typer.echo(f"\nTest AUC by class (n = {test['n']}, positives in brackets):\n")
    cells = [
        f"{name:<6} {'  -  ' if one['auc'] is None else format(one['auc'], '.3f')} "
        f"({one['positives']})"
        for name, one in test["classes"].items()
    ]
    for start in range(0, len(cells), 4):
        typer.echo("  " + "".join(f"{cell:<20}" for cell in cells[start : start + 4]).rstrip())
    typer.echo(f"  macro  {test['macro_auc']:.3f}")
