"""Many runs of the command line without paying for `import torch` each time.

A `Nursery` is a process that has imported everything and computed nothing. It forks a child for
every command; a child has its own memory, threads and files, and can be killed at any moment.
"""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What the commands import when they are called, where it takes long.
HEAVY = (
    "matplotlib.figure",
    "pandas",
    "scipy.signal",
    "seedless.data.quality_checks",
    "seedless.analysis.evaluation",
    "seedless.runs.progress",
    "seedless.runs.resume",
    "seedless.runs.train",
    "seedless.audit.verification",
    "wfdb",
)
PATIENCE = 200  # seconds after which a child that hangs is ended


@dataclass(frozen=True)
class Ended:
    """How a child ended; ``code`` is negative for a signal, as in `subprocess`."""

    returncode: int
    stdout: str
    stderr: str

    @property
    def code(self):
        return self.returncode


class Nursery:
    """Forks children that run ``seedless ARGUMENTS``, in an environment of its own."""

    def __init__(self, folder, **variables):
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.forks"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, **{key: str(value) for key, value in variables.items()}},
        )
        assert self._process.stdout.readline() == "ready\n"

    def run(self, *arguments, before="", kill_after=None, code=0):
        """Run a command to its end, or kill it after so many seconds.

        ``before`` is Python text the child executes first. ``code``: what it must end with, or None
        for anything.
        """
        files = [str(self.folder / name) for name in ("stdout", "stderr")]
        request = {
            "arguments": [str(argument) for argument in arguments],
            "before": before,
            "kill_after": kill_after,
            "files": files,
        }
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        status = int(self._process.stdout.readline())
        ended = Ended(status, *(Path(file).read_text() for file in files))
        assert code is None or ended.code == code, ended
        return ended

    def close(self):
        with self._process as process:  # closes both pipes and waits
            process.stdin.close()


def serve():
    """Answer requests on standard input, one a line."""
    from seedless.numerics.determinism import set_environment_variables

    set_environment_variables()
    for module in HEAVY:
        import_module(module)
    from seedless.cli.main import main
    from seedless.proof.source_digest import describe_source

    describe_source()
    answers = os.fdopen(os.dup(1), "w")
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            _live(request, main)
        if request["kill_after"] is not None:
            time.sleep(request["kill_after"])
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), file=answers, flush=True)


def _live(request, main):
    """Be the child: run the command and end as a process of its own would."""
    signal.alarm(PATIENCE)
    for descriptor, name in zip((1, 2), request["files"], strict=True):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), descriptor)
    sys.argv = ["seedless", *request["arguments"]]
    code = 0
    try:
        exec(request["before"], {"__name__": "before"})
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    serve()
