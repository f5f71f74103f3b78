"""Kept runs: what was run on several days or machines joins, and nothing is lost or mistaken."""

import gzip
import hashlib
import io
import json
import lzma
import shutil

import numpy as np
import pytest

from benchmarks.results import build
from benchmarks.results_plan import Entry
from benchmarks.results_runs import describe_run
from benchmarks.results_saved_runs import JoinedStore, choose_new, read_parts, write_part
from seedless.core.errors import StudyError
from seedless.evaluate.auc import score_classes
from seedless.studies.catalog import open_study
from seedless.studies.engine.findings import PROOF, write_finding
from seedless.studies.engine.options import StudyOptions
from seedless.studies.engine.store import Store

ENTRY = Entry("cv", "cv", StudyOptions("smoke", device="cpu"))


def copy_runs(smoke_store, folder, points):
    """Return a store that has these runs of the whole one."""
    store = Store(folder)
    for point in points:
        source = Store(smoke_store).run_folder(point)
        shutil.copytree(source, store.run_folder(point))
    return store


def read_written(folder):
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in files
        if path.parent.name != "kept"
    }


@pytest.fixture
def halves():
    runs = list(open_study("cv").plan(ENTRY.options).grid.runs)
    return runs[: len(runs) // 2], runs[len(runs) // 2 :]


def test_two_stores_one_after_the_other_give_the_page_of_one(smoke_store, tmp_path, halves):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert build([ENTRY], Store(smoke_store), whole) == ["cv"]
    first = copy_runs(smoke_store, tmp_path / "first", halves[0])
    assert build([ENTRY], first, parts) == []
    second = copy_runs(smoke_store, tmp_path / "second", halves[1])
    assert build([ENTRY], second, parts) == ["cv"]
    assert read_written(parts) == read_written(whole)
    assert len(read_parts(parts / "kept")) == len(halves[0])  # nothing is lost
    # In the other order, and with an empty store at the end: the kept runs alone give the page.
    other, rest = tmp_path / "other", Entry("golden", "golden", ENTRY.options)
    assert build([ENTRY], second, other) == []
    write_part(other / "kept", [(one, describe_run(one)) for one in map(first.read, halves[0])])
    assert build([ENTRY, rest], Store(tmp_path / "empty"), other) == ["cv"]
    assert (other / "cv.md").read_bytes() == (whole / "cv.md").read_bytes()


def test_a_page_before_completion_shows_progress_and_no_tests(smoke_store, tmp_path, halves):
    store = copy_runs(smoke_store, tmp_path / "store", halves[0])
    out = tmp_path / "out"
    assert build([ENTRY], store, out) == []
    page = (out / "cv.md").read_text()
    count = len(halves[0]) + len(halves[1])
    assert f"Not finished: {len(halves[0])} of {count} runs are done" in page
    for point in halves[0]:
        score = store.read(point).metrics["test"]["macro_auc"]
        assert f"{score:.3f}" not in page
    assert " p " not in page.partition("## Progress")[2]
    assert not (out / "collected" / "cv.json").exists()
    index = (out / "README.md").read_text()
    assert f"{len(halves[0])} of {count} runs" in index
    # The same store again adds no part, and a page without a store is the same page.
    before = read_written(out), sorted((out / "kept").iterdir())
    build([ENTRY], store, out)
    build([ENTRY], None, out)
    assert (read_written(out), sorted((out / "kept").iterdir())) == before


def test_an_old_page_stays_while_its_study_is_run_again(smoke_store, tmp_path, halves):
    out = tmp_path / "out"
    build([ENTRY], Store(smoke_store), out)
    fewer = copy_runs(smoke_store, tmp_path / "store", halves[0])
    build([ENTRY], fewer, out)
    page = (out / "cv.md").read_text()
    assert "The study is being run again" in page
    assert "## Test macro AUC by fold" in page
    build([ENTRY], Store(smoke_store), out)
    assert "The study is being run again" not in (out / "cv.md").read_text()


def test_predictions_are_kept_with_their_scores(smoke_store, tmp_path):
    store = Store(smoke_store)
    points = open_study("basis").plan(StudyOptions("smoke", device="cpu")).grid.runs
    outcomes = [store.read(point) for point in points]
    folder = tmp_path / "kept"
    file = write_part(folder, [(one, describe_run(one)) for one in outcomes])
    runs = read_parts(folder)
    assert {*runs} == {point.key for point in points}
    joined = JoinedStore(tmp_path / "empty", runs)
    for one in outcomes:
        again = joined.read(one.point)
        held, known = (o.read_predictions().splits["test"] for o in (again, one))
        np.testing.assert_array_max_ulp(held.probabilities, known.probabilities, 4)
        assert (held.ids.tolist(), held.labels.tolist()) == (
            known.ids.tolist(),
            known.labels.tolist(),
        )
        classes = list(one.read_predictions().classes)
        scores = score_classes(held.probabilities, held.labels, classes)
        assert (
            scores["macro_auc"]
            == one.metrics["test"]["macro_auc"]
            == again.metrics["test"]["macro_auc"]
        )
        assert (again.weights, again.data, again.state) == (one.weights, one.data, one.state)
        assert joined.describe(again) == describe_run(one)
    assert choose_new([(one, describe_run(one)) for one in outcomes], runs) == []
    assert write_part(folder, [(one, describe_run(one)) for one in reversed(outcomes)]) == file
    assert write_part(folder, []) is None


def test_a_second_execution_is_added_later(smoke_store, tmp_path, halves):
    store, out = copy_runs(smoke_store, tmp_path / "store", halves[0][:2]), tmp_path / "out"
    build([ENTRY], store, out)
    values = {"outcome": "identical", "sentence": "", "details": [], "device": "cpu"}
    write_finding(store.run_folder(halves[0][0]), PROOF, values)
    build([ENTRY], store, out)
    proofs = [run.record.proof for run in read_parts(out / "kept").values()]
    assert sorted(proofs, key=str) == [None, "identical"]
    assert "1 of 1 runs gave the same bits" in (out / "cv.md").read_text()
    empty = Store(tmp_path / "empty")
    build([ENTRY], empty, out)
    assert "1 of 1 runs gave the same bits" in (out / "cv.md").read_text()


def test_failed_runs_are_kept_until_one_finishes(smoke_store, tmp_path, halves):
    failing = Store(tmp_path / "store")
    point = halves[0][0]
    failing.record_failure(point, "it broke")
    out = tmp_path / "out"
    build([ENTRY], failing, out)
    joined = JoinedStore(tmp_path / "empty", read_parts(out / "kept"))
    assert (joined.state(point), joined.read(point).error) == ("failed", "it broke")
    build([ENTRY], copy_runs(smoke_store, tmp_path / "done", [point]), out)
    assert JoinedStore(tmp_path / "empty", read_parts(out / "kept")).state(point) == "done"


def rewrite(file, change):
    """Change the content of a part and give it the name of what it holds now."""
    with np.load(io.BytesIO(lzma.decompress(file.read_bytes()))) as opened:
        arrays = {name: opened[name] for name in opened.files}
    listed = json.loads(arrays["runs"].tobytes())
    change(listed)
    arrays["runs"] = np.frombuffer(json.dumps(listed).encode(), np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    digest = hashlib.sha256(buffer.getvalue()).hexdigest()[:16]
    place = file.with_name(f"{digest}.npz.xz")
    place.write_bytes(lzma.compress(buffer.getvalue()))
    return place


def test_damaged_and_contradicting_parts_are_refused(smoke_store, tmp_path, halves):
    store = copy_runs(smoke_store, tmp_path / "store", halves[0][:1])
    one = store.read(halves[0][0])
    folder = tmp_path / "kept"
    file = write_part(folder, [(one, describe_run(one))])
    content = file.read_bytes()

    def refuse(words):
        with pytest.raises(StudyError, match=words):
            read_parts(folder)

    file.write_bytes(content[: len(content) // 2])
    refuse("not the digest|cannot be unpacked")
    file.write_bytes(gzip.compress(b"x"))
    refuse("cannot be unpacked")
    file.write_bytes(lzma.compress(b"x"))
    refuse("not the digest of its content")
    file.write_bytes(content)

    def change_weights(listed):
        listed["runs"][0]["row"]["weights"]["digest"] = "sha256:" + "0" * 64

    other = rewrite(file, change_weights)
    refuse("different machines")
    file.unlink()  # the changed one alone contradicts the store
    joined = JoinedStore(store.folder, read_parts(folder))
    with pytest.raises(StudyError, match="different machines"):
        joined.describe(one)
    whole = other.read_bytes()
    for change, words in (
        (lambda listed: listed.update(schema=9), "has schema 9"),
        (lambda listed: listed["runs"][0].pop("metrics"), "lacks a part of a run"),
    ):
        other.write_bytes(whole)
        changed = rewrite(other, change)
        other.unlink()
        refuse(words)
        changed.unlink()
