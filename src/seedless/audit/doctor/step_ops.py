"""Compare the operations of one step of two processes, as pass 2 recorded them.

Draws of Python's and numpy's generators stand among the operations, in the order in which they
happened, so that a draw that differs is found before what was computed from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seedless.audit.doctor.recorded_run import MAX_LINE_BYTES, Process, read_record_lines
from seedless.audit.op_alignment import DRAW_PHASE
from seedless.core.bounded_reading import parse_json, read_file, shorten
from seedless.core.errors import RunError

if TYPE_CHECKING:
    from seedless.script_recorder.op_record import OpRecord

THREAD_KIND = "thread"  # of a line that says where the script starts a thread
COMPILED_OP = "compiled"  # a call of compiled code is one operation
MAX_OPS = 500_000
OWN_GENERATOR = "torch-generator"  # of an operation that drew from a generator passed to it


@dataclass(frozen=True)
class StepOp:
    """What one run did at the first difference between two steps.

    Attributes:
        kind: as in `Finding`: "op", "draw", "source", "setting" or "program".
        op: the operation, or the call that drew.
        line: the user's line.
        module: path of the module.
        phase, note: as recorded.
        device: "cpu" or "cuda".
        draws: the generator that it drew from, or "".
        generator_given: it drew from a generator that was passed to it.
        names: tensors from outside the operations that differ, for "source".
        left, right: settings that differ, or what each run did.
        unwritten: among its inputs is uninitialized memory.
        description: the finding in words.
        origins: lines that explain the content of those tensors, for "source".
        agreed: how many operations agreed before it.
        maker: for a draw, the line outside the methods of a model that led to it, or "".
    """

    kind: str
    op: str
    line: str
    module: str
    phase: str
    note: str
    device: str
    draws: str
    generator_given: bool
    names: tuple[str, ...]
    left: tuple[str, ...]
    right: tuple[str, ...]
    unwritten: bool
    description: str
    agreed: int
    origins: tuple[str, ...] = ()
    maker: str = ""


def compare_step_ops(
    folders: tuple[Path, Path], processes: tuple[Process, Process], step: int
) -> StepOp | None:
    """Return the first operation of a step in which two processes differ; None if all agree.

    None too where a process recorded no operations, as for a step that was not reached.
    """
    from seedless.audit.first_difference import find_first_difference

    left, right = (
        read_ops(folder, process, step) for folder, process in zip(folders, processes, strict=True)
    )
    if not left or not right:
        return None
    finding = find_first_difference(left, right, aligned=True)
    if finding is None:
        return None
    return StepOp(
        kind=finding.kind,
        op=finding.op,
        line=finding.line,
        module=finding.module,
        phase=finding.phase,
        note=finding.note,
        device=finding.device or "cpu",
        draws=finding.draws,
        generator_given=finding.draws == OWN_GENERATOR,
        names=finding.names,
        left=finding.left,
        right=finding.right,
        unwritten=finding.unwritten,
        description=finding.describe(),
        agreed=finding.index,
        origins=finding.origins,
    )


def compare_step_tensors(
    folders: tuple[Path, Path], processes: tuple[Process, Process], step: int
) -> Mapping[str, tuple[str, ...]]:
    """Return for each group of a step's tensors ("gradients", ...) the names that differ."""
    one, two = (
        _read_tensors(folder, process, step)
        for folder, process in zip(folders, processes, strict=True)
    )
    found = {}
    for group in one.keys() & two.keys():
        names = {*one[group], *two[group]}
        differing = [name for name in names if one[group].get(name) != two[group].get(name)]
        if differing:
            found[group] = tuple(sorted(differing))
    return found


def has_other_order(
    folders: tuple[Path, Path], processes: tuple[Process, Process], step: int, group: str
) -> bool:
    """Whether a group of a step's tensors holds the same tensors in both runs.

    For a group whose digest differs: then their order does.
    """
    one, two = (
        _read_tensors(folder, process, step).get(group, {})
        for folder, process in zip(folders, processes, strict=True)
    )
    return bool(one) and sorted(one.values()) == sorted(two.values())


def find_compiled_line(
    folders: tuple[Path, Path], processes: tuple[Process, Process], step: int
) -> str:
    """Return the first line of a step that calls compiled code, in either process; "" if none."""
    for folder, process in zip(folders, processes, strict=True):
        for record in read_ops(folder, process, step):
            if record.op.startswith(COMPILED_OP) and record.line:
                return record.line
    return ""


def read_ops(folder: Path, process: Process, step: int) -> "list[OpRecord]":
    """Return the recorded operations of a step; [] where there is no such file."""
    file = _find_file(folder, process, step)
    if not file.exists():
        return []
    found: list[OpRecord] = []
    for where, values in read_record_lines(file):
        if len(found) >= MAX_OPS:
            raise RunError(f"{where}: a step of more than {MAX_OPS:,} operations is not read")
        if values.get("kind", DRAW_PHASE) == DRAW_PHASE:  # operations have no kind
            found.append(_make_record(values))
    return found


def find_thread_lines(
    folders: tuple[Path, Path], processes: tuple[Process, Process], step: int
) -> tuple[str, ...]:
    """Return the lines of a step at which the script starts threads, in either process."""
    pairs = zip(folders, processes, strict=True)
    files = [_find_file(folder, process, step) for folder, process in pairs]
    lines = [
        str(values.get("line") or "")
        for file in files
        if file.exists()
        for _, values in read_record_lines(file)
        if values.get("kind") == THREAD_KIND
    ]
    return tuple(dict.fromkeys(filter(None, lines)))


def _find_file(folder: Path, process: Process, step: int) -> Path:
    return folder / f"ops-{process.start.rank}-{process.start.pid}-{step}.jsonl"


def _make_record(values: dict[str, Any]) -> "OpRecord":
    """Return one line as a record of an operation; a draw is an operation with one output."""
    from seedless.script_recorder.op_record import OpRecord

    if values.get("kind") == DRAW_PHASE:
        return OpRecord(
            phase=DRAW_PHASE,
            module="",
            op=str(values.get("call") or ""),
            outputs=(str(values.get("value")),),
            line=str(values.get("line") or ""),
            draws=str(values.get("generator") or ""),
        )
    inputs, sources = _list_texts(values.get("inputs")), _list_texts(values.get("sources"))
    return OpRecord(
        phase=str(values.get("phase") or ""),
        module=str(values.get("module") or ""),
        op=str(values.get("op") or ""),
        inputs=inputs,
        sources=tuple(sources[i] if i < len(sources) else "" for i in range(len(inputs))),
        settings=_list_texts(values.get("settings")),
        outputs=_list_texts(values.get("outputs")),
        shapes=tuple(map(_list_sizes, _list(values.get("shapes")))),
        note=str(values.get("note") or ""),
        line=str(values.get("line") or ""),
        draws=str(values.get("draws") or ""),
        device=str(values.get("device") or ""),
        origins=_list_texts(values.get("origins")),
        maker=str(values.get("maker") or ""),
    )


def _read_tensors(folder: Path, process: Process, step: int) -> dict[str, dict[str, str]]:
    file = folder / f"tensors-{process.start.rank}-{process.start.pid}-{step}.json"
    if not file.exists():
        return {}
    values = parse_json(read_file(file, MAX_LINE_BYTES), file.name)
    if not isinstance(values, dict):
        raise RunError(f"{file.name}: expected a JSON object, got {shorten(str(values), 40)}")
    return {
        name: {key: str(value) for key, value in group.items()}
        for name, group in values.items()
        if isinstance(group, dict)
    }


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _list_texts(value: Any) -> tuple[str, ...]:
    return tuple(map(str, _list(value)))


def _list_sizes(value: Any) -> tuple[int, ...]:
    return tuple(size for size in _list(value) if isinstance(size, int))
