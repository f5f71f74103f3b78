"""A finished run as one file: validated, with its source code and, if asked for, its data."""

from pathlib import Path
from tempfile import TemporaryDirectory

from seedless.core.errors import RunError
from seedless.core.files import AnyPath
from seedless.proof.bundle import write_bundle
from seedless.runs.run_data import pack_data
from seedless.runs.script_run import ScriptRun, open_finished
from seedless.runs.validation import ValidatedRun


def bundle_run(run: AnyPath, out: AnyPath, *, with_data: bool = False, force: bool = False) -> str:
    """Write a run as one file that anyone can verify offline; return its ``"sha256:..."``.

    Args:
        run: the run folder; one that is not what its receipt says is refused.
        out: the file to write.
        with_data: add the data, too; they must be those that the run was trained on.
        force: replace a file that exists.

    Example:
        >>> bundle_run("runs/demo", "demo.bundle.zip")
    """
    opened = open_finished(run)
    if with_data and isinstance(opened, ScriptRun):
        raise RunError(
            f"{opened.path} is the run of a script, whose data are files of any kind: leave "
            "--with-data out, and give the files that data.jsonl lists yourself"
        )
    with TemporaryDirectory() as folder:
        data = Path(folder) / "data" if with_data else None
        if data is not None and isinstance(opened, ValidatedRun):
            pack_data(opened, data)
        return write_bundle(opened.path, Path(out), data=data, force=force)
