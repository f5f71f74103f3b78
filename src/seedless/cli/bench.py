"""`seedless bench`: our training step against ordinary PyTorch, or several runs at once."""

from __future__ import annotations

import json
import os
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from seedless.cli.argument_checks import one_of_setting
from seedless.cli.options import AsJson, Settings, print_json

if TYPE_CHECKING:
    from seedless.bench.comparison import Comparison, Row
    from seedless.bench.concurrent_runs import ConcurrentRuns
    from seedless.bench.measure import Say

# What a comparison takes by default: (batch, steps, rounds).
ON_GPU, ON_CPU = (128, 20, 5), (16, 3, 3)
BUSY_CORES = 0.3  # of other programs, from which steps on a CPU are disturbed


def _explain(what: str, place: int) -> str:
    return f"{what}; default: {ON_GPU[place]} on a GPU, {ON_CPU[place]} on a CPU."


def bench(
    model: Annotated[
        str, typer.Option(help="The name of a model.", callback=one_of_setting("model.name"))
    ] = "conformer",
    batch: Annotated[int | None, typer.Option(min=1, help=_explain("Samples per step", 0))] = None,
    steps: Annotated[int | None, typer.Option(min=1, help=_explain("Steps per round", 1))] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help=_explain("Rounds", 2))] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "auto",
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only steps whose name contains this.")
    ] = None,
    limit: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", min=1, help="What one step may take in all, compiling included."
        ),
    ] = None,
    processor_time: Annotated[
        bool,
        typer.Option(
            "--processor-time", help="On a busy CPU: count processor time, of one thread."
        ),
    ] = False,
    concurrent: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Instead, train N small jobs at once.")
    ] = None,
    as_json: AsJson = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE.json", help="Write the results here, after every turn."),
    ] = None,
    settings: Settings = None,
) -> None:
    """Time our training step against ordinary PyTorch, compiled too.

    Steps are measured in turns, and run twice to see whether bits repeat.
    Exit code 0: everything ran. With --concurrent: all bits are the same.
    1: something failed, or bits differ.
    """
    say = (lambda _: None) if as_json else partial(typer.echo, err=True)
    _check_place(out)
    if concurrent is not None:
        refused = {"--batch": batch, "--steps": steps, "--rounds": rounds}
        _refuse({**refused, "--only": only, "--limit": limit, "--processor-time": processor_time})
        changes = [f"execution.device={device}", *(settings or [])]
        _bench_concurrent(model, changes, concurrent, say, as_json, out)

    import torch

    from seedless.bench.comparison import PROCESSOR, WALL, compare, make_config
    from seedless.bench.measure import DEFAULT_LIMIT

    usual = ON_GPU if device != "cpu" and torch.cuda.is_available() else ON_CPU
    chosen = ["execution.threads=1"] * processor_time + (settings or [])
    result = compare(
        make_config(model, batch or usual[0], device, chosen),
        steps=steps or usual[1],
        rounds=rounds or usual[2],
        only=only or [],
        limit=limit or DEFAULT_LIMIT,
        clock=PROCESSOR if processor_time else WALL,
        say=say,
        record=lambda found: _write(found.as_values(), found.environment, False, out),
    )
    _write(result.as_values(), result.environment, as_json, out)
    if not as_json:
        _print(result)
    raise typer.Exit(1 if any(row.error for row in result.rows) else 0)


def _bench_concurrent(
    model: str, settings: list[str], runs: int, say: Say, as_json: bool, out: Path | None
) -> NoReturn:
    from seedless.bench.concurrent_runs import make_job_config, run_concurrently

    together = run_concurrently(make_job_config(model, settings), runs, say=say)
    _write(together.as_values(), None, as_json, out)
    if not as_json:
        _print_concurrent(together)
    raise typer.Exit(0 if together.same else 1)


def _refuse(options: dict[str, Any]) -> None:
    from seedless.core.errors import ConfigError

    for name, value in options.items():
        if value:
            raise ConfigError(f"{name} belongs to the comparison of steps, not to --concurrent")


def _check_place(out: Path | None) -> None:
    """Raise an error if the file cannot be written, before the measurement instead of after."""
    from seedless.core.errors import RunError

    if out is None:
        return
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"cannot write {out}: {error.strerror}") from None
    if out.is_dir() or not os.access(out.parent, os.W_OK):
        raise RunError(
            f"cannot write {out}: name a file with --out in a folder that this user may write to"
        )


def _write(
    results: dict[str, Any], environment: dict[str, Any] | None, as_json: bool, out: Path | None
) -> None:
    """Print or write results with the command that made them and their environment."""
    from seedless.core.files import write_atomic
    from seedless.numerics.environment import capture_environment

    content = {
        # Without the folder of --out, which may name a user.
        "command": shlex.join(
            ["seedless", *(Path(a).name if a == str(out) else a for a in sys.argv[1:])]
        ),
        "environment": environment or capture_environment(),
        "results": results,
    }
    if as_json:
        print_json(content)
    if out is not None:
        text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        write_atomic(out, text.encode())


def _print(result: Comparison) -> None:
    environment = result.environment
    devices = environment["devices"] if result.device == "cuda" else []
    place = devices[0]["name"] if devices else environment["cpu"]["model"]
    size = f"{result.parameters:,} parameters"
    typer.echo(f"{result.model}{' small' * result.small}, {size}, batches of {result.batch}")
    typer.echo(
        f"{place}, {environment['threads']['intraop']} threads, "
        f"torch {environment['packages']['torch']}; medians of {result.rounds} rounds of "
        f"{result.steps} steps, in turns\n"
    )
    width = max(len(row.name) for row in result.rows)
    typer.echo(
        f"{'':<{width}}  ms/step  samples/s  x rival  x det.  first s  peak MiB  repeats  digest"
    )
    for row in result.rows:
        typer.echo(f"{row.name:<{width}}  {_format(row)}")
    typer.echo(
        "\nx rival, x det.: speed relative to the fastest plain step of the same precision, and to "
        "plain deterministic.\nfirst: the first step, with compiling, capturing and tuning. "
        "digest: of the weights after 3 steps; repeats: the same\ndigest twice."
    )
    if result.other_cores is not None and result.device == "cpu":
        typer.echo(
            f"clock: {result.clock}; other programs kept {result.other_cores:.1f} cores busy."
        )
        if result.clock == "wall" and result.other_cores > BUSY_CORES:
            typer.echo("They disturb a clock on the wall: --processor-time compares without them.")
    typer.echo(f"\n{result.verdict}")


def _format(row: Row) -> str:
    from seedless.core.digests import get_hex

    if row.error is not None:  # the other figures may be incomplete
        return f"does not run: {row.error}"
    peak = None if row.peak_bytes is None else row.peak_bytes / 2**20
    cells = (
        _number(row.ms_per_step, 7, 2),
        _number(row.samples_per_second, 9, 0),
        _number(row.to_strongest, 7, 2),
        _number(row.to_deterministic, 6, 2),
        _number(row.first_seconds, 7, 2),
        _number(peak, 8, 0),
        f"{'yes' if row.repeats else 'NO':<7}",
        get_hex(row.digest or "")[:12],
    )
    return "  ".join(cells)


def _number(value: float | None, width: int, places: int) -> str:
    return f"{'-':>{width}}" if value is None else f"{value:>{width}.{places}f}"


def _print_concurrent(result: ConcurrentRuns) -> None:
    from seedless.core.digests import get_hex

    typer.echo(f"{'job':<18} {'alone':<16}   {'at once':<16} seconds alone, at once")
    for pair in result.pairs:
        if pair.error is not None:
            typer.echo(f"{pair.job:<18} failed: {pair.error}")
            continue
        alone, together = (get_hex(digest or "")[:16] for digest in (pair.alone, pair.together))
        typer.echo(
            f"{pair.job:<18} {alone} {'=' if pair.same else '≠'} {together} "
            f"{pair.alone_seconds:.1f}, {pair.together_seconds:.1f}"
        )
    values = result.as_values()
    typer.echo(
        f"\none after the other  {result.alone_seconds:.1f} s, "
        f"{values['alone_samples_per_second']:.0f} samples/s, with the start of the processes"
    )
    typer.echo(
        f"all {result.runs} at once        {result.together_seconds:.1f} s, "
        f"{values['together_samples_per_second']:.0f} samples/s: {result.gain:.2f} x"
    )
    same = "each run at once has the bits it has alone" if result.same else "THE BITS DIFFER"
    typer.echo(f"\n{same}")
