"""Runs of a study in one file: stripped, checked on unpacking, and executed again elsewhere."""

import io
import json
import lzma
import shutil
import tarfile

import pytest

from seedless.audit.verification import verify
from seedless.core.errors import RunError, StudyError
from seedless.runs.opened_run import load
from seedless.runs.validation import validate
from seedless.studies.engine.findings import (
    PROOF_FORM,
    prove_run,
    read_finding,
    write_finding,
)
from seedless.studies.engine.grid import Point
from seedless.studies.engine.run_archive import unpack_run_archive, write_run_archives
from seedless.studies.engine.store import Store
from seedless.studies.engine.worker import work_through
from tests.studies.tiny_grids import make_config, make_tiny_grid

LEFT_OUT = {"checkpoints/epoch-0001.safetensors", "trail.jsonl", "weights.safetensors"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store of two finished runs and a failed one, and its points."""
    folder = tmp_path_factory.mktemp("store")
    failing = Point("dct", "seed 9", make_config(train={"rate": 1e30}))
    points = [*make_tiny_grid().points[:2], failing]
    store = Store(folder)
    work_through(store, points)
    assert [store.state(point) for point in points] == ["done", "done", "failed"]
    return store, points


@pytest.fixture(scope="module")
def archive(made, tmp_path_factory):
    store, points = made
    out = tmp_path_factory.mktemp("archive") / "study.tar.xz"
    (found,) = write_run_archives(store, points, out)
    return found


@pytest.fixture
def unpacked(made, archive, tmp_path):
    """Another store that the archive was unpacked into."""
    store = Store(tmp_path / "elsewhere")
    unpack_run_archive(archive.file, store)
    return store, made[1]


def test_the_same_runs_give_the_same_bytes(made, archive, tmp_path):
    store, points = made
    (again,) = write_run_archives(store, points[::-1], tmp_path / "again.tar.xz")
    assert again.digest == archive.digest
    (fewer,) = write_run_archives(store, points[:1], tmp_path / "fewer.tar.xz")
    assert fewer.digest != archive.digest


def test_what_was_made_is_found_elsewhere(made, unpacked):
    (store, points), (other, _) = made, unpacked
    for point in points:
        assert other.state(point) == store.state(point)
        here, there = store.read(point), other.read(point)
        assert (there.metrics, there.weights) == (here.metrics, here.weights)
        assert there.error == here.error
    assert other.check(points[0])


def test_a_stripped_run_says_what_it_lacks_and_is_executed_again(unpacked):
    store, points = unpacked
    run = store.run_folder(points[0])
    opened = validate(run)
    assert opened.problems == ()
    assert set(opened.left_out) == LEFT_OUT
    assert not any((run / name).exists() for name in LEFT_OUT)
    told = verify(run, validate_only=True)
    assert "left out" in told.sentence
    verdict = verify(run)
    assert verdict.outcome == "identical"
    assert "2 trail entries, weights, predictions and scores" in verdict.sentence
    with pytest.raises(RunError, match=r"stripped run, without weights\.safetensors"):
        load(run)


def test_a_stripped_run_of_other_bits_does_not_repeat(unpacked, tmp_path):
    """The head of the trail is what is compared: a receipt with another one is found out."""
    from seedless.proof.stripped_run import describe_stripped

    store, points = unpacked
    run = store.run_folder(points[0])
    receipt = json.loads((run / "receipt.json").read_bytes())
    receipt["predicate"]["trail"]["head"] = "sha256:" + 64 * "1"
    seal(run, receipt)
    (run / "light.json").write_bytes(describe_stripped(receipt, LEFT_OUT))
    assert validate(run).problems == ()  # it agrees with itself
    verdict = verify(run)
    assert verdict.outcome == "differs"
    assert "trail.head" in " ".join(verdict.details)


def seal(run, receipt):
    """Write a receipt with its digest made anew."""
    from seedless.core.digests import canonical_json, digest_value

    del receipt["predicate"]["digest"]
    receipt["predicate"]["digest"] = digest_value(receipt)
    (run / "receipt.json").write_bytes(canonical_json(receipt) + b"\n")


@pytest.mark.parametrize(
    "harm",
    ["a score", "a prediction", "the log", "no note", "another note", "a file that came back"],
)
def test_a_stripped_run_that_was_changed_is_found(unpacked, made, harm):
    store, points = unpacked
    run = store.run_folder(points[0])
    if harm == "a score":
        text = (run / "metrics.json").read_text().replace('"converged": ', '"converged":  ')
        (run / "metrics.json").write_text(text)
    elif harm == "a prediction":
        content = bytearray((run / "predictions.npz").read_bytes())
        content[-200] ^= 1
        (run / "predictions.npz").write_bytes(content)
    elif harm == "the log":
        (run / "log.jsonl").write_bytes(b"")
    elif harm == "no note":
        (run / "light.json").unlink()
    elif harm == "another note":
        note = json.loads((run / "light.json").read_bytes())
        note["left_out"].append("predictions.npz")
        (run / "light.json").write_text(json.dumps(note))
    else:
        shutil.copy(made[0].run_folder(points[0]) / "trail.jsonl", run)
    with pytest.raises(RunError):
        store.check(points[0])


def test_weights_go_along_where_asked_for(made, tmp_path):
    store, points = made
    (heavy,) = write_run_archives(store, points[:1], tmp_path / "heavy.tar.xz", weights=True)
    other = Store(tmp_path / "elsewhere")
    assert unpack_run_archive(heavy.file, other).new == 1
    run = other.run_folder(points[0])
    assert validate(run).problems == ()
    assert load(run).digest == store.read(points[0]).weights
    # And without them from there, the bytes are those of the whole run's archive.
    (one,) = write_run_archives(other, points[:1], tmp_path / "a.tar.xz")
    (two,) = write_run_archives(store, points[:1], tmp_path / "b.tar.xz")
    assert one.digest == two.digest
    stripped = Store(tmp_path / "stripped")
    unpack_run_archive(one.file, stripped)
    with pytest.raises(StudyError, match="without its weights"):
        write_run_archives(stripped, points[:1], tmp_path / "c.tar.xz", weights=True)


def test_a_run_that_is_there_stays_unless_its_bits_are_others(made, archive, unpacked):
    store, points = unpacked
    before = (store.run_folder(points[0]) / "receipt.json").stat().st_mtime_ns
    assert unpack_run_archive(archive.file, store).known == 2
    assert (store.run_folder(points[0]) / "receipt.json").stat().st_mtime_ns == before
    run = store.run_folder(points[0])
    receipt = json.loads((run / "receipt.json").read_bytes())
    receipt["predicate"]["weights"]["digest"] = "sha256:" + 64 * "2"
    seal(run, receipt)
    with pytest.raises(StudyError, match="the same configuration and different weights"):
        unpack_run_archive(archive.file, store)


def test_findings_travel_with_their_run(made, tmp_path):
    store, points = made
    run = store.run_folder(points[1])
    found = prove_run(run)
    assert found["outcome"] == "identical"
    (archive,) = write_run_archives(store, points[1:2], tmp_path / "proved.tar.xz")
    other = Store(tmp_path / "elsewhere")
    unpack_run_archive(archive.file, other)
    assert read_finding(other.run_folder(points[1]), "proof", PROOF_FORM) == found
    write_finding(run, "note", {"a": 1})
    receipt = json.loads((run / "receipt.json").read_bytes())
    shutil.copytree(run, tmp_path / "s" / "runs" / run.name)
    copy = tmp_path / "s" / "runs" / run.name
    shutil.copytree(store.folder / "findings", tmp_path / "s" / "findings")
    assert read_finding(copy, "note", {"a": int}) == {"a": 1}
    receipt["predicate"]["metrics"]["converged"] = "maybe"
    seal(copy, receipt)
    assert read_finding(copy, "note", {"a": int}) is None  # it was about another receipt


def rewrite_archive(archive, out, rename=lambda name: name, change=lambda name, data: data):
    """Write an archive again with other names or contents; return its path."""
    with tarfile.open(archive) as old, tarfile.open(out, "w:xz") as new:
        for member in old:
            data = change(member.name, old.extractfile(member).read())
            info = tarfile.TarInfo(rename(member.name))
            info.size = len(data)
            new.addfile(info, io.BytesIO(data))
    return out


def read_tree(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_an_archive_with_swapped_keys_is_refused_and_leaves_nothing(made, archive, tmp_path):
    one, other, _ = (point.key for point in made[1])
    swap = {one: other, other: one}

    def rename(name):
        key = name.split("/")[1]
        return name.replace(key, swap.get(key, key))

    bad = rewrite_archive(archive.file, tmp_path / "bad.tar.xz", rename)
    store = Store(tmp_path / "elsewhere")
    with pytest.raises(StudyError, match="has the configuration of another run"):
        unpack_run_archive(bad, store)
    assert read_tree(store.folder) == {}


def test_a_failure_under_another_key_is_refused_and_leaves_nothing(made, archive, tmp_path):
    key = made[1][2].key

    def rename(name):
        return name.replace(key, "0" * 16)

    bad = rewrite_archive(archive.file, tmp_path / "bad.tar.xz", rename)
    store = Store(tmp_path / "elsewhere")
    with pytest.raises(StudyError, match="a run of another configuration"):
        unpack_run_archive(bad, store)
    assert read_tree(store.folder) == {}


def test_findings_of_an_archive_replace_none_of_the_store(made, tmp_path):
    """And none is taken over that is about another receipt."""
    store, points = made
    run = store.run_folder(points[0])
    write_finding(run, "note", {"a": 1})
    (archive,) = write_run_archives(store, points[:1], tmp_path / "noted.tar.xz")

    def change(name, data):
        return data.replace(b'"a": 1', b'"a": 2') if name.startswith("findings/") else data

    other = Store(tmp_path / "elsewhere")
    unpack_run_archive(archive.file, other)
    copy = other.run_folder(points[0])
    unpack_run_archive(rewrite_archive(archive.file, tmp_path / "b.tar.xz", change=change), other)
    assert read_finding(copy, "note", {"a": int}) == {"a": 1}

    def address(name, data):
        digest = json.loads((run / "receipt.json").read_bytes())["predicate"]["digest"].encode()
        wrong = data.replace(digest, b"sha256:" + 64 * b"1")
        return wrong if name.startswith("findings/") else data

    empty = Store(tmp_path / "empty")
    unpack_run_archive(rewrite_archive(archive.file, tmp_path / "c.tar.xz", change=address), empty)
    assert not (empty.folder / "findings").exists()


@pytest.mark.parametrize(
    "content", [b"[]", b'{"receipt": 1}', b'{"receipt": "", "found": [], "x": 1}', b"[" * 9999]
)
def test_what_is_no_finding_is_refused(made, content):
    store, points = made
    run = store.run_folder(points[0])
    write_finding(run, "broken", {})
    file = store.folder / "findings" / f"{run.name}-broken.json"
    file.write_bytes(content)
    try:
        with pytest.raises(StudyError, match="cannot be read as a finding"):
            read_finding(run, "broken", {})
    finally:
        file.unlink()


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"outcome": "identical"},
        {"outcome": "identical", "sentence": 5, "details": [], "device": "cpu"},
        {"outcome": "consistent", "sentence": "", "details": [], "device": "cpu"},
        {"outcome": "identical", "sentence": "", "details": [], "device": "cpu", "more": 1},
    ],
)
def test_a_proof_of_another_form_is_refused(made, values):
    store, points = made
    run = store.run_folder(points[0])
    write_finding(run, "proof", values)
    try:
        with pytest.raises(StudyError, match="remove it"):
            prove_run(run)
    finally:
        (store.folder / "findings" / f"{run.name}-proof.json").unlink()


def write_tar(path, name, kind=tarfile.REGTYPE):
    with lzma.open(path, "wb") as raw, tarfile.open(fileobj=raw, mode="w") as archive:
        info = tarfile.TarInfo(name)
        info.type, info.size = kind, 3 if kind == tarfile.REGTYPE else 0
        info.linkname = "/etc/passwd"
        archive.addfile(info, io.BytesIO(b"abc"))


@pytest.mark.parametrize(
    "name",
    ["../evil.json", "runs/0123456789abcdef/../x.json", "/tmp/x.json", "runs/x/receipt.json"],
)
def test_a_file_with_a_name_of_its_own_is_refused(tmp_path, name):
    write_tar(tmp_path / "bad.tar.xz", name)
    store = Store(tmp_path / "store")
    with pytest.raises(StudyError, match="refused"):
        unpack_run_archive(tmp_path / "bad.tar.xz", store)
    assert not any((store.folder / "runs").iterdir())


def test_an_archive_without_runs_is_refused(tmp_path):
    """Such as compressed zeros, which a tar file may end with."""
    (tmp_path / "zeros.tar.xz").write_bytes(lzma.compress(bytes(2**20)))
    with pytest.raises(StudyError, match="holds no runs"):
        unpack_run_archive(tmp_path / "zeros.tar.xz", Store(tmp_path / "store"))


def test_links_and_damaged_files_are_refused(tmp_path, archive):
    store = Store(tmp_path / "store")
    write_tar(tmp_path / "link.tar.xz", "failed/0123456789abcdef.json", tarfile.SYMTYPE)
    with pytest.raises(StudyError, match="refused"):
        unpack_run_archive(tmp_path / "link.tar.xz", store)
    content = archive.file.read_bytes()
    (tmp_path / "cut.tar.xz").write_bytes(content[: len(content) // 2])
    with pytest.raises(StudyError, match="get it again"):
        unpack_run_archive(tmp_path / "cut.tar.xz", store)
    assert not any((store.folder / "runs").iterdir())


def test_parts_hold_whole_runs_and_are_no_larger_than_asked(made, tmp_path, monkeypatch):
    from seedless.studies.engine import run_archive as module

    store, points = made
    with pytest.raises(StudyError, match="more than"):
        write_run_archives(store, points, tmp_path / "x.tar.xz", part_size=2)
    monkeypatch.setattr(module, "SLACK", 0)
    monkeypatch.setattr(module, "MIB", 15_000)
    parts = write_run_archives(store, points, tmp_path / "study.tar.xz", part_size=1)
    assert [part.file.name for part in parts] == [
        f"study-{number}.tar.xz" for number in range(1, len(parts) + 1)
    ]
    assert len(parts) > 1
    assert all(part.size <= 15_000 for part in parts)
    other = Store(tmp_path / "elsewhere")
    for part in parts[::-1]:
        unpack_run_archive(part.file, other)
    assert [other.state(point) for point in points] == ["done", "done", "failed"]


def test_nothing_finished_is_nothing_to_bundle(tmp_path):
    with pytest.raises(StudyError, match="no finished run"):
        write_run_archives(Store(tmp_path), make_tiny_grid().points, tmp_path / "x.tar.xz")
