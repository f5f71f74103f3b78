"""`seedless doctor -- python train.py`: why two runs of any training script differ."""

from __future__ import annotations

import shlex
import shutil
import tempfile
import textwrap
import time
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seedless.cli.argument_checks import check_exists
from seedless.cli.options import (
    AsJson,
    print_json,
    print_line,
    print_text,
    spell_numbers,
)
from seedless.core.display import escape_text
from seedless.core.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seedless.audit.doctor.diagnosis import Diagnosis
    from seedless.audit.doctor.examine import Examination
    from seedless.audit.doctor.pair import Runner

IDENTICAL, DIFFER, COULD_NOT_TELL = 0, 1, 3


def doctor(
    command: Annotated[
        list[str],
        typer.Argument(metavar="-- COMMAND", help="What you type to train, after two hyphens."),
    ],
    runs: Annotated[int, typer.Option("--runs", min=2, help="How many runs to compare.")] = 2,
    steps: Annotated[
        int | None, typer.Option("--steps", min=1, help="End each run after this many steps.")
    ] = None,
    vary: Annotated[
        str | None,
        typer.Option(
            "--vary", help="What the second run has other: threads=1,2, seed-env, NAME=a,b."
        ),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option("--against", help="Compare with the run that an earlier --out kept."),
    ] = None,
    resume_at: Annotated[
        int | None,
        typer.Option("--resume-at", min=1, help="End a run after this step and start it again."),
    ] = None,
    resume_command: Annotated[
        str | None,
        typer.Option("--resume-command", help="What starts it again, if it is another command."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Keep the records in this new folder.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", help="Write a page with both runs side by side to this file."),
    ] = None,
    timeout: Annotated[
        float | None, typer.Option("--timeout", min=0, help="Seconds after which a run is ended.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say why two runs of a training script differ.

    The command is run unchanged, in this folder; {out} in it becomes an empty
    folder for each run. What it prints goes to files.
    Exit code 0: identical. 1: they differ. 2: could not run. 3: could not tell.
    """
    from seedless.audit.doctor.command import find_program
    from seedless.audit.doctor.variation import parse_variation

    _check_choice(vary, against, resume_at, resume_command, runs)
    find_program(command)
    varied = parse_variation(vary) if vary is not None else {}
    again = shlex.split(resume_command) if resume_command is not None else None
    if report is not None and not report.absolute().parent.is_dir():
        raise RunError(
            f"--report {report}: there is no folder {str(report.parent)!r}; make it first"
        )
    with _open_folder(out) as folder:
        from seedless.audit.doctor.pair import Runner

        show = _stay_silent if as_json else _show
        runner = Runner(command, folder, steps, timeout, varied, show)
        show(_announce(_count_first(runs, against, resume_at), bool(varied)))
        began = time.monotonic()
        examination = _examine(runner, runs, against, resume_at, again)
        show(f"{_count(runner.count_runs())} of the command in {time.monotonic() - began:.0f} s")
        if report is not None:
            from seedless.audit.doctor.page import render_examination
            from seedless.report.page import write_page

            write_page(report, render_examination(examination, command, Path.cwd(), varied))
    diagnosis = examination.diagnosis
    if as_json:
        print_json(spell_numbers(asdict(diagnosis)))
    else:
        print_text(describe(diagnosis))
    codes = {True: IDENTICAL, False: DIFFER, None: COULD_NOT_TELL}
    raise typer.Exit(codes[diagnosis.identical])


def _count_first(runs: int, against: Path | None, resume_at: int | None) -> tuple[int, int]:
    """Return how many runs are made where they agree, and before a cause is looked for."""
    if against is not None:
        return 1, 2
    return (3, 2) if resume_at is not None else (runs, runs)


def _announce(first: tuple[int, int], is_varied: bool) -> str:
    """Return how many runs of the command to expect."""
    from seedless.audit.doctor.examine import MOST_RUNS_FOR_A_CAUSE

    agreeing, differing = first
    most = max(agreeing, differing + is_varied + MOST_RUNS_FOR_A_CAUSE)
    return (
        f"{_count(agreeing)} of the command if they agree; if they differ, at most {most}, most of "
        "them ended soon after the first difference"
    )


def _count(runs: int) -> str:
    return f"{runs} run{'' if runs == 1 else 's'}"


def describe(diagnosis: Diagnosis, columns: int | None = None) -> str:
    """Return an answer as text: what differs first, why, what to change; then the evidence."""
    width = max(40, columns or shutil.get_terminal_size().columns)
    if diagnosis.identical is None:
        return _wrap(f"COULD NOT TELL: {diagnosis.reason}", width)
    if diagnosis.identical:
        steps = f"{diagnosis.steps} step{'s' * (diagnosis.steps != 1)}"
        if diagnosis.what:
            kinds = "every loss, gradient and weight"
            note = _wrap(f"- {diagnosis.evidence[-1]}", width, "  ")
            return f"IDENTICAL: {kinds} recorded in {steps} agrees\n\nevidence\n{note}"
        return f"IDENTICAL: every value recorded in {steps} agrees"
    place = "" if diagnosis.line in diagnosis.remedy else f"{diagnosis.line}: "
    lines = [
        _wrap(f"THEY DIFFER {_describe_place(diagnosis)}", width),
        _wrap(f"because {diagnosis.title} [{diagnosis.cause}, {diagnosis.confidence}]", width),
        _wrap(f"change: {place}{diagnosis.remedy}", width),
    ]
    results = [str(result["sentence"]) for result in diagnosis.experiments]
    for title, sentences in (("evidence", diagnosis.evidence), ("experiments", results)):
        shown = [
            sentence for sentence in sentences if title != "evidence" or sentence not in results
        ]
        if shown:
            lines += ["", title, *(_wrap(f"- {one}", width, "  ") for one in shown)]
    return "\n".join(lines)


def _describe_place(diagnosis: Diagnosis) -> str:
    ranks = f" of rank {', '.join(map(str, diagnosis.ranks))}" if any(diagnosis.ranks) else ""
    op = f", in {diagnosis.op}" if diagnosis.op else ""
    module = f" of module {diagnosis.module}" if diagnosis.module else ""
    what = diagnosis.what.replace("_", " ")
    return f"first at step {diagnosis.step}{ranks}: {what}{op}{module}"


def _wrap(text: str, width: int, indent: str = "  ") -> str:
    return textwrap.fill(
        escape_text(text),
        width,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _examine(
    runner: Runner,
    runs: int,
    against: Path | None,
    resume_at: int | None,
    resume_command: list[str] | None,
) -> Examination:
    """Carry out the procedure that the options choose."""
    if against is not None:
        from seedless.audit.doctor.examine_against import examine_against

        return examine_against(runner, against)
    if resume_at is not None:
        from seedless.audit.doctor.examine_resume import examine_resume

        return examine_resume(runner, resume_at, resume_command)
    from seedless.audit.doctor.examine import examine

    return examine(runner, runs)


def _check_choice(
    vary: str | None,
    against: Path | None,
    resume_at: int | None,
    resume_command: str | None,
    runs: int,
) -> None:
    """Refuse options that exclude each other, and an earlier run that is not there."""
    given = {
        "--vary": vary is not None,
        "--against": against is not None,
        "--resume-at": resume_at is not None,
        "--runs": runs != 2,
    }
    chosen = [name for name, is_given in given.items() if is_given]
    if len(chosen) > 1:
        raise RunError(f"expected one of --vary, --against, --resume-at, --runs, got {chosen}")
    if resume_command is not None and resume_at is None:
        raise RunError("--resume-command is for --resume-at N, which is missing")
    check_exists(against)


def _show(line: str) -> None:
    print_line(line, err=True)


def _stay_silent(line: str) -> None:
    """Report nothing, as for --json."""


@contextmanager
def _open_folder(out: Path | None) -> Iterator[Path]:
    """Give the folder for the records: the user's, which must be new, or one that is removed."""
    if out is None:
        with tempfile.TemporaryDirectory(prefix="seedless-doctor-") as name:
            yield Path(name)
        return
    if out.exists() and any(out.iterdir()):
        raise RunError(f"{out} is not empty; give a new folder with --out")
    out.mkdir(parents=True, exist_ok=True)
    yield out.absolute()
