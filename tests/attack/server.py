"""The command line, imported once: a process that forks a child for each command it is asked for.

python -P server.py      reads a JSON request a line, answers with a JSON line

A child has its own current folder, home and temporary folder. It leads a process group of its own,
which is killed when the time is over, and in any case once it has ended. `seconds` and `megabytes`
are those of the child and of the processes it waited for; what importing took counts as memory too.
"""

import contextlib
import json
import os
import resource
import runpy
import select
import signal
import sys
import tempfile
import time
import tty
from importlib import import_module

# What the commands import when they are called, where it takes long.
HEAVY = (
    "cryptography.hazmat.primitives.serialization",
    "matplotlib.figure",
    "pandas",
    "scipy.signal",
    "seedless.analysis.evaluation",
    "seedless.audit.verification",
    "seedless.runs.progress",
    "seedless.runs.resume",
    "seedless.runs.train",
    "seedless.studies.catalog",
)
# A machine survives an attack that works: no file over 4 GiB, no more than 4 GiB of data.
MOST_BYTES = 4 << 30


def serve():
    """Answer requests on standard input until it ends."""
    from seedless.numerics.determinism import set_environment_variables

    set_environment_variables()
    for module in HEAVY:
        import_module(module)
    from seedless.cli.main import main

    answers = os.fdopen(os.dup(1), "w")
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line), main)), file=answers, flush=True)


def run(request, main):
    """Return how a command ended that ran in a child of this process."""
    screen = Screen(request["stdout"]) if request["terminal"] else None
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        run_child(request, main, screen)
    timed_out = not wait(child, began + request["seconds"], screen)
    kill_group(child)
    _, status, usage = os.wait4(child, 0)
    return {
        "code": os.waitstatus_to_exitcode(status),
        "timed_out": timed_out,
        "seconds": time.monotonic() - began,
        "megabytes": usage.ru_maxrss / 1024,
    }


class Screen:
    """A terminal that a child prints to, and the file that its output is kept in."""

    def __init__(self, file):
        self.ours, self.theirs = os.openpty()
        tty.setraw(self.theirs)  # bytes arrive as they were written
        self.file = open(file, "wb", buffering=0)  # noqa: SIM115  # closed once the child has ended

    def read(self):
        """Keep what was printed; return whether there may be more."""
        ready, _, _ = select.select([self.ours], [], [], 0)
        return bool(ready) and bool(self.file.write(os.read(self.ours, 1 << 16)))

    def close(self):
        while self.read():
            pass
        self.file.close()
        os.close(self.ours)
        os.close(self.theirs)


def wait(child, deadline, screen):
    """Wait for a child, reading its terminal; return whether it ended before the deadline."""
    ended = False
    with os.fdopen(os.pidfd_open(child)) as handle:
        while not ended and (left := deadline - time.monotonic()) > 0:
            watched = [handle] if screen is None else [handle, screen.ours]
            ready, _, _ = select.select(watched, [], [], left)
            ended = handle in ready
            if screen is not None:
                screen.read()
    if screen is not None:
        screen.close()
    return ended


def kill_group(leader):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def run_child(request, main, screen):
    """Run the command and end as a process of its own would."""
    os.setsid()
    for kind in (resource.RLIMIT_FSIZE, resource.RLIMIT_DATA):
        resource.setrlimit(kind, (MOST_BYTES, MOST_BYTES))
    limit = request["processor_seconds"]
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))  # SIGXCPU first, then SIGKILL
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for descriptor, name in ((1, request["stdout"]), (2, request["stderr"])):
        made = os.open(name, os.O_WRONLY | os.O_CREAT, 0o644) if screen is None else screen.theirs
        os.dup2(made, descriptor)
    os.chdir(request["cwd"])
    os.environ.update(request["variables"])
    tempfile.tempdir = None  # found again, from the new TMPDIR
    sys.argv = ["seedless", *request["arguments"]]
    code = 0
    try:
        if request.get("script"):
            runpy.run_path(request["script"], run_name="__main__")
        else:
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
