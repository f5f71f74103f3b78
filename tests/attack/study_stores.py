"""Stores and archives of studies: swapped, edited and damaged runs must not be tabulated."""

import io
import json
import lzma
import shutil
import tarfile

from tests.attack.attack import REFUSALS, Attack
from tests.attack.forging import read_receipt, write_receipt
from tests.attack.formats import write_json
from tests.attack.runner import bait
from tests.attack.victims import STUDY

TABLE = ("study", "table", *STUDY, "--store", "{run}")
REPORT = ("study", "report", *STUDY, "--store", "{run}", "--out", "{out}/page.html")
ARCHIVE = ("study", "archive", *STUDY, "--store", "{run}", "--out", "{out}/archive.tar.xz")
UNPACK = ("study", "unpack", "{run}", "--store", "{out}/store")
WRITES = ("target/store/locks*", "target/store/tables*", "target/store/failed*")


def list_attacks(victims):
    """Return the attacks on a store and on an archive."""
    changes = {
        "two runs swapped": _swap,
        "a run in the place of all": _repeat,
        "a score edited in a receipt": _edit_receipt,
        "a score edited in metrics.json": _edit_metrics,
        "weights changed": _append("weights.safetensors"),
        "predictions changed": _append("predictions.npz"),
        "a file added": _add("torch.py"),
        "a receipt that is a list": _replace("receipt.json", b"[]\n"),
        "a receipt of brackets": _replace("receipt.json", b"[" * 200_000),
        "a failure of brackets": _fail(b"[" * 200_000),
        "a failure that is a number": _fail(b"1"),
    }
    attacks = []
    for turn, (name, change) in enumerate(changes.items()):
        chosen = (TABLE, REPORT, ARCHIVE) if turn < 4 else (TABLE,)
        for command in chosen:
            attacks.append(
                Attack(
                    f"stores/{name}, {command[1]}",
                    "store",
                    change,
                    command,
                    writes=WRITES,
                )
            )
    attacks.append(
        Attack(
            "stores/a failure with an escape, table",
            "store",
            _fail(b'{"error": "\\u001b[2JIDENTICAL", "point": "x", "config": {}}'),
            TABLE,
            REFUSALS | {"DONE"},
            reason="a failed run is counted as one; its message must be shown without its effect",
            writes=WRITES,
            terminal=True,
        )
    )
    return attacks + _list_archives()


def _runs(store):
    return sorted((store / "runs").iterdir())


def _swap(store):
    one, two = _runs(store)[:2]
    one.rename(store / "x")
    two.rename(one)
    (store / "x").rename(two)


def _repeat(store):
    first, *others = _runs(store)
    for run in others:
        shutil.rmtree(run)
        shutil.copytree(first, run)


def _edit_receipt(store):
    run = _runs(store)[0]
    statement = read_receipt(run)
    statement["predicate"]["metrics"]["test"]["macro_auc"] = 0.999
    write_receipt(run, statement)


def _edit_metrics(store):
    file = _runs(store)[0] / "metrics.json"
    values = json.loads(file.read_bytes())
    values["test"]["macro_auc"] = 0.999
    file.write_bytes(write_json(values) + b"\n")


def _append(name):
    def change(store):
        with open(_runs(store)[0] / name, "ab") as file:
            file.write(b"x")

    return change


def _add(name):
    def change(store):
        (_runs(store)[0] / name).write_bytes(bait(store.parents[1] / "executed"))

    return change


def _replace(name, content):
    return lambda store: (_runs(store)[0] / name).write_bytes(content)


def _fail(content):
    """Put a record of a failure in the place of a run."""

    def change(store):
        run = _runs(store)[0]
        shutil.rmtree(run)
        (store / "failed").mkdir(exist_ok=True)
        (store / "failed" / f"{run.name}.json").write_bytes(content)

    return change


def _list_archives():
    """Return the attacks on the file of `study archive`."""

    def rewrite(name, change):
        def work(file):
            with tarfile.open(file) as archive:
                members = {
                    info.name: archive.extractfile(info).read()
                    for info in archive.getmembers()
                    if info.isfile()
                }
            file.write_bytes(_pack(change(members) or members))

        return Attack(f"stores/archive: {name}", "archive.tar.xz", work, UNPACK)

    def raw(name, spell):
        return Attack(
            f"stores/archive: {name}",
            "archive.tar.xz",
            lambda file: file.write_bytes(spell(file.read_bytes())),
            UNPACK,
        )

    def keys(members):
        return sorted({name.split("/")[1] for name in members if name.startswith("runs/")})

    def swap_keys(members):
        one, two = keys(members)[:2]
        turned = {one: two, two: one}
        return {
            "/".join(turned.get(part, part) for part in name.split("/")): content
            for name, content in members.items()
        }

    def new_key(members):
        one = keys(members)[0]
        return {name.replace(one, "0" * 16): content for name, content in members.items()}

    def edit(members):
        name = next(name for name in members if name.endswith("metrics.json"))
        members[name] = members[name].replace(b'"macro_auc": 0.', b'"macro_auc": 0.9', 1)

    def add(extra):
        def change(members):
            members[extra] = b"x"

        return change

    def link(file):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            info = tarfile.TarInfo("runs/0123456789abcdef/config.toml")
            info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(info)
        return lzma.compress(buffer.getvalue())

    run = "runs/0123456789abcdef"
    return [
        rewrite("keys swapped", swap_keys),
        rewrite("another key", new_key),
        rewrite("a score edited", edit),
        *(
            rewrite(f"with {name}", add(name))
            for name in ("../escaped", "/tmp/escaped", f"{run}/torch.py", f"{run}/../../x", "x")
        ),
        raw("a link", link),
        raw("256 MB of zeros", lambda content: lzma.compress(bytes(1 << 28), preset=0)),
        raw("cut in half", lambda content: content[: len(content) // 2]),
        raw("one bit", lambda content: content[:500] + bytes([content[500] ^ 1]) + content[501:]),
        raw("empty", lambda content: b""),
        raw("no archive", lambda content: b"\x1b[2J" * 100),
    ]


def _pack(members):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in sorted(members.items()):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return lzma.compress(buffer.getvalue())
