"""Runs that began with the weights of a file: what is said of the file, and which file is given."""

import json
import os
import pickle
import struct
from dataclasses import replace

from tests.attack.attack import DETECTED, REFUSALS, VALIDATE, VERIFY, Attack
from tests.attack.escapes import TEXTS, look_for_live_text
from tests.attack.forging import TRAIL, read_lines, rechain, reconfigure
from tests.attack.formats import hash_json, read_safetensors, write_safetensors

BASE = "{victims}/base.safetensors"
# Places that a stranger's configuration may name: none is waited for, none ends in a traceback.
PLACES = {
    "an endless device": "/dev/zero",
    "a terminal": "/dev/tty",
    "the memory of the process": "/proc/self/mem",
    "a file without an end": "/proc/self/environ",
    "a home of nobody": "~nobody-has-this-name/base.safetensors",
    "a NUL byte": "base\0.safetensors",
    "a name that is too long": "x" * 5000,
    "a folder": "/",
    "nothing": "",
}


def list_attacks(victims):
    """Return forged claims about the file, hostile files, and names that draw."""
    base = (victims / "base.safetensors").read_bytes()
    attacks = [
        Attack(
            f"weights/{what}, executed",
            "tuned",
            change,
            (*VERIFY, "--weights", BASE),
            DETECTED,
        )
        for what, change in {
            "tensors that the file does not hold": _claim_tensors,
            "another file that agrees with itself": _claim_digest,
            "no file at all": _claim_none,
        }.items()
    ]
    attacks += [
        _give(what, content)
        for what, content in {
            "one bit flipped": _flip(base),
            "of another run": (victims / "native" / "weights.safetensors").read_bytes(),
            "cut short": base[:-4],
            "longer": base + b"\0",
            "a pickle": pickle.dumps({"weight": 1}),
            "a zip file": b"PK\x03\x04" + base[4:],
            "nothing": b"",
            "a header of 2^60 bytes": struct.pack("<Q", 2**60) + base[8:],
            "a deep header": struct.pack("<Q", 200_000) + b"[" * 100_000 + b"]" * 100_000,
            "a tensor twice": _repeat_key(base),
        }.items()
    ]
    attacks += [_place(what, place) for what, place in PLACES.items()]
    attacks += [_place_data(what, place) for what, place in PLACES.items()]
    attacks += [_make_special(what, make) for what, make in _SPECIAL.items()]
    attacks += _list_names() + _list_listed_names() + _list_tensor_names()
    return attacks


def _claim_file(run, change):
    """Let ``change(file, state)`` work on what line 0 and the receipt say of the file."""
    lines = read_lines(run / TRAIL)
    file, state = lines[0]["initialization"]["file"], lines[0]["state"]
    change(file, state)
    file["tensors"] = hash_json({f"model/{n}": state[f"model/{n}"] for n in file["taken"]})
    rechain(run, lines)


def _claim_tensors(run):
    def change(file, state):
        state[f"model/{file['taken'][0]}"] = 64 * "0"

    _claim_file(run, change)


def _claim_digest(run):
    """Name another file in the configuration, the checkpoints, the trail and the receipt."""
    digest = "sha256:" + 64 * "a"
    reconfigure(run, "init", "weights_digest", digest)
    _claim_file(run, lambda file, state: file.update(digest=digest))


def _claim_none(run):
    lines = read_lines(run / TRAIL)
    del lines[0]["initialization"]["file"]
    rechain(run, lines, schema="2.0")


def _give(what, content):
    """Verify the honest run with a file of other bytes under the right name."""

    def change(run):
        (run.parent / "base.safetensors").write_bytes(content)

    command = (*VERIFY, "--weights", "{run}/../base.safetensors")
    return Attack(f"weights/given a file: {what}", "tuned", change, command)


def _place(what, place):
    """Let the configuration of the run say that its file lies elsewhere; no digest covers that."""

    def change(run):
        file = run / "config.toml"
        lines = file.read_text().splitlines()
        at = next(i for i, line in enumerate(lines) if line.startswith("weights ="))
        lines[at] = f"weights = {json.dumps(place)}"
        file.write_text("\n".join(lines) + "\n")
        rechain(run, read_lines(run / TRAIL))

    return Attack(f"weights/the configuration names {what}", "tuned", change, VERIFY)


def _place_data(what, place):
    """The same for the data of a run, which lie where its configuration says."""

    def change(run):
        reconfigure(run, "data", "name", place)

    return Attack(f"weights/the configuration names {what} as data", "own", change, VERIFY)


def _make_loop(place):
    place.symlink_to(place.with_name("other"))
    place.with_name("other").symlink_to(place)


_SPECIAL = {
    "a pipe": os.mkfifo,
    "a loop of links": _make_loop,
    "a link to a device": lambda place: place.symlink_to("/dev/zero"),
    "a terabyte of holes": lambda place: (place.touch(), os.truncate(place, 2**40)),
}


def _make_special(what, make):
    def change(run):
        make(run.parent / "special.safetensors")

    command = (*VERIFY, "--weights", "{run}/../special.safetensors")
    return Attack(f"weights/given {what}", "tuned", change, command)


def _list_names():
    """Return names of the file that draw or run code, for every command that may show them."""
    commands = {
        "verify": VALIDATE,
        "executed": (*VERIFY, "--weights", BASE),
        "not found": (*VERIFY, "--weights", "{out}/missing.safetensors"),
        "not found either": (*VERIFY, "--weights", "{out}"),
        "report": ("report", "{run}", "--out", "{out}/page.html"),
        "card": ("card", "{run}", "--out", "{out}/card.md"),
        "card on screen": ("card", "{run}"),
        "diff": ("diff", "{run}", "{honest}", "--no-replay"),
        "provenance": ("provenance", "{run}", "--out", "{out}/provenance.json"),
        "materials": ("export", "{run}", "--cyclonedx", "{out}/bom.json"),
    }
    attacks = []
    for turn, (name, command) in enumerate(commands.items()):
        for what in ("script", "markdown", "clears the screen", "new line")[turn % 2 :: 2]:
            text = TEXTS[what].replace("/", "")

            def change(run, text=text):
                _claim_file(run, lambda file, state: file.update(name=text))

            attacks.append(
                Attack(
                    f"weights/file name {what}, {name}",
                    "tuned",
                    change,
                    command,
                    REFUSALS | {"CONSISTENT", "IDENTICAL", "DONE", "DIFFERS", "EXIT 1"},
                    reason="a file may have any name; it must be shown without its effect",
                    inspect=look_for_live_text,
                    terminal=True,
                )
            )
    return attacks


def _list_listed_names():
    """Return names of tensors in the receipt that draw; the message that refuses them has one."""
    attacks = []
    for what in ("clears the screen", "new line", "turned around"):

        def change(run, text=TEXTS[what]):
            _claim_file(run, lambda file, state: file.update(started=[text]))

        attacks.append(Attack(f"weights/a started tensor {what}", "tuned", change, terminal=True))
    return attacks


def _list_tensor_names():
    """Return files whose tensors have names that draw; the message that refuses them quotes one."""
    train = ("train", "images-small", "--set", "data.records=60", "--out", "{out}/run")
    attacks = []
    for what in ("clears the screen", "new line", "C1 control", "turned around"):

        def change(file, text=TEXTS[what]):
            metadata, tensors = read_safetensors(file.read_bytes())
            tensors[text] = tensors.pop(min(tensors))
            file.write_bytes(write_safetensors(metadata, tensors))

        attack = Attack(f"weights/a tensor that {what}", "base.safetensors", change)
        command = (*train, "--set", "init.weights={run}")
        attacks.append(replace(attack, command=command, terminal=True))
    return attacks


def _flip(content):
    return content[:-1] + bytes([content[-1] ^ 1])


def _repeat_key(content):
    """Return a file whose header names one of its tensors twice."""
    size = int.from_bytes(content[:8], "little")
    header = content[8 : 8 + size].rstrip()
    name, tensor = next(iter(json.loads(header).items()))
    more = header[:-1] + b"," + json.dumps({name: tensor}).encode()[1:]
    return struct.pack("<Q", len(more)) + more + content[8 + size :]
