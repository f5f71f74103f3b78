"""Records of runs, written by hand as the recorder writes them."""

import json

from seedless.audit.doctor.case import Case
from seedless.audit.doctor.command import Execution
from seedless.audit.doctor.first_step import find_first_step
from seedless.audit.doctor.recorded_run import read_run

VALUES = {
    name: f"{name:_<16}"[:16]
    for name in [
        "weights_before",
        "optimizer_state_before",
        "indices",
        "batch",
        "input",
        "output",
        "loss",
        "gradients",
        "rate",
        "weights",
        "optimizer_state",
    ]
}


def make_step(number, **changed):
    """A step line; ``changed`` replaces values, None removes one."""
    values = {**VALUES, **changed}
    return {
        "kind": "step",
        "step": number,
        "optimizer": 0,
        "optimizer_type": "SGD",
        "line": "train.py:41",
        "values": {name: value for name, value in values.items() if value is not None},
        "shown": {"loss": [0.5]},
        "generators": {"torch": "t" * 16},
    }


def make_process(rank=0, **values):
    """The first line of a process."""
    first = {
        "kind": "process",
        "role": "main",
        "worker_id": None,
        "argv": ["train.py"],
        "executable": "/usr/bin/python",
        "python": "3.11.7",
        "rank": rank,
        "world_size": 1,
        "pid": 100 + rank,
        "ppid": 1,
        "cwd": "/home/me",
        "variables": {},
    }
    return {**first, **values}


def make_end(steps, reason="exit", error=None):
    return {"kind": "end", "steps": steps, "reason": reason, "error": error}


def write_process(folder, lines, name=None):
    """Write the record of one process; return its file."""
    folder.mkdir(parents=True, exist_ok=True)
    first = lines[0]
    file = folder / (name or f"process-{first['rank']}-{first['pid']}.jsonl")
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def write_run(folder, lines=None, *, steps=3, workers=(), generators=None, **changes):
    """Write a run of one process and return it; ``lines`` stand before its steps.

    ``changes`` are values of the steps: ``step2={"loss": "other"}``.
    """
    numbers = range(1, steps + 1)
    made = [make_step(number, **changes.get(f"step{number}", {})) for number in numbers]
    if generators is not None:
        made = [{**step, "generators": generators} for step in made]
    write_process(folder, [make_process(), *(lines or []), *made, make_end(steps)])
    for number, worker in enumerate(workers):
        first = make_process(role="worker", worker_id=number, pid=200 + number, ppid=100)
        write_process(folder, [first, *worker])
    return read_run(folder)


def make_case(a, b, **values):
    """The case of two runs that differ."""
    return Case((a, b), find_first_step(a, b), **values)


def write_steps(records, *steps, lines=(), end=None):
    last = end or make_end(len(steps))
    write_process(records, [make_process(), *lines, *steps, last])


class Script:
    """A command that writes records instead of training; ``write`` decides what."""

    def __init__(self, write):
        self.write, self.calls = write, []

    def execute(
        self, command, folder, settings, *, variables=None, timeout=None, cwd=None, out=None
    ):
        records = folder / "records"
        records.mkdir(parents=True)
        (folder / "stderr.txt").write_text("the last line\n")
        self.calls.append((settings, dict(variables or {})))
        code = self.write(records, len(self.calls), settings, dict(variables or {}))
        return Execution(folder, code or 0, 1.0)
