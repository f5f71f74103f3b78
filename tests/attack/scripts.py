"""Runs of scripts: whatever the folder says, nothing of it is executed, unasked or asked for.

The verifier of these attacks types `--execute`, in front of an honest copy of the script. What the
attacker wants is that something else is executed, or with other variables, or that other files are
read or written.
"""

import os

from tests.attack.attack import REFUSALS, VALIDATE, VERIFY, Attack
from tests.attack.escapes import TEXTS
from tests.attack.forging import (
    FIRST,
    TRAIL,
    list_files,
    read_lines,
    read_receipt,
    write_lines,
    write_receipt,
)
from tests.attack.formats import hash_json, set_at, write_json

FOLDER = "{victims}/script-work"
EXECUTE = ("verify", "{run}", "--execute", "--sources", FOLDER)
NOT_PASSED = REFUSALS | {"NOT EXECUTED"}
ZERO = "sha256:" + 64 * "0"
TORCHRUN = ("python", "-m", "torch.distributed.run")

# What a command could be, with MARK in place of the file that shows that it was executed.
COMMANDS = {
    "a shell": ("sh", "-c", "touch MARK"),
    "a program": ("touch", "MARK"),
    "an interpreter in the current folder": ("./python", "train.py"),
    "an interpreter in the run folder": ("RUN/report.html", "train.py"),
    "an interpreter by its path": ("/usr/bin/env", "sh", "-c", "touch MARK"),
    "code": ("python", "-c", "open('MARK', 'w')"),
    "code after options": ("python", "-uc", "open('MARK', 'w')"),
    "code from standard input": ("python", "-"),
    "a module of the library": ("python", "-m", "timeit", "open('MARK', 'w')"),
    "pip": ("python", "-m", "pip", "install", "RUN"),
    "a file of the run folder": ("python", "RUN/report.html"),
    "the run folder": ("python", "RUN"),
    "a file above": ("python", "../train.py"),
    "an option that loads code": ("python", "-X", "importtime", "train.py"),
    "no command": ("python",),
    "torchrun without Python": (*TORCHRUN, "--no-python", "touch", "MARK"),
    "torchrun, abbreviated": (*TORCHRUN, "--no-py", "touch", "MARK"),
    "torchrun of a module": (*TORCHRUN, "-m", "timeit", "open('MARK', 'w')"),
    "torchrun with a log elsewhere": (*TORCHRUN, "--log_dir=RUN", "train.py"),
    "an argument that leads to the run": ("python", "train.py", "--out", "RUN"),
    "an argument that leads to a home": ("python", "train.py", "--out=~/x"),
    "an argument that leads up": ("python", "train.py", "--out", "a/../../../x"),
    "an argument that leads to the root": ("python", "train.py", "/"),
    "an argument with a NUL": ("python", "train.py", "a\x00b"),
    "ten thousand arguments": ("python", "train.py", *("x",) * 10_000),
}
# Claims that no receipt of a script can have, with their path.
CLAIMS = {
    "sources that lead up": (("script", "sources", "../train.py"), ZERO),
    "sources with a NUL": (("script", "sources", "a\x00.py"), ZERO),
    "outputs that lead up": (("script", "outputs"), {"../x": {}}),
    "outputs elsewhere": (("script", "outputs"), {"/etc/passwd": {}}),
    "another exit code": (("script", "exit_code"), 1),
    "a variable that loads a library": (("environment", "variables", "LD_PRELOAD"), "/x.so"),
    "a variable that loads a module": (("environment", "variables", "PYTHONSTARTUP"), "/x.py"),
    "a variable that finds modules": (("environment", "variables", "PYTHONPATH"), "/x"),
    "a variable with two lines": (("environment", "variables", "MKL_CBWR"), "a\nLD_PRELOAD=x"),
    "a huge size": (("script", "data", "bytes"), 10**30),
    "no process": (("processes", "count"), 0),
    "a million processes": (("processes", "count"), 10**6),
    "weights of this package": (("weights",), {"digest": ZERO, "epoch": 1, "md5": ""}),
    "a kind of this package": (("kind",), "train"),
    "the kind of a fit": (("kind",), "fit"),
    "an older schema": (("schema",), "2.0"),
    "no script": (("script",), None),
}


def list_attacks(victims):
    """Return the attacks by the run of a script."""
    attacks = [_command(name, command) for name, command in COMMANDS.items()]
    attacks += [_claim(name, *claim) for name, claim in CLAIMS.items()]
    attacks += [_escape(what, text) for what, text in list(TEXTS.items())[:8]]
    return attacks + _list_data() + _list_files() + _list_trails() + _list_commands()


def seal(run, statement=None):
    """Write a receipt of a script that covers the files as they are, with its right subject."""
    statement = statement or read_receipt(run)
    claims = statement["predicate"]
    claims["files"] = list_files(run)
    outputs = (claims.get("script") or {}).get("outputs") or {}
    if all("digest" in value for value in outputs.values()):
        statement["subject"] = [
            {"name": name, "digest": {"sha256": outputs[name]["digest"][7:]}}
            for name in sorted(outputs)
        ]
    write_receipt(run, statement)


def forge(run, path, value):
    """Change a claim, and what line 0 of the trail repeats of it; chain and seal anew."""
    statement = read_receipt(run)
    claims = statement["predicate"] = set_at(statement["predicate"], path, value)
    lines = read_lines(run / TRAIL)
    lines[0]["environment"] = claims["environment"]
    if claims["script"]:
        lines[0]["settings"] = {name: claims["script"].get(name) for name in ("command", "sources")}
    chain(run, lines, statement)


def chain(run, lines, statement=None):
    """Write the lines of a trail, each with the digest of the one before, and seal the run."""
    statement = statement or read_receipt(run)
    previous = FIRST
    for line in lines:
        line.pop("digest", None)
        line["previous"] = previous
        line["digest"] = previous = hash_json(line)
    write_lines(run / TRAIL, lines)
    end = {"head": previous, "entries": len(lines)}
    claims = statement["predicate"]
    claims["trail"] = end
    if "trails" in claims["processes"]:
        claims["processes"]["trails"] = [end]
    seal(run, statement)


def _command(name, command):
    def change(run):
        places = {"MARK": str(run.parents[1] / "executed"), "RUN": str(run)}
        words = list(command)
        for word, place in places.items():
            words = [text.replace(word, place) for text in words]
        (run / "report.html").write_text(f"#!/bin/sh\ntouch {places['MARK']}\n")
        (run / "report.html").chmod(0o755)
        forge(run, ("script", "command"), words)

    return Attack(f"scripts/{name} as command", "script", change, EXECUTE)


def _claim(name, path, value):
    return Attack(f"scripts/{name}", "script", lambda run: forge(run, path, value), EXECUTE)


def _escape(what, text):
    """A text that draws, as an argument: it is quoted where the command is refused."""

    def change(run):
        forge(run, ("script", "command"), ["python", "train.py", text, "--out=/x"])

    return Attack(f"scripts/an argument {what}", "script", change, EXECUTE, terminal=True)


def _list_data():
    """Files of data that are none, or others than the verifier has."""
    files = {
        "a device": {"path": "/dev/zero", "size": 0, "digest": ZERO},
        "a file of the system": {"path": "/etc/passwd", "size": 1, "digest": ZERO},
        "another content": {"path": "table.json", "size": 2, "digest": ZERO},
        "a huge file": {"path": "table.json", "size": 2**60, "digest": ZERO},
        "a path up": {"path": "../table.json", "size": 1, "digest": ZERO},
        "the folder itself": {"path": ".", "size": 1, "digest": ZERO},
        "a field more": {"path": "x", "size": 1, "digest": ZERO, "mode": 1},
    }

    def make(file):
        def change(run):
            (run / "data.jsonl").write_bytes(write_json(file) + b"\n")
            forge(run, ("script", "data"), {"files": 1, "bytes": file["size"]})

        return change

    return [
        Attack(f"scripts/{name} as data", "script", make(file), EXECUTE)
        for name, file in files.items()
    ]


def _list_files():
    """Files that are added, replaced by links and pipes, or far too large."""

    def add(name):
        def change(run):
            (run / name).write_text(f"open({str(run.parents[1] / 'executed')!r}, 'w')\n")
            seal(run)

        return change

    def link(run):
        os.rename(run / TRAIL, run.parent / TRAIL)
        (run / TRAIL).symlink_to(run.parent / TRAIL)

    def pipe(run):
        (run / "data.jsonl").unlink()
        os.mkfifo(run / "data.jsonl")

    def grow(run):
        with (run / "data.jsonl").open("r+b") as file:
            file.truncate(2**40)

    def nest(run):
        (run / "data.jsonl").write_bytes(b"[" * 10**6 + b"\n")
        seal(run)

    names = ("train.py", "torch.py", "sitecustomize.py", "weights.safetensors", "trail-1.jsonl")
    changes = {f"{name} added": add(name) for name in (*names, "provenance.json", "light.json")}
    changes |= {"a link as trail": link, "a pipe as data": pipe}
    changes |= {"a terabyte of data": grow, "data nested deep": nest}
    return [
        Attack(f"scripts/{name}", "script", change, EXECUTE) for name, change in changes.items()
    ]


def _list_trails():
    """Trails that do not fit, under a chain and a receipt that do."""
    changes = {
        "a step less in the chain": lambda lines: lines.pop(1),
        "a step moved": lambda lines: lines.insert(1, lines.pop()),
        "a state that draws": lambda lines: lines[1]["state"].update(weights="\x1b[2J"),
        "a name that draws": lambda lines: lines[1]["state"].update({"\x1b[2J": 16 * "0"}),
        "a huge step": lambda lines: lines[-1].update(step=10**40),
        "a loss of text": lambda lines: lines[1].update(loss="<script>"),
    }

    def make(edit):
        def change(run):
            lines = read_lines(run / TRAIL)
            edit(lines)
            chain(run, lines)

        return change

    # What agrees with itself is not executed without the word, and that is no pass.
    return [
        Attack(f"scripts/{name}", "script", make(edit), VERIFY, NOT_PASSED, terminal=True)
        for name, edit in changes.items()
    ]


def _list_commands():
    """The honest run in commands that need a model, and as something that it is not."""
    refused = {
        "evaluate": ("evaluate", "{run}"),
        "card": ("card", "{run}"),
        "churn": ("churn", "{run}", "{other}"),
        "export": ("export", "{run}", "--onnx", "{out}/model.onnx"),
        "provenance": ("provenance", "{run}", "--out", "{out}/provenance.json"),
        "resume": ("resume", "{run}"),
        "referee": ("referee", "{run}", "{other}"),
        "bundle --with-data": ("bundle", "{run}", "--with-data", "--out", "{out}/x.zip"),
        "report --verify": ("report", "{run}", "--verify", "--out", "{out}/page.html"),
        "verify --sample": ("verify", "{run}", "--sample", "1"),
        "verify --summary": ("verify", "{run}", "--summary", "{out}/s", "--key", "{keys}/key.pem"),
        "sources in the run": ("verify", "{run}", "--execute", "--sources", "{run}"),
        "an interpreter in the run": (*EXECUTE, "--python", "{run}/receipt.json"),
        "a signature that is not there": (*VALIDATE, "--public-key", "{keys}/key.pem.pub"),
    }
    attacks = [
        Attack(f"scripts/honest, {name}", "script", lambda run: None, command)
        for name, command in refused.items()
    ]
    unasked = Attack(
        "scripts/honest, unasked", "script", lambda run: None, VERIFY, frozenset({"NOT EXECUTED"})
    )
    return [*attacks, unasked]
