"""A signed bundle holds what its receipt implies: any addition, removal or change is refused."""

import io
import json
import zipfile

import numpy as np
import pytest

import seedless
from seedless.core.config import parse_config
from seedless.core.digests import canonical_json, digest_value
from seedless.core.errors import RunError
from seedless.proof.bundle import FIRST_DATE
from seedless.proof.keys import make_key, public_path
from seedless.proof.receipt import ATTESTATIONS
from seedless.proof.signature import sign_receipt
from seedless.runs.bundled_run import bundle
from seedless.runs.train import train_run
from tests.forgery import seal
from tests.tiny import copy_run, fit_run, flags_restored

SMALL = {
    "data": {"name": "simulated", "preset": "tiny"},
    "model": {"name": "baseline", "small": True},
    "order": {"batch_size": 64},
    "train": {"epochs": 1, "warmup_steps": 0, "checkpoint_every": 1},
    "execution": {"device": "cpu", "threads": 1},
}
INIT, NEW = "source/seedless/__init__.py", "source/seedless/data/new.py"


@pytest.fixture(scope="module")
def key(tmp_path_factory):
    return make_key(tmp_path_factory.mktemp("key") / "key.pem")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    with flags_restored():
        return fit_run(tmp_path_factory.mktemp("bundle") / "run", train={"epochs": 1})


@pytest.fixture(scope="module")
def plain(fitted, key, tmp_path_factory):
    """The files of a signed bundle without data, by name."""
    return make_bundle(copy_run(fitted, tmp_path_factory.mktemp("plain") / "run"), key)


@pytest.fixture(scope="module")
def packed(key, tmp_path_factory):
    """The files of a signed bundle with its data."""
    with flags_restored():
        run = train_run(parse_config(SMALL), tmp_path_factory.mktemp("packed") / "run").path
    return make_bundle(run, key, with_data=True)


def make_bundle(run, key, **options):
    sign_receipt(run, key)
    bundle(run, run.parent / "run.zip", **options)
    return read_zip(run.parent / "run.zip")


def read_zip(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_zip(path, files):
    with zipfile.ZipFile(path, "w") as archive:
        for name in sorted(files):
            archive.writestr(zipfile.ZipInfo(name, FIRST_DATE), files[name])
    return path


def refuse(path, key):
    """Return why a bundle is invalid, which it must be with the key of its signer."""
    verdict = seedless.verify(path, validate_only=True, public_key=key and public_path(key))
    assert verdict.outcome == "invalid"
    return " ".join([verdict.sentence, *verdict.details])


@pytest.mark.parametrize("kind", ["plain", "packed"])
def test_an_intact_bundle_is_consistent(request, tmp_path, key, kind):
    """The control of all refusals below: the same files, written in the same way."""
    files = request.getfixturevalue(kind)
    path = write_zip(tmp_path / "a.zip", files)
    verdict = seedless.verify(path, validate_only=True, public_key=public_path(key))
    assert verdict.outcome == "consistent", (verdict.sentence, verdict.details)
    assert {name.split("/")[0] for name in files} >= {"source", "receipt.dsse.json"}
    assert ("data/manifest.json" in files) == (kind == "packed")


@pytest.mark.parametrize(
    "name",
    [
        *(NEW, "source/seedless/core/fast.so", "source/torch.py", "source/seedless/x/__init__.py"),
        *("source/seedless/__pycache__/a.py", "source/seedless/core/py.typed", "source/setup.py"),
        *("source/seedless.py", "source/seedless/a.pyc", "source/sitecustomize.py"),
        *("report.html", "progress.png", ".lock", "light.json", "notes.txt", "torch.py"),
        *("data/manifest.json", "data/X.npy", "data/torch.py", "bundle.json", "more/a.txt"),
        *("checkpoints/epoch-0009.safetensors", "checkpoints/torch.py", "run/receipt.json"),
    ],
)
def test_an_addition_is_refused(plain, tmp_path, key, name):
    assert name not in plain
    why = refuse(write_zip(tmp_path / "a.zip", {**plain, name: b"print('added')\n"}), key)
    assert name in why or "the source in" in why or "manifest.json" in why


@pytest.mark.parametrize("name", [NEW, "report.html", "data/X.npy"])
def test_an_addition_is_refused_without_a_key_too(plain, tmp_path, name):
    assert "a.zip" in refuse(write_zip(tmp_path / "a.zip", {**plain, name: b"added"}), None)


def change(files, name, content=None):
    """Return the files with one of them changed; by default a comment is added to it."""
    assert name in files
    return {**files, name: files[name] + b"\n# changed\n" if content is None else content}


def rename(files, old, new):
    """Return the files with the beginning of some names changed."""
    return {f"{new}{n[len(old) :]}" if n.startswith(old) else n: files[n] for n in files}


SOURCE_CHANGES = {
    "changed": lambda files: change(files, INIT),
    "a file dropped": lambda files: {n: files[n] for n in files if n != INIT},
    "dropped": lambda files: {n: files[n] for n in files if not n.startswith("source/")},
    "moved": lambda files: rename(files, "source/seedless/", "source/other/"),
    "moved up": lambda files: rename(files, "source/seedless/", "source/"),
    "moved and changed": lambda files: rename(change(files, INIT), "source/", "source/src/"),
    "a file moved": lambda files: rename(files, INIT, NEW),
    "py.typed filled": lambda files: change(files, "source/seedless/py.typed"),
    "a copy beside it": lambda files: files | {"source/seedless2/__init__.py": files[INIT]},
}


@pytest.mark.parametrize("what", SOURCE_CHANGES)
def test_another_source_is_refused(plain, tmp_path, key, what):
    files = SOURCE_CHANGES[what](plain)
    assert "source" in refuse(write_zip(tmp_path / "a.zip", files), key)


def change_manifest(files, edit):
    """Return the files with a manifest that was changed, and whose own digest is right."""
    manifest = json.loads(files["data/manifest.json"])
    del manifest["seal"]
    edit(manifest)
    manifest["seal"] = digest_value(manifest)
    return {**files, "data/manifest.json": canonical_json(manifest)}


def change_samples(files):
    content = bytearray(files["data/X.npy"])
    content[-1] ^= 1
    return {**files, "data/X.npy": bytes(content)}


def swap_folds(files):
    """Let two records change their folds, and the manifest agree with that."""
    folds = np.load(io.BytesIO(files["data/folds.npy"]))
    one, two = 0, int(np.flatnonzero(folds != folds[0])[0])
    folds[[one, two]] = folds[[two, one]]
    buffer = io.BytesIO()
    np.save(buffer, folds)
    return change(files, "data/folds.npy", buffer.getvalue())


DATA_CHANGES = {
    "samples": change_samples,
    "folds": swap_folds,
    "an array added": lambda files: {**files, "data/Z.npy": files["data/folds.npy"]},
    "an array dropped": lambda files: {n: files[n] for n in files if n != "data/ids.npy"},
    "no manifest": lambda files: {n: files[n] for n in files if n != "data/manifest.json"},
    "a folder in it": lambda files: {**files, "data/more/X.npy": files["data/X.npy"]},
    "another digest": lambda files: change_manifest(
        files, lambda manifest: manifest.update(digest="sha256:" + 64 * "0")
    ),
    "code": lambda files: {**files, "data/numpy.py": b"print('added')\n"},
}


@pytest.mark.parametrize("what", DATA_CHANGES)
def test_other_data_are_refused(packed, tmp_path, key, what):
    """Also here, where this machine computes the data itself and does not need the packed ones."""
    why = refuse(write_zip(tmp_path / "a.zip", DATA_CHANGES[what](packed)), key)
    assert "data" in why or "manifest" in why


def test_the_data_of_another_run_are_refused(plain, packed, tmp_path, key):
    data = {name: packed[name] for name in packed if name.startswith("data/")}
    why = refuse(write_zip(tmp_path / "a.zip", plain | data), key)
    assert "are not those its receipt names" in why


@pytest.mark.parametrize("place", ["before", "after", "comment", "between"])
def test_bytes_outside_the_files_are_refused(plain, tmp_path, key, place):
    path = write_zip(tmp_path / "a.zip", plain)
    content = path.read_bytes()
    if place == "before":
        path.write_bytes(b"PK\x03\x04 something else" + content)
    elif place == "after":
        path.write_bytes(content + b"#!/bin/sh\n")
    elif place == "comment":
        with zipfile.ZipFile(path, "a") as archive:
            archive.comment = b"a comment"
    else:  # a file that is in the archive, and not in its list
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr(zipfile.ZipInfo("torch.py", FIRST_DATE), b"print('added')\n")
            archive.filelist.pop()
    assert "a.zip" in refuse(path, key)


def test_attestations_in_a_bundle_are_about_its_run(plain, tmp_path, key):
    for name in ATTESTATIONS:
        why = refuse(write_zip(tmp_path / "a.zip", {**plain, name: b"{}"}), key)
        assert name in why


def test_a_run_that_is_not_what_its_receipt_says_is_not_bundled(fitted, tmp_path):
    run = copy_run(fitted, tmp_path / "run")
    (run / "torch.py").write_text("added")
    seal(run)
    with pytest.raises(RunError, match="not what its receipt says"):
        bundle(run, tmp_path / "a.zip")
    assert not (tmp_path / "a.zip").exists()


def test_pages_for_people_stay_outside(fitted, tmp_path):
    run = copy_run(fitted, tmp_path / "run")
    for name in ("report.html", "progress.png", ".lock"):
        (run / name).write_text("for people")
    bundle(run, tmp_path / "a.zip")
    assert not {"report.html", "progress.png", ".lock"} & {*read_zip(tmp_path / "a.zip")}
