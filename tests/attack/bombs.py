"""Small files that ask for much memory, much time, or a deep stack."""

import json
import os
import struct
import zipfile

import numpy as np

from tests.attack.attack import DETECTED, VALIDATE, VERIFY, Attack
from tests.attack.forging import (
    RECEIPT,
    read_receipt,
    reconfigure,
    seal,
    write_receipt,
)
from tests.attack.formats import (
    read_npz,
    read_safetensors,
    write_npy,
    write_npy_header,
    write_npz,
    write_safetensors,
    write_zip,
)

TB = 1 << 40


def list_attacks(victims):
    """Return the bombs by the file they are in."""
    return [
        *_list_arrays(),
        *_list_tomls(),
        *_list_jsons(),
        *_list_tensors(),
        *_list_sparse(),
        *_list_settings(),
    ]


def _write(name, where, content, resealed=True):
    """Return an attack that writes a file of the run anew; ``content(run)`` returns its bytes."""

    def change(run):
        (run / where).write_bytes(content(run))
        if resealed:
            seal(run)

    return Attack(f"bombs/{where}: {name}", "native", change)


def _list_arrays():
    """Return predictions.npz files that unpack to, or claim, far more than they are."""

    def with_member(member, content, method=zipfile.ZIP_STORED):
        def make(run):
            arrays = read_npz((run / "predictions.npz").read_bytes())
            members = {f"{name}.npy": write_npy(array) for name, array in arrays.items()}
            return write_zip({**members, member: content()}, method)

        return make

    def zeros():
        return write_npy_header("<f8", (1 << 27,)) + bytes(1 << 20) * 1024

    def few_zeros():
        return write_npy_header("<f8", (1 << 21,)) + bytes(1 << 24)

    def claim(descr, shape):
        return lambda: write_npy_header(descr, shape) + bytes(64)

    def nested(depth):
        text = "(" * depth + ")" * depth
        head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {text}, }}"
        return lambda: b"\x93NUMPY\x02\x00" + struct.pack("<I", len(head)) + head.encode()

    def long_header():
        return b"\x93NUMPY\x02\x00" + struct.pack("<I", 0xFFFFFFF0) + b"{" * 1000

    def many_members(run):
        return write_zip({f"x{number}_ids.npy": b"" for number in range(60_000)})

    def overlapping(run):
        """Write many entries of the directory that all name one compressed member."""
        content = write_zip({"a.npy": bytes(1 << 26)}, zipfile.ZIP_DEFLATED)
        end = content.rindex(b"PK\x05\x06")
        start = struct.unpack("<I", content[end + 16 : end + 20])[0]
        entry, count = content[start:end], 5000
        entries = b"".join(entry.replace(b"a.npy", f"{n:05d}"[:5].encode()) for n in range(count))
        tail = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, count, count, len(entries), start, 0)
        return content[:start] + entries + tail

    deflated = zipfile.ZIP_DEFLATED
    path = "predictions.npz"
    return [
        _write("1 GB of zeros, deflated", path, with_member("test_features.npy", zeros, deflated)),
        _write("zeros under another name", path, with_member("x.npy", few_zeros, deflated)),
        _write("zeros in lzma", path, with_member("x.npy", few_zeros, zipfile.ZIP_LZMA)),
        _write("a header of 10^15", path, with_member("test_labels.npy", claim("|u1", (10**15,)))),
        _write("a header of 2^62", path, with_member("test_labels.npy", claim("<f8", (1 << 62,)))),
        _write("a negative shape", path, with_member("test_labels.npy", claim("|u1", (-1, 3)))),
        _write("10^6 dimensions", path, with_member("test_labels.npy", claim("|u1", (1,) * 9999))),
        _write("text of 2^30", path, with_member("task.npy", claim("<U1073741824", ()))),
        _write("an object header", path, with_member("task.npy", claim("|O", (10**9,)))),
        _write("a header of brackets", path, with_member("task.npy", nested(5000))),
        _write("a header of 4 GB", path, with_member("task.npy", long_header)),
        _write("60,000 members", path, many_members),
        _write("5,000 members that are one", path, overlapping),
        _write("deflated, else as it was", path, lambda run: _deflate(run / path)),
        _write("an empty zip file", path, lambda run: b"PK\x05\x06" + bytes(18)),
        _write("a pickle", path, lambda run: _pickle(run)),
        _write("one npy array", path, lambda run: write_npy(np.zeros(3))),
    ]


def _deflate(file):
    return write_npz(read_npz(file.read_bytes()), compress=True)


def _pickle(run):
    """Write a pickle that would create a file when it is loaded."""
    marker = str(run.parents[1] / "executed")
    return b"c__builtin__\nopen\n(V" + marker.encode() + b"\nVw\ntR."


def _list_tomls():
    """Return configurations that take long to read or go deep."""
    texts = {
        "3,000 brackets": "x = " + "[" * 3000 + "]" * 3000,
        "100,000 brackets": "x = " + "[" * 100_000,
        "3,000 inline tables": "x = " + "{a=" * 3000 + "1" + "}" * 3000,
        "50,000 dotted keys": ".".join(["a"] * 50_000) + " = 1",
        "a dotted table": "[" + ".".join(["a"] * 50_000) + "]",
        "10^6 keys": "\n".join(f"k{number} = 1" for number in range(10**6)),
        "100,000 tables": "\n".join(f"[t{number}]" for number in range(100_000)),
        "a million digits": "x = " + "9" * 10**6,
        "a number in base 16": "x = 0x" + "f" * 10**6,
        "a text of 50 MB": 'x = "' + "a" * 50_000_000 + '"',
        "an open text": 'x = """' + "a" * 10**6,
        "invalid UTF-8": "x = '\udcff'",
        "a date": "train = 1979-05-27T07:32:00Z",
        "infinity": "[train]\nrate = inf",
        "NUL": "x = '\x00'",
    }
    return [
        _write(name, "config.toml", lambda run, text=text: text.encode("utf-8", "surrogateescape"))
        for name, text in texts.items()
    ]


def _list_jsons():
    """Return JSON files that go deep or are far too long."""
    deep = b"[" * 200_000 + b"]" * 200_000
    objects = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
    digits = b"9" * 5_000_000
    keys = b"{" + b",".join(b'"k%d":1' % number for number in range(10**6)) + b"}"
    bodies = {
        "200,000 brackets": deep,
        "100,000 objects": objects,
        "five million digits": digits,
        "10^6 keys": keys,
        "60 MB of text": b'"' + b"a" * 60_000_000 + b'"',
    }
    attacks = []
    for name, body in bodies.items():
        for where in ("metrics.json", "log.jsonl", "trail.jsonl"):
            attacks.append(_write(name, where, lambda run, body=body: body + b"\n"))
        for where in (RECEIPT, "light.json", "receipt.dsse.json"):
            attack = _write(name, where, lambda run, body=body: body + b"\n", resealed=False)
            if where == "receipt.dsse.json":
                key = ("--public-key", "{keys}/key.pem.pub")
                attack = Attack(attack.name, "signed", attack.change, (*VALIDATE, *key))
            attacks.append(attack)

    def nest(run, deep):
        value = "x"
        for _ in range(deep):
            value = [value]
        statement = read_receipt(run)
        statement["predicate"]["environment"]["packages"] = value
        write_receipt(run, statement)

    def many_lines(run):
        line = (run / "log.jsonl").read_bytes().splitlines(keepends=True)[0]
        return line * 300_000

    def many_files(run):
        statement = read_receipt(run)
        files = statement["predicate"]["files"]
        files.update({f"checkpoints/epoch-{n:04d}.safetensors": "sha256:" for n in range(200_000)})
        write_receipt(run, statement)

    return [
        *attacks,
        Attack("bombs/receipt.json: a value 150 deep", "native", lambda run: nest(run, 150)),
        Attack("bombs/receipt.json: a value 900 deep", "native", lambda run: nest(run, 900)),
        Attack("bombs/receipt.json: 200,000 files", "native", many_files),
        _write("300,000 lines", "log.jsonl", many_lines),
        _write("10^6 empty lines", "log.jsonl", lambda run: b"\n" * 10**6),
        _write("10^6 empty lines", "trail.jsonl", lambda run: b"\n" * 10**6),
    ]


def _list_tensors():
    """Return safetensors files with headers that claim too much, and metadata that goes deep."""
    checkpoint = "checkpoints/epoch-0002.safetensors"

    def raw(head, size=None, body=b""):
        text = head if isinstance(head, bytes) else json.dumps(head).encode()
        return struct.pack("<Q", len(text) if size is None else size) + text + body

    def meta(text):
        return lambda run: _rewrite_metadata(run / checkpoint, {"seedless": text})

    huge = {"x": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 1 << 42]}}
    product = {"x": {"dtype": "F32", "shape": [1 << 32, 1 << 32], "data_offsets": [0, 0]}}
    overlap = {n: {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]} for n in "abc"}
    many = {f"t{n}": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]} for n in range(200_000)}
    heads = {
        "a header of 10^9": raw(b"{}", size=10**9),
        "a header of 2^63": raw(b"{}", size=1 << 63),
        "a tensor of 4 TB": raw(huge),
        "a shape whose product overflows": raw(product),
        "tensors that overlap": raw(overlap, body=b"abcd"),
        "200,000 tensors": raw(many),
        "a header of brackets": raw(b"[" * 100_000),
        "no header": b"\x00" * 8,
    }
    attacks = [
        _write(name, where, lambda run, content=content: content)
        for name, content in heads.items()
        for where in ("weights.safetensors", checkpoint)
    ]
    metas = {
        "metadata of 100,000 brackets": "[" * 100_000 + "]" * 100_000,
        "metadata of a million digits": "9" * 10**6,
        "metadata that is null": "null",
        "metadata that is a list": "[]",
        "metadata of 10^5 keys": json.dumps({f"k{n}": 1 for n in range(10**5)}),
        "no text": "",
    }
    return attacks + [_write(name, checkpoint, meta(text)) for name, text in metas.items()]


def _rewrite_metadata(file, metadata):
    return write_safetensors(metadata, read_safetensors(file.read_bytes())[1])


def _list_sparse():
    """Return files of a terabyte that take no room on the disk."""

    def grow(where):
        def change(run):
            try:
                os.truncate(run / where, TB)
            except OSError:  # the largest file of this file system is smaller
                os.truncate(run / where, TB >> 4)

        return Attack(f"bombs/{where}: 1 TB of zeros, sparse", "native", change)

    names = ("config.toml", "log.jsonl", "metrics.json", "predictions.npz", RECEIPT)
    more = ("trail.jsonl", "weights.safetensors", "checkpoints/epoch-0001.safetensors")

    def add(name):
        def change(run):
            (run / name).touch()
            os.truncate(run / name, TB >> 4)

        return Attack(f"bombs/{name}: added, 64 GB of zeros, sparse", "native", change)

    return [
        *(grow(name) for name in (*names, *more)),
        *(add(name) for name in ("light.json", "checkpoints/epoch-0003.safetensors", "x")),
    ]


def _list_settings():
    """Return configurations that ask for an unbounded run, with all digests right."""
    settings = [
        ("train", "epochs", 10**12),
        ("train", "epochs", 10**30),
        ("train", "warmup_steps", 10**12),
        ("order", "batch_size", 10**12),
        ("data", "records", 10**12),
        ("data", "size", 10**9),
        ("data", "channels", 10**9),
        ("data", "classes", 10**9),
        ("model", "classes", 10**12),
        ("augment", "padding", 10**12),
        ("execution", "threads", 10**12),
        ("init", "basis", "x" * 10**6),
        ("model", "name", "../../x"),
        ("data", "name", "/dev/zero"),
        ("data", "name", "../../../../etc/passwd.npz"),
    ]
    return [
        Attack(
            f"bombs/config.toml: {section}.{key} = {str(value)[:30]}, executed",
            "native",
            lambda run, setting=(section, key, value): reconfigure(run, *setting),
            VERIFY,
            DETECTED,
        )
        for section, key, value in settings
    ]
