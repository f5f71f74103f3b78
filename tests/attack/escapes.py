"""Texts that draw on a terminal or run in a browser, in every field that a command may show."""

import json
import re

from tests.attack.attack import REFUSALS, VALIDATE, Attack
from tests.attack.forging import (
    change_claims,
    change_trail,
    read_lines,
    read_receipt,
    rechain,
    seal,
    write_lines,
    write_receipt,
)
from tests.attack.formats import (
    hash_json,
    hash_predictions,
    read_npz,
    set_at,
    write_json,
    write_npz,
)

CLEAR = "\x1b[2J\x1b[1;1HIDENTICAL: executed again, identical in every bit"
TEXTS = {
    "clears the screen": CLEAR,
    "C1 control": "\x9b2J\x9b1;1HIDENTICAL: x",
    "new line": "x\nIDENTICAL: executed again",
    "carriage return": "x\rIDENTICAL: executed again",
    "turned around": "\u202eLACITNEDI\u202c",
    "sets the title": "\x1b]0;IDENTICAL\x07",
    "backspaces": "x\x08\x08\x08IDENTICAL",
    "line separator": "x\u2028IDENTICAL: x",
    "script": "<script>alert(1)</script>",
    "markdown": "x](javascript:alert(1)) <img src=x onerror=alert(1)> | # x",
}
# Fields of a receipt that a message may quote.
FIELDS = (
    ("_type",),
    ("predicateType",),
    ("subject", 0, "name"),
    ("predicate", "schema"),
    ("predicate", "kind"),
    ("predicate", "settings"),
    ("predicate", "config", "digest"),
    ("predicate", "source", "digest"),
    ("predicate", "source", "version"),
    ("predicate", "data", "name"),
    ("predicate", "data", "digest"),
    ("predicate", "data", "task"),
    ("predicate", "data", "classes", 0),
    ("predicate", "model", "type"),
    ("predicate", "initialization", "basis"),
    ("predicate", "promise", "across"),
    ("predicate", "weights", "digest"),
    ("predicate", "weights", "md5"),
    ("predicate", "trail", "head"),
    ("predicate", "environment", "packages", "torch"),
    ("predicate", "files", "config.toml"),
)
# What must not be in a file for people; JSON is for programs, which show it as text.
LIVE = {
    ".html": re.compile(rb"<script>alert|<img src=x", re.IGNORECASE),
    ".md": re.compile(rb"<script>alert|<img src=x|(?<!\\)\]\(javascript:", re.IGNORECASE),
}


def list_attacks(victims):
    """Return the attacks on the eyes of a person."""
    attacks = []
    kinds = list(TEXTS.items())
    for turn, path in enumerate(FIELDS):
        for step in (0, 3):
            what, text = kinds[(turn + step) % 8]
            attacks.append(_put(path, what, text))
    attacks += [_name_file(what, text) for what, text in kinds[:6]]
    attacks += [_list_name(what, text) for what, text in kinds[:4]]
    attacks += _list_messages() + _list_classes()
    return attacks


def _put(path, what, text, command=VALIDATE):
    def change(run):
        statement = set_at(read_receipt(run), path, text)
        write_receipt(run, statement)

    where = ".".join(map(str, path))
    return Attack(f"escapes/{where} {what}", "native", change, command, terminal=True)


def _name_file(what, text):
    """Add a file whose name draws; its name stands in the message that refuses it."""

    def change(run):
        (run / text.replace("/", "")).touch()

    return Attack(f"escapes/a file name {what}", "native", change, terminal=True)


def _list_name(what, text):
    def change(run):
        statement = read_receipt(run)
        statement["predicate"]["files"][text] = "sha256:" + 64 * "0"
        write_receipt(run, statement)

    return Attack(f"escapes/a listed name {what}", "native", change, terminal=True)


def _list_messages():
    """Return texts in the other files, each of which is quoted by some message."""

    def config(run):
        file = run / "config.toml"
        quoted = json.dumps(CLEAR)
        file.write_text(file.read_text() + f"\n[{quoted}]\nx = 1\n")
        seal(run)

    def setting(run):
        file = run / "config.toml"
        text = re.sub('basis = "dct"', lambda _: f"basis = {json.dumps(CLEAR)}", file.read_text())
        file.write_text(text)
        seal(run)

    def trail(run):
        change_trail(run, lambda lines: lines[0].update(schema=CLEAR))

    def tensor(run):
        def change(lines):
            lines[1]["state"][CLEAR] = 64 * "0"

        change_trail(run, change)

    def log(run):
        lines = read_lines(run / "log.jsonl")
        lines[0][CLEAR] = 1
        write_lines(run / "log.jsonl", lines)
        seal(run)

    def metrics(run):
        values = json.loads((run / "metrics.json").read_bytes())
        values[CLEAR] = values["test"]
        (run / "metrics.json").write_bytes(write_json(values) + b"\n")
        change_claims(run, lambda claims: claims.update(metrics=values))

    def array(run):
        arrays = read_npz((run / "predictions.npz").read_bytes())
        arrays[CLEAR.replace("/", "")] = arrays["classes"]
        (run / "predictions.npz").write_bytes(write_npz(arrays))
        seal(run)

    def ids(run):
        arrays = read_npz((run / "predictions.npz").read_bytes())
        arrays["test_ids"] = arrays["test_ids"].astype("U80")
        arrays["test_ids"][:] = CLEAR
        (run / "predictions.npz").write_bytes(write_npz(arrays))
        digest = hash_predictions(arrays)
        change_claims(run, lambda claims: claims.update(predictions=digest))

    def note(run):
        (run / "light.json").write_bytes(write_json({"left_out": [CLEAR], "schema": CLEAR}) + b"\n")

    changes = {
        "a table of config.toml": config,
        "a setting of config.toml": setting,
        "the schema of the trail": trail,
        "a tensor of the trail": tensor,
        "a field of the log": log,
        "a split of the metrics": metrics,
        "an array of the predictions": array,
        "ids of the predictions": ids,
        "light.json": note,
    }
    return [
        Attack(f"escapes/{name} clears the screen", "native", change, terminal=True)
        for name, change in changes.items()
    ]


def _list_classes():
    """Return runs that agree with themselves, with a class name that draws or runs code.

    Whoever trains a run chooses the names of its classes, so every command has to show them.
    """
    attacks = []
    commands = {
        "verify": VALIDATE,
        "evaluate": ("evaluate", "{run}"),
        "report": ("report", "{run}", "--out", "{out}/page.html"),
        "card": ("card", "{run}", "--out", "{out}/card.md"),
        "card on screen": ("card", "{run}"),
        "compare": ("compare", "{run}", "{honest}"),
        "churn": ("churn", "{run}", "{honest}"),
        "diff": ("diff", "{run}", "{honest}", "--no-replay"),
        "provenance": ("provenance", "{run}", "--out", "{out}/provenance.json"),
    }
    for turn, (name, command) in enumerate(commands.items()):
        for what in ("script", "markdown", "clears the screen", "new line")[turn % 2 :: 2]:
            attacks.append(
                Attack(
                    f"escapes/class name {what}, {name}",
                    "native",
                    _rename_class(TEXTS[what]),
                    command,
                    REFUSALS | {"CONSISTENT", "DONE", "DIFFERS", "EXIT 1"},
                    reason="a class may have any name; it must be shown without its effect",
                    inspect=look_for_live_text,
                    terminal=True,
                )
            )
    return attacks


def _rename_class(text):
    """Give a class another name everywhere: predictions, metrics, trail and receipt."""

    def change(run):
        arrays = read_npz((run / "predictions.npz").read_bytes())
        old = str(arrays["classes"][0])
        arrays["classes"] = arrays["classes"].astype("U200")
        arrays["classes"][0] = text
        (run / "predictions.npz").write_bytes(write_npz(arrays))
        metrics = json.loads((run / "metrics.json").read_bytes())
        for scored in metrics.values():
            if isinstance(scored, dict) and old in scored.get("classes", {}):
                scored["classes"][text] = scored["classes"].pop(old)
        (run / "metrics.json").write_bytes(write_json(metrics) + b"\n")
        lines = read_lines(run / "trail.jsonl")
        data = lines[0]["data"]
        data["classes"][0] = text
        covered = ("classes", "content", "protocol", "splits", "task")
        data["digest"] = hash_json({name: data[name] for name in covered})
        rechain(run, lines, metrics=metrics, predictions=hash_predictions(arrays))

    return change


def look_for_live_text(folder):
    for file in (folder / "out").iterdir():
        if (live := LIVE.get(file.suffix)) and (found := live.search(file.read_bytes())):
            return f"{file.name} holds {found[0]!r} live"
        if file.suffix in LIVE and re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", file.read_bytes()):
            return f"{file.name} holds a control character"
    return None
