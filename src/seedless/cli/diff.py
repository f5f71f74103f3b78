"""`seedless diff RUN_A RUN_B`: where two runs begin to differ, and in which settings."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seedless.cli.options import AsJson, DataPlace, Entry, print_json, print_line, spell_numbers
from seedless.core.display import escape_text
from seedless.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seedless.audit.difference import Difference
    from seedless.audit.doctor.diagnosis import Diagnosis
    from seedless.core.mismatch import Mismatch


def diff(
    run_a: Annotated[Path, typer.Argument(help="The folder of a run or of a trail.")],
    run_b: Annotated[Path, typer.Argument(help="The other run.")],
    locate: Annotated[
        bool, typer.Option("--locate", help="Execute both to find the first op that differs.")
    ] = False,
    execute: Annotated[
        bool,
        typer.Option(
            "--execute",
            help="With --locate: run the commands of two recorded loops, with your rights.",
        ),
    ] = False,
    no_replay: Annotated[
        bool, typer.Option("--no-replay", help="Compare the trails only; find no step.")
    ] = False,
    entry: Entry = None,
    entry_b: Annotated[
        str | None, typer.Option("--entry-b", help="--entry for the second run, if different.")
    ] = None,
    data: DataPlace = None,
    as_json: AsJson = False,
) -> None:
    """Find the first epoch, step and tensor in which two runs differ.

    With --locate also the first operation; recorded loops need --execute for it.
    Exit code 0: identical. 1: they differ. 2: they cannot be compared.
    """
    from seedless.audit.run_diff import diff as compare

    if execute and not locate:
        raise ConfigError("--execute needs --locate: nothing else is executed by it")
    result = compare(
        run_a,
        run_b,
        replay=not no_replay,
        locate=locate,
        execute=execute,
        report=lambda line: typer.echo(escape_text(line), err=True),
        entry=entry,
        entry_b=entry_b,
        data=data,
    )
    if as_json:
        print_json(spell_numbers(asdict(result)))
    else:
        _print(result, run_a, run_b)
    raise typer.Exit(0 if result.identical else 1)


def _print(result: Difference, a: Path, b: Path) -> None:
    _print_fields("configuration", result.settings, a, b)
    _print_fields("environment", result.environment, a, b)
    _print_fields("data, source, start", result.facts, a, b)
    if result.identical:
        what = "step of both" if result.recorded_loop else "entry of the two"
        print_line(f"IDENTICAL: every {what} trails agrees")
        for note in result.notes:
            print_line(f"  {note}")
        return
    print_line(f"THEY DIFFER {_describe_place(result)}: {_list(result.names)}")
    if result.step is not None and not result.recorded_loop:
        print_line(f"  first at step {result.step}: {_list(result.step_names)}")
    if result.diagnosis is not None:
        _print_diagnosis(result.diagnosis)
    if result.finding is not None:
        print_line(f"  {result.finding.describe()}")
    for row in result.tensors[:5]:
        bits = f", {row.bits} bit{'s' * (row.bits != 1)}" if row.bits is not None else ""
        print_line(
            f"  before that step {row.name} differs in {row.differing} of {row.elements} elements"
            f"{bits}: at {list(row.first)} {row.left!r} against {row.right!r}"
        )
    if len(result.tensors) > 5:
        print_line(f"  and {len(result.tensors) - 5} more tensors")
    for note in result.notes:
        print_line(f"  {note}")


def _print_diagnosis(found: Diagnosis) -> None:
    """Print what executing two recorded loops again showed."""
    print_line(f"  executed again, {found.what} differs first, at optimizer step {found.step}")
    if found.op:
        place = f" in {found.module}" if found.module else ""
        print_line(f"  first operation that differs: {found.op}{place}")
    if found.line:
        print_line(f"  line: {found.line}")
    print_line(f"  {found.confidence} cause ({found.cause}): {found.title}")
    print_line(f"  to do: {found.remedy}")
    for sentence in found.evidence:
        print_line(f"  {sentence}")


def _describe_place(result: Difference) -> str:
    """Return where two runs differ: an epoch, or the step, epoch and processes of a loop."""
    if not result.recorded_loop:
        return "before the first step" if result.epoch == 0 else f"in epoch {result.epoch}"
    place = "before the first step" if result.step is None else f"at step {result.step}"
    epoch = "" if result.epoch is None else f" of epoch {result.epoch}"
    ranks = ", ".join(map(str, result.ranks))
    return place + epoch + (f" in process {ranks}" if result.ranks not in ((), (0,)) else "")


def _print_fields(title: str, fields: Sequence[Mismatch], a: Path, b: Path) -> None:
    for field in fields:
        print_line(f"{title}: {field.field} is {field.recorded!r} in {a}, {field.here!r} in {b}")


def _list(names: Sequence[str]) -> str:
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(names[:4]) + more
