"""Bundles with other names, other members, other bytes; and archives that are no bundles."""

import io
import json
import stat
import struct
import zipfile

from tests.attack.attack import SIGNED, VALIDATE, VERIFY, Attack
from tests.attack.formats import hash_bytes, hash_json, make_info, read_zip, write_json, write_zip
from tests.attack.runner import BAIT, bait

SIGNED_BUNDLE = ("signed.zip", SIGNED)
PLAIN_BUNDLE = ("bundle.zip", VALIDATE)
SOURCE = "source/seedless/__init__.py"
DEFLATED = zipfile.ZIP_DEFLATED


def list_attacks(victims):
    """Return the attacks on bundles."""
    return [
        *_list_members(),
        *_list_names(),
        *_list_bytes(victims / "bundle.zip"),
        *_list_archives(),
        *_list_resealed(),
    ]


def _rewrite(name, change, kind=SIGNED_BUNDLE, **more):
    """Return an attack that packs the bundle again; ``change(members)`` works on bytes by name."""
    victim, command = kind

    def work(file):
        members = read_zip(file.read_bytes())
        content = change(members) or members
        file.write_bytes(content if isinstance(content, bytes) else write_zip(content))

    return Attack(f"bundles/{victim}: {name}", victim, work, more.pop("command", command), **more)


def _list_members():
    """Return additions to, and losses from, a signed bundle."""
    added = (
        *("source/torch.py", "source/seedless/extra.py", "source/seedless/extra.so", "source/x/y"),
        *("source/seedless/__pycache__/x.pyc", "source/seedless/configs/x.toml", "data/X.npy"),
        *("data/manifest.json", "data/torch.py", "torch.py", "sitecustomize.py", "notes.txt"),
        *("checkpoints/epoch-0009.safetensors", "checkpoints/x.py", ".hidden", "run/config.toml"),
        *("receipt.json/x", "light.json", ".lock", "conftest.py", "x.pth", "source", "data"),
    )

    def remove(*prefixes):
        def change(members):
            return {n: c for n, c in members.items() if not n.startswith(prefixes)}

        return change

    def move_source(members):
        return {n.replace("source/seedless/", "source/other/"): c for n, c in members.items()}

    def change_source(members):
        members[SOURCE] += b"\n# changed\n"

    def plant(members):
        for name in BAIT:
            members[f"source/{name}.py"] = members[f"data/{name}.py"] = bait("executed")

    def page(members):
        members["report.html"] = b"<script>alert(1)</script>IDENTICAL"

    def envelope(members):
        members["receipt.dsse.json"] = members["receipt.dsse.json"].replace(b"A", b"B", 1)

    return [
        *(_rewrite(f"with {name}", _add(name)) for name in added),
        *(_rewrite(f"with {name}", _add(name), PLAIN_BUNDLE) for name in added[:7:3]),
        _rewrite("without its source", remove("source/")),
        _rewrite("without one file of its source", remove(SOURCE)),
        _rewrite("without the weights", remove("weights.safetensors")),
        _rewrite("without the checkpoints", remove("checkpoints/")),
        _rewrite("without the receipt", remove("receipt.json")),
        _rewrite("without the signature", remove("receipt.dsse.json")),
        _rewrite("empty", lambda members: {"x": b""}),
        _rewrite("its source moved", move_source),
        _rewrite("its source changed", change_source),
        _rewrite("its source changed", change_source, PLAIN_BUNDLE),
        _rewrite("a changed signature", envelope),
        _rewrite("modules everywhere", plant, command=VERIFY),
        _rewrite("a planted report.html", page),
    ]


def _add(name):
    def change(members):
        members[name] = b"added"

    return change


def _list_names():
    """Return members with names that lead out of the folder, and members that are no files."""
    names = (
        *("../escaped", "../../work/escaped", "/tmp/escaped", "a/../../escaped", "./escaped"),
        *("C:\\escaped", "..\\escaped", "a//b", "a/./b", "source/../escaped", "data/../../escaped"),
        *("x\x00.txt", "x\n.txt", "\x1b[31m", "x" * 5000, "a/" * 3000 + "x", "caf\u00e9", " ", ""),
        *("config.toml/", "CONFIG.TOML", "data/..", "source/", "\u202ex"),
    )
    attacks = [_rewrite(f"a member {name[:30]!r}", _add_pair(name), PLAIN_BUNDLE) for name in names]
    kinds = {
        "a link": (stat.S_IFLNK | 0o777, b"/etc/passwd"),
        "a link out": (stat.S_IFLNK | 0o777, b"../../../work"),
        "a pipe": (stat.S_IFIFO | 0o644, b""),
        "a device": (stat.S_IFCHR | 0o644, b""),
        "a folder": (stat.S_IFDIR | 0o755, b""),
        "an executable file": (stat.S_IFREG | 0o4755, b"x"),
    }
    for what, (mode, content) in kinds.items():
        for name in ("data/x", "config.toml"):
            attacks.append(
                _rewrite(f"{name} is {what}", _set_mode(name, mode, content), PLAIN_BUNDLE)
            )
    return attacks


def _add_pair(name):
    def change(members):
        return write_zip([*members.items(), (make_info(name), b"escaped")])

    return change


def _set_mode(name, mode, content):
    def change(members):
        body = content if name not in members or content else members[name]
        members.pop(name, None)
        return write_zip([*members.items(), (make_info(name, mode), body)])

    return change


def _list_bytes(bundle):
    """Return flips and cuts of a bundle's bytes."""
    size = bundle.stat().st_size

    def flip(place):
        def change(file):
            content = bytearray(file.read_bytes())
            content[place] ^= 0x10
            file.write_bytes(content)

        return Attack(f"bundles/bundle.zip: bit 16 of byte {place}", "bundle.zip", change)

    def cut(part):
        def change(file):
            file.write_bytes(file.read_bytes()[: int(part * size)])

        return Attack(f"bundles/bundle.zip: cut to {part:.0%}", "bundle.zip", change)

    # The content of some members, and of fewer their head, name and checksum.
    places = []
    with zipfile.ZipFile(bundle) as archive:
        for number, info in enumerate(archive.infolist()):
            name, content = info.header_offset + 30, info.header_offset + 30 + len(info.filename)
            if info.file_size and number % 40 == 0:
                places.append(content + info.file_size // 2)
            if number % 120 == 0:
                places += [info.header_offset, name, info.header_offset + 14]
        # In the directory: an entry's mark, checksum, size, name and place of its member.
        start = archive.start_dir
    places += [
        start,
        start + 16,
        start + 24,
        start + 42,
        start + 46,
        size - 22,
        size - 12,
        size - 6,
    ]
    return [
        *(flip(place) for place in dict.fromkeys(places)),
        *(cut(part) for part in (0.0001, 0.01, 0.25, 0.5, 0.9, 0.999999)),
    ]


def _list_archives():
    """Return zip files that are bombs, contradict themselves, or are something else."""

    def bomb(members):
        members["data/X.npy"] = bytes(1 << 28)
        return write_zip(members, DEFLATED)

    def deflate(members):
        return write_zip(members, DEFLATED)

    def many(members):
        return write_zip({**members, **{f"data/{number}": b"" for number in range(50_000)}})

    def twice(members):
        return write_zip([*members.items(), ("config.toml", b"x = 1\n")])

    def overlap(members):
        """Let many entries of the directory name the same compressed member."""
        content = write_zip({**members, "data/00000": bytes(1 << 26)}, DEFLATED)
        end = content.rindex(b"PK\x05\x06")
        count, _, start = struct.unpack("<HII", content[end + 10 : end + 20])
        directory = content[start:end]
        last = directory[directory.rindex(b"PK\x01\x02") :]
        more = b"".join(last.replace(b"data/00000", b"data/%05d" % n) for n in range(1, 2000))
        directory += more
        tail = (b"PK\x05\x06", 0, 0, count + 1999, count + 1999, len(directory), start, 0)
        return content[:start] + directory + struct.pack("<4sHHHHIIH", *tail)

    def wrong_size(members):
        content = bytearray(write_zip(members))
        place = content.index(b"config.toml") - 30 + 18
        content[place : place + 8] = struct.pack("<II", 5, 5)
        return bytes(content)

    def encrypted(members):
        content = bytearray(write_zip(members))
        for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            content[content.index(mark) + offset] |= 1
        return bytes(content)

    def comment(members):
        buffer = io.BytesIO(write_zip(members))
        with zipfile.ZipFile(buffer, "a") as archive:
            archive.comment = b"\x1b[2JIDENTICAL"
        return buffer.getvalue()

    def prefix(members):
        return b"#!/bin/sh\n" + write_zip(members)

    def append(members):
        return write_zip(members) + b"appended"

    def in_front(members):
        return write_zip({"x": b"y"}) + write_zip(members)

    changes = {
        "256 MB of zeros in the data": bomb,
        "compressed": deflate,
        "50,000 members": many,
        "config.toml twice": twice,
        "2,000 members that are one": overlap,
        "a local size that is not the directory's": wrong_size,
        "an encrypted member": encrypted,
        "a comment with an escape": comment,
        "a script in front": prefix,
        "bytes after the end": append,
        "another zip file in front": in_front,
        "a text file": lambda members: b"PK\x03\x04 or not",
        "a zip file in a zip file": lambda members: write_zip({"bundle.zip": write_zip(members)}),
        "zeros": lambda members: bytes(10_000),
    }
    return [_rewrite(name, change, PLAIN_BUNDLE) for name, change in changes.items()]


def _list_resealed():
    """Return bundles whose receipt was written anew for the files that were changed."""

    def reseal(members):
        statement = json.loads(members["receipt.json"])
        predicate = statement["predicate"]
        predicate["files"] = {
            n: hash_bytes(c)
            for n, c in members.items()
            if not n.startswith(("source/", "data/", "receipt."))
        }
        predicate.pop("digest")
        predicate["digest"] = hash_json(statement)
        members["receipt.json"] = write_json(statement) + b"\n"

    def change(name, content):
        def work(members):
            members[name] = content
            reseal(members)

        return work

    def change_source(members):
        members[SOURCE] += b"\n"

    def list_source(members):
        """List the source among the files of the run, so that digests cover what was changed."""
        members["source/torch.py"] = bait("executed")
        statement = json.loads(members["receipt.json"])
        predicate = statement["predicate"]
        predicate["files"]["source/torch.py"] = hash_bytes(members["source/torch.py"])
        predicate.pop("digest")
        predicate["digest"] = hash_json(statement)
        members["receipt.json"] = write_json(statement) + b"\n"

    return [
        _rewrite("torch.py, listed", change("torch.py", b"x"), PLAIN_BUNDLE),
        _rewrite("torch.py, listed, executed", change("torch.py", b"x"), ("bundle.zip", VERIFY)),
        _rewrite("torch.py, listed, signed before", change("torch.py", b"x")),
        _rewrite("another metrics.json", change("metrics.json", b"{}\n"), PLAIN_BUNDLE),
        _rewrite("its source changed, executed", change_source, ("bundle.zip", VERIFY)),
        _rewrite("source listed as a file of the run", list_source, PLAIN_BUNDLE),
        _rewrite("report.html, listed", change("report.html", b"x"), PLAIN_BUNDLE),
    ]
