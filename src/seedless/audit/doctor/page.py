"""The page of an examination: its two runs, given to report/doctor_page.py as plain values."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from seedless.audit.doctor.examine import Examination
from seedless.audit.doctor.pair import Pair, Run
from seedless.audit.doctor.recorded_run import read_record_lines
from seedless.audit.doctor.step_ops import read_ops
from seedless.audit.op_alignment import align_operations
from seedless.core.errors import RunError
from seedless.report.doctor_page import render_doctor_page
from seedless.report.recorded_steps import DoctorRun

OpPair = tuple[dict[str, Any] | None, dict[str, Any] | None]


def render_examination(
    examination: Examination,
    command: Sequence[str],
    folder: Path,
    varied: Mapping[str, tuple[str, str]] | None = None,
) -> str:
    """Return the page of an examination as text.

    Args:
        examination: what `examine` returned; the records of its runs must still be there.
        command: the user's command.
        folder: the folder in which it ran, where source lines are looked up.
        varied: variables of which the second run had another value, and both values.
    """
    diagnosis, pair = examination.diagnosis, examination.pair
    if pair is None:
        raise RunError("a page shows two runs, and this answer rests on one")
    labels = [_name_run(index, varied or {}) for index in range(2)]
    if examination.resumed_after is not None:
        labels = ["unbroken", "resumed"]
    left = DoctorRun(labels[0], _read_records(pair.a))
    right = DoctorRun(labels[1], _read_records(pair.b), examination.resumed_after or 0)
    step = diagnosis.step
    tried = [(str(result["title"]), str(result["sentence"])) for result in diagnosis.experiments]
    sentences = {sentence for _, sentence in tried}
    shown = [sentence for sentence in diagnosis.evidence if sentence not in sentences]
    return render_doctor_page(
        {**asdict(diagnosis), "evidence": shown},
        (left, right),
        command=command,
        folder=folder,
        experiments=[(title, text.removeprefix(f"with {title}, ")) for title, text in tried],
        ops=_pair_ops(examination.recorded_pair, step),
        ops_step=step,
    )


def _name_run(index: int, varied: Mapping[str, tuple[str, str]]) -> str:
    values = ", ".join(f"{name}={values[index]}" for name, values in varied.items())
    return f"run {index + 1}, {values}" if values else f"run {index + 1}"


def _read_records(run: Run) -> list[dict[str, Any]]:
    """Return the lines of all processes of a run, those of its main processes first."""
    recorded = run.recorded
    return [
        values
        for process in (*recorded.processes, *recorded.workers)
        for _, values in read_record_lines(recorded.folder / process.file)
    ]


def _pair_ops(pair: Pair | None, step: int | None) -> list[OpPair]:
    """Return the operations that two runs recorded in the process that differs first, in pairs."""
    if pair is None or pair.first is None or step is None:
        return []
    left, right = pair.first.processes
    if left is None or right is None:
        return []
    folders = pair.folders
    ops = align_operations(read_ops(folders[0], left, step), read_ops(folders[1], right, step))
    return [
        (asdict(one) if one is not None else None, asdict(two) if two is not None else None)
        for one, two in ops
    ]
