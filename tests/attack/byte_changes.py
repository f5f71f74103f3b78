"""Files of a run flipped, cut, lengthened, removed, swapped or replaced by something else."""

import os
import shutil
from dataclasses import replace

from tests.attack.attack import REFUSALS, SIGNED, VALIDATE, Attack
from tests.attack.forging import seal

NATIVE = (
    *("config.toml", "log.jsonl", "metrics.json", "predictions.npz", "receipt.json"),
    *("trail.jsonl", "weights.safetensors", "checkpoints/epoch-0001.safetensors"),
    "checkpoints/epoch-0002.safetensors",
)
STRIPPED = ("config.toml", "light.json", "log.jsonl", "metrics.json", "predictions.npz")
# Where a bit is flipped, as parts of a file; the last byte is 1.
PLACES = (0.0, 0.13, 0.37, 0.5, 0.71, 1.0)


def list_attacks(victims):
    """Return the attacks on single files."""
    attacks = []
    for name in NATIVE:
        attacks += [_flip("native", name, part, bit=1 << turn) for turn, part in enumerate(PLACES)]
        attacks += [_edit("native", name, what, edit) for what, edit in EDITS.items()]
        attacks += [_replace(name, what, make) for what, make in REPLACEMENTS.items()]
        if name != "receipt.json":
            attacks += [
                _edit("native", name, f"{what}, resealed", edit, resealed=True)
                for what, edit in EDITS.items()
            ]
    for name in (*STRIPPED, "receipt.json"):
        attacks += [_flip("stripped", name, part, bit=4) for part in PLACES[1::2]]
        attacks += [_edit("stripped", name, what, EDITS[what]) for what in ("emptied", "removed")]
    for name in ("config.toml", "predictions.npz", "trail.jsonl", "weights.safetensors"):
        attacks += [_flip(victim, name, 0.6, bit=2) for victim in ("portable", "fit", "own")]
    attacks += [
        _flip("signed", "receipt.dsse.json", part, bit=1, command=SIGNED) for part in PLACES
    ]
    attacks += [
        _edit("signed", "receipt.dsse.json", what, edit, command=SIGNED)
        for what, edit in EDITS.items()
    ]
    return attacks + _list_swaps(victims)


def _flip(victim, name, part, bit, command=VALIDATE):
    def change(run):
        content = bytearray((run / name).read_bytes())
        content[min(int(part * len(content)), len(content) - 1)] ^= bit
        (run / name).write_bytes(content)

    return Attack(f"bytes/{victim}: {name}, bit {bit} at {part:.0%}", victim, change, command)


def _cut_half(file):
    os.truncate(file, file.stat().st_size // 2)


def _cut_one(file):
    os.truncate(file, file.stat().st_size - 1)


def _append(content):
    def edit(file):
        with open(file, "ab") as stream:
            stream.write(content)

    return edit


EDITS = {
    "cut in half": _cut_half,
    "without its last byte": _cut_one,
    "emptied": lambda file: os.truncate(file, 0),
    "with a newline more": _append(b"\n"),
    "with 1,000 zeros more": _append(bytes(1000)),
    "removed": lambda file: file.unlink(),
    "written twice": lambda file: file.write_bytes(file.read_bytes() * 2),
}


# Files that people read and that have no one form: a line feed more or less changes no value.
LOOSE = ("config.toml", "metrics.json")


def _edit(victim, name, what, edit, command=VALIDATE, resealed=False):
    def change(run):
        edit(run / name)
        if resealed:
            seal(run)

    attack = Attack(f"bytes/{victim}: {name} {what}", victim, change, command)
    if not resealed or name not in LOOSE or edit not in (_cut_one, EDITS["with a newline more"]):
        return attack
    reason = "the last line feed of a file for people changes no value in it"
    return replace(attack, allowed=REFUSALS | {"CONSISTENT"}, reason=reason)


def _make_folder(file):
    file.unlink()
    file.mkdir()


def _make_pipe(file):
    file.unlink()
    os.mkfifo(file)


def _make_link(target):
    def make(file):
        file.unlink()
        file.symlink_to(target)

    return make


def _make_link_to_itself_elsewhere(file):
    """The same bytes, but behind a link to a file that its owner can change at any time."""
    elsewhere = file.parents[2] / "elsewhere"
    shutil.move(file, elsewhere)
    file.symlink_to(elsewhere)


REPLACEMENTS = {
    "a folder": _make_folder,
    "a pipe nobody writes to": _make_pipe,
    "a link to /dev/zero": _make_link("/dev/zero"),
    "a link to nothing": _make_link("nothing"),
    "a link to itself": lambda file: _make_link(file.name)(file),
    "a link to the same bytes elsewhere": _make_link_to_itself_elsewhere,
}


def _replace(name, what, make):
    return Attack(f"bytes/native: {name} is {what}", "native", lambda run: make(run / name))


def _list_swaps(victims):
    """Return swaps of files within a run and between two honest runs, with new digests too."""
    attacks = []
    pairs = (
        ("checkpoints/epoch-0001.safetensors", "checkpoints/epoch-0002.safetensors"),
        ("weights.safetensors", "checkpoints/epoch-0002.safetensors"),
        ("trail.jsonl", "log.jsonl"),
        ("metrics.json", "receipt.json"),
    )
    for one, two in pairs:
        for resealed in (False, True)[: 1 if "receipt.json" in two else 2]:
            attacks.append(_swap(one, two, resealed))
    for name in NATIVE:
        for resealed in (False, True)[: 1 if name == "receipt.json" else 2]:
            attacks.append(_take_from_other(victims / "other", name, resealed))
    return attacks


def _swap(one, two, resealed):
    def change(run):
        a, b = (run / one).read_bytes(), (run / two).read_bytes()
        (run / one).write_bytes(b)
        (run / two).write_bytes(a)
        if resealed:
            seal(run)

    return Attack(f"bytes/{one} and {two} swapped{', resealed' * resealed}", "native", change)


def _take_from_other(other, name, resealed):
    def change(run):
        shutil.copyfile(other / name, run / name)
        if resealed:
            seal(run)

    return Attack(f"bytes/{name} of another run{', resealed' * resealed}", "native", change)
