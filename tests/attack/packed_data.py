"""Data packed into a bundle: damaged, mistyped, from outside, or with its splits mixed up."""

import json
from dataclasses import replace

import numpy as np

from tests.attack.attack import DETECTED, REFUSALS, UNDECIDED, VERIFY, Attack
from tests.attack.formats import (
    alter,
    drop_at,
    hash_bytes,
    hash_json,
    list_leaves,
    look_up,
    read_zip,
    set_at,
    write_json,
    write_npy,
    write_npy_header,
    write_zip,
)

MANIFEST = "data/manifest.json"
CONFUSIONS = (None, True, -1, 10**30, "", "x", [], {}, [[]], 1.5)


def list_attacks(victims):
    """Return the attacks on the data of a bundle; each is executed, since only that reads them."""
    manifest = json.loads(read_zip((victims / "own.zip").read_bytes())[MANIFEST])
    paths = sorted({p[:n] for p, _ in list_leaves(manifest) for n in (1, 2, 3) if p[:n]}, key=str)
    attacks = []
    for turn, path in enumerate(paths[:: max(1, len(paths) // 24)]):
        wrong = CONFUSIONS[turn % len(CONFUSIONS)]
        attacks.append(_edit(f"{'.'.join(map(str, path))} is {wrong!r}", path, wrong))
    return [*attacks, *_list_manifests(), *_list_arrays(), *_list_splits()]


def _bundle(name, change, victim="own.zip", allowed=DETECTED):
    def work(file):
        members = read_zip(file.read_bytes())
        change(members)
        file.write_bytes(write_zip(members))

    return Attack(f"packed data/{victim}: {name}", victim, work, VERIFY, allowed)


def _seal(members, manifest):
    """Write a manifest with its own digest."""
    manifest.pop("seal", None)
    manifest["seal"] = hash_json(manifest)
    members[MANIFEST] = write_json(manifest)


def _read(members):
    manifest = json.loads(members[MANIFEST])
    manifest.pop("seal")
    return manifest
