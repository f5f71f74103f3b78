"""Where two recorded runs of a script got their random numbers, settings and files from.

Like recorded_steps.py it takes plain dicts and returns rows for a template.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from seedless.core.bounded_reading import shorten
from seedless.report.recorded_steps import (
    MISSING,
    DoctorRun,
    Record,
    find_main,
    list_steps,
    name_process,
    split_processes,
    take_kind,
)
from seedless.report.run_view import as_mapping

MAX_ROWS = 60
ENTROPY = "from entropy"

Call = tuple[str, str, str, str]  # the process, the generator, the call and the line


def list_generators(runs: Sequence[DoctorRun], rank: int | None) -> list[tuple[str, int | None]]:
    """Return each generator with the first step after which its state differs, if there is one."""
    left, right = (list_steps(find_main(run, rank), run.steps_before) for run in runs)
    found: dict[str, int | None] = {}
    for number in sorted(left.keys() & right.keys()):
        a, b = (as_mapping(one[number].get("generators")) for one in (left, right))
        for name in [*a, *(name for name in b if name not in a)]:
            found.setdefault(name, None)
            if found[name] is None and a.get(name) != b.get(name):
                found[name] = number
    return [(shorten(name, 40), step) for name, step in found.items()][:MAX_ROWS]


def compare_seeds(runs: Sequence[DoctorRun]) -> list[dict[str, Any]]:
    """Return a row for each call that seeded a generator: who, where, and the values of both runs.

    Two seeds from entropy are never the same.
    """
    sides = []
    for run in runs:
        found: dict[Call, list[str]] = {}
        for process in split_processes(run):
            for record in take_kind(process, "seed"):
                found.setdefault(_name_call(process, record), []).append(_show_seed(record))
        sides.append(found)
    left, right = sides
    rows = _compare_rows(*({key: _join(side[key]) for key in side} for side in sides))
    for row, key in zip(rows, _list_keys(left, right), strict=False):
        row["same"] = left.get(key) == right.get(key) and ENTROPY not in left.get(key, ())
    return rows


def _join(values: Sequence[str]) -> str:
    """Return the seeds that one line gave, in few words."""
    if len(values) == 1:
        return values[0]
    if len(set(values)) == 1:
        return f"{values[0]}, {len(values):,} times"
    return f"{values[0]} and {len(values) - 1:,} more"


def _name_call(process: Sequence[Record], record: Record) -> Call:
    """Return the process, the generator, the call and the line of a seed or a draw."""
    generator, call, line = (str(record.get(key) or "") for key in ("generator", "call", "line"))
    return name_process(process), shorten(generator, 40), shorten(call, 80), shorten(line, 160)


def _show_seed(record: Record) -> str:
    value = record.get("value")
    return ENTROPY if value is None else shorten(str(value), 40)


def compare_draws(runs: Sequence[DoctorRun], first: int | None) -> list[dict[str, Any]]:
    """Return a row for each line that drew numbers, with how many up to the first difference."""
    counts = []
    for run in runs:
        drawn: Counter[Call] = Counter()
        for process in split_processes(run):
            for record in take_kind(_cut_after(process, first, run.steps_before), "draws"):
                count = record.get("count")
                drawn[_name_call(process, record)] += count if isinstance(count, int) else 1
        counts.append({key: f"{count:,}" for key, count in drawn.items()})
    return _compare_rows(*counts)


def _cut_after(process: Sequence[Record], first: int | None, before: int) -> Sequence[Record]:
    """Return the records up to the first step that differs; all of a process without steps."""
    for place, record in enumerate(process):
        if record.get("kind") in ("step", "replay") and record.get("step") == (first or 0) - before:
            return process[: place + 1]
    return process


def _list_keys(left: Mapping[Call, Any], right: Mapping[Call, Any]) -> list[Call]:
    """Return the calls of two runs that are shown."""
    return [*left, *(key for key in right if key not in left)][:MAX_ROWS]


def _compare_rows(left: Mapping[Call, str], right: Mapping[Call, str]) -> list[dict[str, Any]]:
    """Return a row for each call with the values of both runs."""
    return [
        {
            "process": process,
            "generator": generator,
            "call": call,
            "line": line,
            "values": tuple(
                side.get((process, generator, call, line), MISSING) for side in (left, right)
            ),
            "same": left.get((process, generator, call, line))
            == right.get((process, generator, call, line)),
        }
        for process, generator, call, line in _list_keys(left, right)
    ]


def compare_settings(
    runs: Sequence[DoctorRun], rank: int | None, first: int | None
) -> tuple[list[tuple[str, str, str]], list[tuple[str, str]]]:
    """Return the settings that differ, as (name, value, value), and those that do not.

    Settings are versions, environment variables and the flags of torch as they were in the first
    step that differs.
    """
    left, right = (_collect_settings(run, rank, first) for run in runs)
    names = [*left, *(name for name in right if name not in left)]
    differ = [
        (name, left.get(name, MISSING), right.get(name, MISSING))
        for name in names
        if left.get(name) != right.get(name)
    ]
    equal = [(name, left[name]) for name in names if left.get(name) == right.get(name)]
    return differ[:MAX_ROWS], equal[: 4 * MAX_ROWS]


def _collect_settings(run: DoctorRun, rank: int | None, first: int | None) -> dict[str, str]:
    """Return every setting of the process that trains by its name on the page."""
    process = find_main(run, rank)
    begun = process[0] if process else {}
    found: dict[str, Any] = {
        f"process: {name}": begun.get(name)
        for name in ("python", "executable", "argv", "world_size")
        if name in begun
    }
    found |= {f"variable: {k}": v for k, v in as_mapping(begun.get("variables")).items()}
    for record in take_kind(process, "torch"):
        found |= {f"torch: {key}": value for key, value in record.items() if key != "kind"}
    for record in take_kind(_cut_after(process, first, run.steps_before), "flags"):
        found |= {f"flag: {k}": v for k, v in as_mapping(record.get("flags")).items()}
    return {shorten(name, 120): shorten(str(value), 200) for name, value in found.items()}


def compare_files(runs: Sequence[DoctorRun]) -> list[dict[str, str]]:
    """Return the files whose content differs and the folders that were listed in another order."""
    left, right = (_collect_files(run) for run in runs)
    rows = []
    for key in [*left, *(key for key in right if key not in left)]:
        a, b = left.get(key), right.get(key)
        if a and b and a[0] == b[0]:
            continue
        used = "another order" if key[0] == "listing" else "other content"
        alone = f"only {runs[0].label if a else runs[1].label} used it"
        found = a or b or ("", "")
        rows.append(
            {
                "kind": key[0],
                "path": shorten(key[1], 200),
                "what": used if a and b else alone,
                "line": shorten(str(found[1] or ""), 160),
            }
        )
    return rows[:MAX_ROWS]


def _collect_files(run: DoctorRun) -> dict[tuple[str, str], tuple[Any, Any]]:
    """Return digest and line of each file read, source imported and folder listed."""
    found: dict[tuple[str, str], tuple[Any, Any]] = {}
    for record in run.records:
        if record.get("kind") == "listing":
            found["listing", str(record.get("path"))] = (record.get("ordered"), record.get("line"))
        elif record.get("kind") in ("files", "sources"):
            kind = "source" if record["kind"] == "sources" else "read"
            files = record.get("files" if kind == "source" else "read")
            for file in files if isinstance(files, list | tuple) else ():
                one = as_mapping(file)
                found[kind, str(one.get("path"))] = (one.get("sha256"), one.get("line"))
    return found


def list_sources(runs: Sequence[DoctorRun]) -> dict[str, str]:
    """Return the SHA-256 of the source files that all runs imported with the same content."""
    each = [
        {key[1]: str(found[0]) for key, found in _collect_files(run).items() if key[0] == "source"}
        for run in runs
    ]
    return {path: sha for path, sha in each[0].items() if all(e.get(path) == sha for e in each)}
