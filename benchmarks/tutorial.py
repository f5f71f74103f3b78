"""Run every step of docs/tutorial/why-do-my-runs-differ.md: ``python -m benchmarks.tutorial``.

The page is the source. Its first block of Python is the script, each block of diff changes it, and
each block that begins with "$ seedless doctor" holds what that command prints for the script as it
is there: all of it in a block of "console", else the answer without the evidence. This program runs
the commands and writes their output into the page.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.pages import DOCS

PAGE = DOCS / "tutorial" / "why-do-my-runs-differ.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
PROMPT = "$ "
SOURCE = Path(__file__).parents[1] / "src"


@dataclass(frozen=True)
class Step:
    """A command of the page.

    Attributes:
        script: what it runs.
        output: what the page says that it prints.
        is_whole: the page shows the evidence too.
        place: where the block is in the page.
    """

    script: str
    command: str
    output: str
    is_whole: bool
    place: tuple[int, int]


def read_steps(text: str) -> Iterator[Step]:
    """Yield the commands of a page in order, each with the script as changed up to there."""
    script = ""
    for block in BLOCK.finditer(text):
        language, content = block[1], block[2]
        if language == "python" and not script:
            script = content
        elif language == "diff":
            script = apply_change(script, content)
        elif content.startswith(f"{PROMPT}seedless doctor"):
            command, _, output = content.removeprefix(PROMPT).partition("\n")
            yield Step(script, command, output, language == "console", block.span(2))


def apply_change(script: str, change: str) -> str:
    """Return a script in which the lines of a diff are replaced; they must occur exactly once."""
    lines = change.splitlines(keepends=True)
    old = "".join(line[1:] for line in lines if not line.startswith("+"))
    new = "".join(line[1:] for line in lines if not line.startswith("-"))
    if script.count(old) != 1:
        raise ValueError(f"the script has these lines {script.count(old)} times, not once:\n{old}")
    return script.replace(old, new)


def run_step(step: Step, folder: Path) -> str:
    """Return what the page shows of a command, run in a new folder that holds only the script."""
    folder.mkdir()
    (folder / "train.py").write_text(step.script, encoding="utf-8")
    words = shlex.split(step.command)
    python = [sys.executable if word == "python" else word for word in words[1:]]
    done = subprocess.run(
        [sys.executable, "-m", "seedless", *python],
        cwd=folder,
        env={**os.environ, "COLUMNS": "80", "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{step.command}: exit code {done.returncode}\n{done.stderr}")
    answer, _, evidence = done.stdout.rstrip().partition("\n\n")
    if not evidence:
        return f"{answer}\n"
    return f"{answer}\n\n{evidence}\n" if step.is_whole else f"{answer}\n...\n"


def write_page(text: str) -> str:
    """Return the page with the output of every command, run now."""
    with TemporaryDirectory() as place:
        steps = list(read_steps(text))
        outputs = [run_step(step, Path(place) / str(n)) for n, step in enumerate(steps)]
    for step, output in reversed(list(zip(steps, outputs, strict=True))):
        start, end = step.place
        text = f"{text[:start]}{PROMPT}{step.command}\n{output}{text[end:]}"
    return text


if __name__ == "__main__":
    PAGE.write_text(write_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(PAGE)
