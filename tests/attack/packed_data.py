"""Data packed into a bundle: damaged, mistyped, from outside, or with its splits mixed up."""

import json
from dataclasses import replace

import numpy as np

from tests.attack.attack import DETECTED, VERIFY, Attack
from tests.attack.formats import (
    hash_bytes,
    hash_json,
    read_zip,
    set_at,
    write_json,
    write_npy,
    write_npy_header,
    write_zip,
)

MANIFEST = "data/manifest.json"


def list_attacks(victims):
    """Return the attacks on the data of a bundle; each is executed, since only that reads them."""
    return [*_list_manifests(), *_list_arrays(), *_list_splits()]


def _bundle(name, change, victim="own.zip", allowed=DETECTED, **more):
    def work(file):
        members = read_zip(file.read_bytes())
        change(members)
        file.write_bytes(write_zip(members))

    return Attack(f"packed data/{victim}: {name}", victim, work, VERIFY, allowed, **more)


def _change_manifest(members, change):
    """Let ``change(manifest)`` work on the manifest, and write it with its own digest."""
    manifest = json.loads(members[MANIFEST])
    manifest.pop("seal")
    manifest = change(manifest) or manifest
    if isinstance(manifest, dict):
        manifest["seal"] = hash_json(manifest)
    members[MANIFEST] = write_json(manifest)


def _list_manifests():
    """Return manifests with wrong types, names from outside, and bombs."""

    def set_to(*path, to):
        def change(manifest):
            return set_at(manifest, path, to)

        name = f"{'.'.join(map(str, path))} is {str(to)[:20]!r}"
        return _bundle(name, lambda members: _change_manifest(members, change))

    def raw(name, content):
        return _bundle(name, lambda members: members.update({MANIFEST: content}))

    def point_outside(name):
        """Let the manifest name an array that lies outside the bundle."""

        def change(members):
            digest = hash_bytes(members["data/Y.npy"])
            _change_manifest(members, lambda m: m["arrays"].update({name: digest}))

        return _bundle(f"an array {name}", change)

    return [
        set_to("arrays", to=[]),
        set_to("protocol", to={"train": [1]}),
        set_to("protocol", 0, to="train"),
        set_to("samples", "bytes", to="12928"),
        set_to("samples", "mtime_ns", to=10**30),
        set_to("values", "classes", to="01"),
        set_to("values", "classes", to=["\x1b[2J", "\u202e"]),
        set_to("values", "fs", to="fast"),
        raw("a manifest of brackets", b"[" * 100_000),
        raw(
            "a manifest of 10^6 keys", b"{" + b",".join(b'"%d":1' % n for n in range(10**6)) + b"}"
        ),
        point_outside("../../../work/torch"),
        point_outside("/etc/passwd"),
    ]


def _list_arrays():
    """Return arrays that are damaged, of another type, or larger than they say."""

    def replace_array(name, what, content):
        def change(members):
            members[f"data/{name}.npy"] = content
            digest = hash_bytes(content)
            if name == "X":
                _change_manifest(members, lambda m: m["samples"].update(bytes=len(content)))
            else:
                _change_manifest(members, lambda m: m["arrays"].update({name: digest}))

        return _bundle(f"{name}.npy: {what}", change)

    def flip(members):
        content = bytearray(members["data/X.npy"])
        content[-1] ^= 1
        members["data/X.npy"] = bytes(content)

    objects = write_npy(np.array([{}, None], dtype=object))
    return [
        _bundle("X.npy: one bit", flip),
        replace_array("X", "claims 10^15 bytes", write_npy_header("|u1", (10**15,)) + bytes(64)),
        replace_array("X", "objects", objects),
        replace_array("Y", "objects", objects),
        replace_array("folds", "other folds", write_npy(np.arange(50) % 9 + 1)),
        replace_array("ids", "escapes", write_npy(np.array([f"\x1b[{n}m" for n in range(50)]))),
        replace_array("content", "zeros", write_npy(np.zeros((50, 32), "u1"))),
        replace(
            replace_array("sex", "an array more", write_npy(np.array(["F"] * 50))),
            allowed=DETECTED | {"IDENTICAL"},
            reason="sex, age and patients are no part of the data's digest; no score uses them",
        ),
    ]


def _list_splits():
    """Return data whose splits overlap, or are not those of the claim."""

    def protocol(name, splits, victim="own.zip"):
        def change(members):
            _change_manifest(members, lambda manifest: manifest.update(protocol=splits))

        return _bundle(f"splits: {name}", change, victim)

    def hide_repetition(members):
        """Claim that no record is in two splits, wherever that is written down."""
        lines = [json.loads(line) for line in members["trail.jsonl"].splitlines()]
        repeated = lines[0]["data"]["repeated"]
        lines[0]["data"]["repeated"] = dict.fromkeys(repeated, 0)
        previous = "sha256:" + 64 * "0"
        for line in lines:
            line.pop("digest")
            line["previous"] = previous
            line["digest"] = previous = hash_json(line)
        members["trail.jsonl"] = b"".join(write_json(line) + b"\n" for line in lines)
        statement = json.loads(members["receipt.json"])
        predicate = statement["predicate"]
        predicate["data"] = lines[0]["data"]
        predicate["trail"]["head"] = previous
        predicate["files"]["trail.jsonl"] = hash_bytes(members["trail.jsonl"])
        predicate.pop("digest")
        predicate["digest"] = hash_json(statement)
        members["receipt.json"] = write_json(statement) + b"\n"

    folds = list(range(1, 11))
    return [
        protocol("all folds train, one tests", [["train", folds], ["val", [9]], ["test", [10]]]),
        protocol("test and train swapped", [["train", [10]], ["val", [9]], ["test", folds[:8]]]),
        protocol("no test", [["train", folds[:9]], ["val", [10]]]),
        protocol("a split more", [["train", folds[:8]], ["val", [9]], ["test", [10]], ["x", [1]]]),
        protocol("test twice", [["train", folds[:8]], ["val", [9]], ["test", [10]], ["test", [1]]]),
        protocol("of simulated data", [["train", folds], ["test", [10]]], "data.zip"),
        _bundle("test records among the training records, denied", hide_repetition, "leaky.zip"),
        _bundle(
            "test records among the training records, said",
            lambda members: None,
            "leaky.zip",
            DETECTED | {"IDENTICAL"},
            reason="the configuration accepts the repetition, and the first line states it",
            says=("5 records",),
        ),
    ]
