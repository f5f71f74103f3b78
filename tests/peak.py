"""How much memory and processor time a piece of code takes, in a process of its own."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass

_CHILD = """
import json, resource, sys
error = ""
try:
    exec(compile(sys.argv[1], "code", "exec"))
except Exception as problem:
    error = f"{type(problem).__name__}: {problem}"
used = resource.getrusage(resource.RUSAGE_SELF)
# Not ru_maxrss: it counts the process that started this one too.
status = dict(line.split(":") for line in open("/proc/self/status"))
peak = 1024 * int(status["VmHWM"].split()[0])
print(json.dumps([error, peak, used.ru_utime + used.ru_stime]))
"""


@dataclass(frozen=True)
class Answer:
    """What a process answered, the most memory it had at once, and its processor time."""

    error: str
    peak_bytes: int
    cpu_seconds: float


def measure(code: str, given: bytes = b"") -> Answer:
    """Execute code that reads ``given`` from standard input."""
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, code],
        input=given,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        check=True,
    )
    return Answer(*json.loads(done.stdout.splitlines()[-1]))
