"""A pair of runs to be judged: a script, a planted fault, and what the right answer is."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

SCRIPTS = Path(__file__).parent / "scripts"

# The command that trains, by script folder.
COMMANDS = {
    "accumulate": "python train_gpt.py",
    "amp": "python main.py",
    "augment": "python train.py",
    "charlm": "python train_lm.py",
    "compile": "python train.py",
    "cox": "python survival.py",
    "cudagraph": "python train.py",
    "ddp": "torchrun --standalone --nproc_per_node=2 train_ddp.py",
    "digits": "python train.py",
    "dqn": "python dqn.py",
    "folder": "python train.py",
    "fused": "python main.py",
    "gan": "python gan.py",
    "graph": "python main.py",
    "lightning": "python train.py",
    "manual": "python train.py",
    "resume": "python train.py --out {out}",
    "scaler": "python train.py --out {out}",
    "seg": "python train_seg.py",
    "speech": "python train_ctc.py",
    "trainer": "python finetune.py",
    "vae": "python vae.py",
    "workers": "python train.py",
}
# Scripts that need a GPU, or whose faults do.
NEEDS_GPU = ("cox", "cudagraph", "fused", "seg", "speech")


@dataclass(frozen=True)
class Edit:
    """A change of one file of a script; ``old`` must occur exactly once."""

    file: str
    old: str
    new: str = ""


@dataclass(frozen=True)
class Pair:
    """A script with a fault planted by edits, and the answers that are right.

    ``causes`` lists the codes of the doctor that are right; an empty one says that both runs are
    identical. ``lines`` lists texts of the edited script, as ``file: text``, each a whole line or
    on exactly one line; an answer that names one of these lines is right.
    """

    name: str
    script: str
    edits: tuple[Edit, ...] = ()
    causes: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    command: str = ""
    setup: str = ""
    device: str = "cpu"

    @property
    def full_command(self) -> str:
        """Return the command that the doctor is given."""
        return self.command or COMMANDS[self.script]


def write_script(pair: Pair, folder: Path) -> None:
    """Copy the script into a folder and plant the fault."""
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SCRIPTS / pair.script, folder, dirs_exist_ok=True, ignore=ignore)
    for edit in pair.edits:
        path = folder / edit.file
        text = path.read_text(encoding="utf-8")
        if text.count(edit.old) != 1:
            raise ValueError(
                f"{pair.name}: {edit.old!r} must occur once in {edit.file}, "
                f"but occurs {text.count(edit.old)} times"
            )
        path.write_text(text.replace(edit.old, edit.new), encoding="utf-8")


def find_right_lines(pair: Pair, folder: Path) -> list[str]:
    """Return the right lines of a planted script as ``file:number``."""
    found = []
    for place in pair.lines:
        file, text = place.split(": ", 1)
        rows = (folder / file).read_text(encoding="utf-8").splitlines()
        whole = [number for number, row in enumerate(rows, 1) if text == row.strip()]
        numbers = whole or [number for number, row in enumerate(rows, 1) if text in row]
        if len(numbers) != 1:
            raise ValueError(f"{pair.name}: {text!r} must be on one line of {file}, not {numbers}")
        found.append(f"{file}:{numbers[0]}")
    return found


def digest_pair(pair: Pair) -> str:
    """Return a digest of what is run: the script, the edits, the command and the options."""
    given = {**asdict(pair), "command": pair.full_command}
    for answer in ("causes", "lines"):  # what is right changes no run
        del given[answer]
    digest = hashlib.sha256(json.dumps(given, sort_keys=True).encode())
    for path in sorted((SCRIPTS / pair.script).iterdir()):
        if path.is_file():
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]
