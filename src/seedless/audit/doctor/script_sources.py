"""The files of Python source that belong to a script, those near the difference first."""

from pathlib import Path

from seedless.audit.doctor.case import Case
from seedless.core.bounded_reading import read_file
from seedless.core.errors import SeedlessError

MAX_SOURCE_BYTES = 4 * 2**20


def list_source_paths(case: Case) -> tuple[list[str], Path]:
    """Return the script's own source files, as lines name them, and its working folder.

    The file of the operation that differs comes first, then that of the step.
    """
    one, two = case.first.processes
    process = one or two
    assert process is not None
    step = case.first.steps[0] or case.first.steps[1]
    near = [
        line.rpartition(":")[0]
        for line in (case.op.line if case.op else "", step.line if step else "")
        if line
    ]
    folder = Path(process.start.cwd)
    sources = {_show_path(path, folder) for path in process.sources}
    return sorted({*sources, *near}, key=lambda path: (path not in near, path)), folder


def read_source(folder: Path, path: str) -> str | None:
    """Return the text of a source file; None if it was removed since, or is no plain file."""
    try:
        content = read_file(folder / path, MAX_SOURCE_BYTES, follow_links=True)
    except (OSError, SeedlessError):
        return None
    return content.decode("utf-8", "replace")


def _show_path(path: str, folder: Path) -> str:
    """Return a path as lines name it: relative to the working folder where it is inside."""
    inside = Path(path).is_relative_to(folder)
    return str(Path(path).relative_to(folder)) if inside else path
