"""Makes an attack in a sandbox of its own, and says what came of it.

A sandbox is a folder: `target/` holds the changed copy, `work/` is the current folder and full of
modules that nobody may import, `home/` and `tmp/` are what they are called, `out/` is the one place
to write to, `executed` exists once foreign code has run.
"""

import fnmatch
import importlib.util
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.attack.attack import PASSED

# Of the processor, so that a loaded machine does not count as an attack that worked; and of the
# clock, for a process that waits for something.
MOST_SECONDS = 30
MOST_CLOCK_SECONDS = 300
MOST_MEGABYTES = 1000

# Modules that the program, its libraries or Python itself import by these names.
BAIT = (
    *("torch", "numpy", "safetensors", "sitecustomize", "usercustomize", "conftest", "pydantic"),
    *("typer", "scipy", "json", "tomllib", "hashlib", "encodings", "site", "seedless", "filelock"),
)
# Every control character but a newline (a tab is one, and no command needs it), the characters
# that change the direction of text, and the other separators of lines.
UNSAFE = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|\ufffd"
)


@dataclass(frozen=True)
class Outcome:
    """What came of an attack; ``problems`` is empty where the program held."""

    verdict: str
    code: int
    megabytes: float
    seconds: float
    output: str
    problems: tuple[str, ...]


class Server:
    """The process of `server.py`."""

    def __init__(self, folder):
        self.shared = folder / "shared"
        self.shared.mkdir(parents=True, exist_ok=True)
        package = importlib.util.find_spec("seedless").submodule_search_locations[0]
        self.variables = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(Path(package).parent),
            "HOME": str(self.shared),
            "MPLCONFIGDIR": str(self.shared / "matplotlib"),
            "SEEDLESS_CACHE": str(self.shared / "cache"),
            "OMP_NUM_THREADS": "1",
            "OMP_WAIT_POLICY": "PASSIVE",
            "OPENBLAS_NUM_THREADS": "1",
        }
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(Path(__file__).with_name("server.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=self.shared,
            env=self.variables,
        )
        assert self._process.stdout.readline() == "ready\n"

    def run(
        self,
        arguments,
        *,
        cwd,
        script=None,
        terminal=False,
        seconds=MOST_CLOCK_SECONDS,
        processor_seconds=MOST_SECONDS,
        **variables,
    ):
        """Run a command; return the server's answer with what was printed, as bytes.

        ``seconds``: by the clock. ``processor_seconds``: of a processor, for each process.
        """
        files = {name: str(self.shared / f"{os.getpid()}.{name}") for name in ("stdout", "stderr")}
        for file in files.values():
            Path(file).write_bytes(b"")
        request = {
            "arguments": [str(argument) for argument in arguments],
            "cwd": str(cwd),
            "script": script and str(script),
            "terminal": terminal,
            "seconds": seconds,
            "processor_seconds": processor_seconds,
            "variables": {name: str(value) for name, value in variables.items()},
            **files,
        }
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        return {**answer, **{name: Path(file).read_bytes() for name, file in files.items()}}

    def close(self):
        with self._process as process:  # closes both pipes and waits
            process.stdin.close()


def make_attack(attack, victims, server, folder):
    """Make one attack in the new folder ``folder``, remove that, and return the outcome."""
    try:
        target = build_sandbox(folder, victims / attack.victim)
        attack.change(target)
        before = take_snapshot(folder)
        places = {
            "run": target,
            "out": folder / "out",
            "keys": victims / "keys",
            "honest": victims / attack.victim,
            "other": victims / "other",
            "victims": victims,
        }
        answer = server.run(
            [part.format(**places) for part in attack.command],
            cwd=folder / "work",
            terminal=attack.terminal,
            HOME=folder / "home",
            TMPDIR=folder / "tmp",
        )
        return judge(attack, answer, before, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def build_sandbox(folder, victim):
    """Make the folders of a sandbox and the copy of a victim in it; return the copy."""
    for name in ("target", "work", "home", "tmp", "out"):
        (folder / name).mkdir(parents=True)
    plant(folder / "work", folder / "executed")
    target = folder / "target" / victim.name
    if victim.is_dir():
        shutil.copytree(victim, target, symlinks=True)
    else:
        shutil.copyfile(victim, target)
    return target


def plant(folder, marker, names=BAIT):
    """Write modules that leave a mark when they are imported, and then fail to be what they say."""
    for name in names:
        (folder / f"{name}.py").write_bytes(bait(marker))


def bait(marker):
    """Return the text of a module that appends its own path to a file."""
    return f"open({str(marker)!r}, 'a').write(__file__ + chr(10))\n".encode()


def judge(attack, answer, before, folder):
    """Compare what happened with what may happen."""
    verdict = read_verdict(answer)
    raw = answer["stdout"] + answer["stderr"]
    output = raw.decode("utf-8", "replace")
    problems = []
    if verdict not in attack.allowed:
        problems.append(f"got {verdict}, expected {' or '.join(sorted(attack.allowed))}")
    if attack.says and not any(text in output for text in attack.says):
        problems.append(f"said none of {attack.says}")
    if (folder / "executed").exists():
        problems.append(f"executed {(folder / 'executed').read_text().split()}")
    written = {
        name
        for name, state in take_snapshot(folder).items() ^ before.items()
        if name != "executed" and not any(fnmatch.fnmatch(name, p) for p in attack.writes)
    }
    if written:
        problems.append(f"wrote {sorted(written)[:5]}")
    if any((folder / "tmp").iterdir()):
        problems.append(f"left {sorted(p.name for p in (folder / 'tmp').iterdir())[:5]} in TMPDIR")
    if answer["megabytes"] > MOST_MEGABYTES:
        problems.append(f"took {answer['megabytes']:.0f} MB")
    problems += check_output(verdict, output.replace("\r", "") if attack.terminal else output)
    if attack.inspect and (found := attack.inspect(folder)):
        problems.append(found)
    return Outcome(
        verdict, answer["code"], answer["megabytes"], answer["seconds"], output, tuple(problems)
    )


def read_verdict(answer):
    """Return one word for how a command ended; see attack.py."""
    code, stdout = answer["code"], answer["stdout"].decode("utf-8", "replace")
    stderr = answer["stderr"].decode("utf-8", "replace")
    # SIGXCPU ends a process at its limit; where it was a worker, the program names the signal.
    if answer["timed_out"] or code == -signal.SIGXCPU or "SIGXCPU" in stdout + stderr:
        return "TIMEOUT"
    if code < 0:
        return f"SIGNAL {-code}"
    if "Traceback (most recent call last)" in stdout + stderr:
        return "TRACEBACK"
    said = re.match(r"([A-Z][A-Z0-9 ]+): ", stdout)
    if said:
        return said[1] if (code == 0) == (said[1] in PASSED) else f"{said[1]} with exit {code}"
    if code == 2 and "error: " in (stdout + stderr).lower():
        return "REFUSED"
    return "DONE" if code == 0 else f"EXIT {code}"


def check_output(verdict, output):
    """Return what is wrong with a text that a person reads on a terminal."""
    problems = []
    if found := UNSAFE.search(output):
        problems.append(f"printed {found[0]!r} raw")
    # A verdict stands at the beginning of the first line, and nowhere else.
    lines = output.splitlines()
    false = [line for line in lines[1:] if re.match(r"\s*(IDENTICAL|CONSISTENT)\b", line)]
    if false and verdict not in PASSED:
        problems.append(f"printed a second verdict: {false[0]!r}")
    return problems


def take_snapshot(folder):
    """Return kind, size, time of change and link of everything in a sandbox but `out/`."""
    found = {}
    for root, folders, files in os.walk(folder):
        place = Path(root)
        if place == folder:
            folders.remove("out")
        for name in (*folders, *files):
            path = place / name
            state = path.lstat()
            # The time of a folder changes when a temporary file comes and goes in it.
            changed = 0 if stat.S_ISDIR(state.st_mode) else state.st_mtime_ns
            link = os.readlink(path) if stat.S_ISLNK(state.st_mode) else ""
            key = path.relative_to(folder).as_posix()
            size = 0 if stat.S_ISDIR(state.st_mode) else state.st_size
            found[key] = (stat.S_IFMT(state.st_mode), size, changed, link)
    return found
