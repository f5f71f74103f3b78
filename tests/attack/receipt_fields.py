"""Every field of a receipt changed, dropped or given another type, and the receipt sealed again."""

import json
from dataclasses import replace

from tests.attack.attack import REFUSALS, UNDECIDED, VERIFY, Attack
from tests.attack.byte_changes import STRIPPED
from tests.attack.forging import RECEIPT, read_receipt, seal_note, write_receipt
from tests.attack.formats import (
    alter,
    drop_at,
    hash_json,
    list_leaves,
    look_up,
    set_at,
    write_json,
)

# Claims that no other file of the run repeats, so that only executing the run can contradict them.
# The reason stands beside each.
UNCHECKED = {
    (
        "predicate",
        "weights",
        "md5",
    ): "over parameters in the model's order, which no file holds",
}
# Claims about the beginning of a run. A stripped run has no trail that repeats them: executing it
# writes line 0 from them, and the last digest of the chain is another one.
BEGINNING = (
    ("predicate", "data", "digest"),
    ("predicate", "data", "records", "train"),
    ("predicate", "initialization", "basis"),
    ("predicate", "initialization", "weights"),
    ("predicate", "model", "parameters"),
    ("predicate", "source", "version"),
    ("predicate", "trail", "head"),
    ("predicate", "schedule"),
    ("predicate", "files", "trail.jsonl"),
)
CONFUSIONS = (None, True, -1, 10**30, 1e308, "", "x", [], {}, [[]], {"": None})


def list_attacks(victims):
    """Return the attacks on the fields of receipts."""
    attacks = []
    for victim in ("native", "stripped", "fit"):
        leaves = [path for path, _ in list_leaves(read_receipt(victims / victim))]
        attacks += [
            _set(victim, path, "changed", alter)
            for path in _choose(leaves, victim)
            if victim != "stripped" or not _is_beginning(path)
        ]
    attacks += [_execute_stripped(path) for path in BEGINNING]
    statement = read_receipt(victims / "native")
    nodes = sorted({path[:n] for path, _ in list_leaves(statement) for n in range(1, 4)}, key=str)
    nodes = [path for path in nodes if len(path) <= 2 or not _is_repetitive(path)]
    nodes.remove(("predicate", "digest"))  # computed anew for each of these
    for turn, path in enumerate(nodes):
        attacks.append(_drop(path))
        wrong = CONFUSIONS[turn % len(CONFUSIONS)]
        if write_json(look_up(statement, path)) != write_json(wrong):
            attacks.append(_set("native", path, f"is {wrong!r}", lambda _, wrong=wrong: wrong))
    return attacks + _list_forms()


def _execute_stripped(path):
    attack = _set("stripped", path, "changed, executed", alter)
    return replace(attack, command=VERIFY, allowed=UNDECIDED)


def _is_beginning(path):
    facts = ("data", "initialization", "model", "source", "schedule", "trail", "files")
    return path[1:2] and path[1] in facts and path[-1] not in STRIPPED


def _is_repetitive(path):
    return path[1] in ("metrics", "environment", "files") and len(path) > 2


def _choose(leaves, victim):
    """Return the leaves to change: all but a sample of the scores, which one check covers."""
    scores = [p for p in leaves if p[:2] == ("predicate", "metrics")]
    machine = [p for p in leaves if p[:2] == ("predicate", "environment")]
    own = {*scores, *machine, ("predicate", "digest")}
    others = [p for p in leaves if p not in own] + machine[::4]
    if victim != "native":
        others = [p for p in others if p[1:2] not in (("environment",), ("config",))][::2]
    return others + scores[:: 7 if victim == "native" else 23]


def _set(victim, path, what, new):
    def change(run):
        statement = read_receipt(run)
        _write(run, set_at(statement, path, new(look_up(statement, path))))

    reason = UNCHECKED.get(path, "") if what == "changed" else ""
    return Attack(
        f"receipt/{victim}: {'.'.join(map(str, path))} {what}",
        victim,
        change,
        allowed=REFUSALS | ({"CONSISTENT"} if reason else set()),
        reason=reason,
    )


def _write(run, statement):
    """Write a receipt with its digest where it can have one, and the note of a stripped run."""
    if isinstance(statement, dict) and isinstance(statement.get("predicate"), dict):
        write_receipt(run, statement)
        if (run / "light.json").exists():
            seal_note(run)
    else:
        (run / RECEIPT).write_bytes(write_json(statement) + b"\n")


def _drop(path):
    def change(run):
        _write(run, drop_at(read_receipt(run), path))

    return Attack(f"receipt/native: without {'.'.join(map(str, path))}", "native", change)


def _list_forms():
    """Return receipts whose content is right and whose form is not."""

    def form(what, spell):
        def change(run):
            content = (run / RECEIPT).read_bytes()
            (run / RECEIPT).write_bytes(spell(content))

        return Attack(f"receipt/native: {what}", "native", change)

    def spell_spaced(content):
        return json.dumps(json.loads(content), indent=1).encode()

    def repeat_key(content):
        return content.replace(b'{"_type"', b'{"_type":"x","_type"', 1)

    def add_field(path, name):
        def change(run):
            statement = read_receipt(run)
            look_up(statement, path)[name] = "IDENTICAL: trust me"
            _write(run, statement)

        where = ".".join((*path, name))
        return Attack(f"receipt/native: with {where}, which no schema has", "native", change)

    def claim_schema(schema):
        def change(run):
            statement = read_receipt(run)
            statement["predicate"]["schema"] = schema
            _write(run, statement)

        return Attack(f"receipt/native: schema {schema!r}", "native", change)

    def wrong_digest(run):
        statement = read_receipt(run)
        statement["predicate"]["digest"] = hash_json("x")
        (run / RECEIPT).write_bytes(write_json(statement) + b"\n")

    return [
        form("indented", spell_spaced),
        form("a key twice", repeat_key),
        form("a byte order mark first", lambda content: b"\xef\xbb\xbf" + content),
        form("in UTF-16", lambda content: content.decode().encode("utf-16")),
        form("a NaN", lambda content: content.replace(b'"entries":3', b'"entries":NaN')),
        form("numbers with exponents", lambda c: c.replace(b'"entries":3', b'"entries":3e0')),
        form("in a list", lambda content: b"[" + content.strip() + b"]\n"),
        form("the word null", lambda content: b"null\n"),
        form("invalid UTF-8", lambda content: content.replace(b"Statement", b"\xff\xfe")),
        form("two receipts", lambda content: content * 2),
        Attack("receipt/native: another digest of its own", "native", wrong_digest),
        *(add_field(path, "note") for path in ((), ("predicate",), ("predicate", "weights"))),
        *(add_field(("predicate", "config"), name) for name in ("values2", "\x1b[31m")),
        *(claim_schema(schema) for schema in ("0.9", "99.0", "1.0.0", "x", "-1.0", "1")),
    ]
