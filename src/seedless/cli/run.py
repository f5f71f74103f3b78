"""`seedless run -- COMMAND`: run a training script once, and give its run a receipt."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from seedless.cli.options import AsJson, print_result


def run(
    command: Annotated[
        list[str], typer.Argument(metavar="-- COMMAND", help="As in a shell: python train.py ...")
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="The run folder; default: runs/SCRIPT.")
    ] = None,
    output: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A file or folder it writes that counts; default: all."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a training script once, unchanged, and write a receipt.

    The receipt states the command, the source files, the data, every step and
    the files that were written; seedless verify FOLDER --execute repeats it.
    Exit code 2: the script failed, or no training step was seen; no receipt.
    (The runs of a study: seedless study run.)
    """
    from seedless.audit.doctor.command import find_program

    find_program(command)
    from seedless.audit.script.recording import record_script

    folder = out if out is not None else Path("runs") / name_run(command)
    # With --json, standard output is for the result alone.
    first = sys.stderr.buffer if as_json else sys.stdout.buffer
    receipt = record_script(command, folder, outputs=output or (), show=(first, sys.stderr.buffer))
    claims = receipt["predicate"]
    script = claims["script"]
    values: dict[str, Any] = {
        "run": str(folder),
        "receipt": claims["digest"],
        "steps": sum(end["entries"] - 1 for end in claims["processes"]["trails"]),
        "processes": claims["processes"]["count"],
        "sources": len(script["sources"]),
        "data": script["data"]["files"],
        "unobserved": script["unobserved"],
        "changed": script["changed"],
        "missing": [str(path) for path in output or () if not path.exists()],
        "outputs": {name: script["outputs"][name]["digest"] for name in script["outputs"]},
    }
    print_result(values, describe_run(values), as_json)


def name_run(command: list[str]) -> str:
    """Return a name for the run of a command: that of its script or module, else "script"."""
    for place, word in enumerate(command):
        if word.endswith(".py"):
            return Path(word).stem
        if word == "-m" and place + 1 < len(command):
            name = command[place + 1].rpartition(".")[2]
            if name and name != "run":
                return name
    return os.path.basename(command[0]) or "script"


def describe_run(values: dict[str, Any]) -> str:
    """Return the result for people."""
    from seedless.core.display import count_things, escape_text

    processes = f" in {values['processes']} processes" if values["processes"] > 1 else ""
    lines = [
        values["run"],
        f"{count_things(values['steps'], 'step')}{processes}, "
        f"{count_things(values['sources'], 'source file')}, "
        f"{count_things(values['data'], 'data file')}, "
        f"{count_things(len(values['outputs']), 'output')}",
        *(f"  {name}  {digest}" for name, digest in list(values["outputs"].items())[:10]),
    ]
    if len(values["outputs"]) > 10:
        lines.append(f"  and {len(values['outputs']) - 10} more")
    if values["missing"]:
        lines.append(f"not written, and not in the receipt: {', '.join(values['missing'])}")
    if values["unobserved"]:
        names = ", ".join(values["unobserved"])
        lines.append(f"not observed: files that these packages opened themselves: {names}")
    if values["changed"]:
        names = ", ".join(values["changed"])
        lines.append(f"it read and then changed {names}: a repeat cannot begin as it did")
    lines.append(f"receipt {values['receipt']}")
    return "\n".join(map(escape_text, lines))
