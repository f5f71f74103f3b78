"""The cause "leftover-file": the second run reads what the first one wrote.

A file counts as written by the first run if one of its processes was seen to open it for writing,
or if it was last changed between the starts of the two runs: a file that is written under another
name and renamed, or by another program, is not seen otherwise.
"""

import os
from pathlib import Path

from seedless.audit.doctor.case import LIKELY, Candidate, Case
from seedless.audit.doctor.command import OUT_WORD
from seedless.audit.doctor.diagnosis import confirm
from seedless.audit.doctor.environment_rules import list_read, list_written
from seedless.audit.doctor.experiments import Result, judge_pair
from seedless.audit.doctor.pair import Pair, Runner
from seedless.audit.doctor.record_lines import ReadFile
from seedless.audit.doctor.working_copy import copy_working_folder
from seedless.core.errors import RunError
from seedless.script_recorder.settings import Settings

NAME = "without-leftovers"


def find_leftovers(pair: Pair) -> list[ReadFile]:
    """Return the files that the second run read and the first wrote.

    Those that the first did not read come first: it ran without them. The others it may have read
    after it had written them.
    """
    written = {file.path for file in list_written(pair.a.recorded)}
    read = {file.path for file in list_read(pair.a.recorded)}
    start, end = pair.a.execution.started_ns, pair.b.execution.started_ns
    found: dict[str, ReadFile] = {}
    for file in list_read(pair.b.recorded):
        if file.path.startswith(OUT_WORD):
            continue  # each run has its own
        is_between = file.mtime_ns is not None and start <= file.mtime_ns < end
        is_older = file.mtime_ns is None or not end or file.mtime_ns < end
        if is_between or (file.path in written and is_older):
            found.setdefault(file.path, file)
    return sorted(found.values(), key=lambda file: file.path in read)


def try_without_leftovers(
    runner: Runner, pair: Pair, case: Case
) -> tuple[Candidate | None, list[Result]]:
    """Run a pair in copies of the working folder without the files that the first run left over.

    Returns the cause, or None if there is no such file, and the experiment's result. Without a
    result it could not be tried: the file is outside the working folder, or that is too large.
    """
    files = find_leftovers(pair)
    if not files:
        return None, []
    first = files[0]
    sentence = f"the second run read {first.path}, which the first run had written"
    candidate = Candidate("leftover-file", first.line, LIKELY, (sentence,), {"name": first.path})
    is_new = first.path not in {file.path for file in list_read(pair.a.recorded)}
    if any(os.path.isabs(file.path) for file in files):
        return (candidate if is_new else None), []
    try:
        copies = (
            copy_working_folder(Path.cwd(), runner.folder / "leftover-a"),
            copy_working_folder(Path.cwd(), runner.folder / "leftover-b"),
        )
    except RunError:
        return (candidate if is_new else None), []
    for copy in copies:
        for file in files:
            remove_inside(copy, file.path)
    settings = Settings("", end_after=case.first.step + 1)
    title = f"{', '.join(file.path for file in files[:3])} removed before each run"
    tried = runner.run_pair(f"experiment with {title}", settings, folders=copies)
    result = judge_pair(NAME, title, tried, case)
    return (confirm(candidate, result.sentence) if result.removed else None), [result]


def remove_inside(folder: Path, path: str) -> None:
    """Remove a file of a folder; do nothing if the path, which a record names, leads outside."""
    file = folder / path
    if file.parent.resolve().is_relative_to(folder.resolve()):
        file.unlink(missing_ok=True)
