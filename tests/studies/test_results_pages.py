"""The pages of docs/results: from a store alone, to the byte, with what must be said in them."""

import gzip
import json
import math
import shutil
from contextlib import contextmanager
from functools import partial

import pytest

from benchmarks import results_predictions, time_limited_runs
from benchmarks.archive_parts import write_part
from benchmarks.results import build
from benchmarks.results_answers import answer
from benchmarks.results_gains_and_limits import list_gains, list_limits
from benchmarks.results_overview import summarize
from benchmarks.results_page import choose_remarks
from benchmarks.results_plan import ECGS, Entry, choose_tenth, list_entries, spell_command
from benchmarks.results_predictions import check_file, find_holder, pack_predictions
from benchmarks.results_runs import count_proofs, describe_run
from seedless.proof.receipt import WEIGHTS
from seedless.studies.catalog import open_study
from seedless.studies.engine.findings import PROOF, write_finding
from seedless.studies.engine.options import StudyOptions
from seedless.studies.engine.run_archive import unpack_run_archive, write_run_archives
from seedless.studies.engine.store import Store
from tests.conftest import ROOT

SMOKE = StudyOptions("smoke", device="cpu")
NAMES = ("theory", "factorial", "medmnist", "basis", "golden", "perclass", "order", "crossdataset")
MORE = ("power", "ablation", "cv", "medmnist_bases")
ENTRIES = tuple(Entry(name, name, SMOKE) for name in NAMES)


def read_all(folder):
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_pages_come_from_the_store_alone(smoke_store, tmp_path):
    """Written twice, the second time from stripped runs out of an archive."""
    here, there = tmp_path / "here", tmp_path / "there"
    assert build(ENTRIES, Store(smoke_store), here) == list(NAMES)
    points = [p for name in NAMES for p in open_study(name).plan(SMOKE).grid.points]
    (archive,) = write_run_archives(Store(smoke_store), points, tmp_path / "all.tar.xz")
    other = Store(tmp_path / "other")
    unpack_run_archive(archive.file, other)
    assert build(ENTRIES, other, there) == list(NAMES)
    written = read_all(here)
    assert read_all(there) == written
    assert {f"{name}.{suffix}" for name in NAMES for suffix in ("md", "png")} < {*written}
    index = written["README.md"].decode()
    for entry in ENTRIES:
        assert f"[{entry.slug}]({entry.slug}.md)" in index
        assert spell_command(entry) in index
        page = written[f"{entry.slug}.md"].decode()
        assert open_study(entry.study).question in page
    receipts = json.loads(gzip.decompress(written["receipts/basis.json.gz"]))
    grid = open_study("basis").plan(SMOKE).grid
    assert {row["key"] for row in receipts["runs"]} == {point.key for point in grid.points}
    outcome = Store(smoke_store).read(grid.points[0])
    by_key = {row["key"]: row for row in receipts["runs"]}
    scores = by_key[grid.points[0].key]["scores"]
    assert scores["macro_auc"] == outcome.metrics["test"]["macro_auc"]
    assert {*scores["classes"]} == {*outcome.metrics["test"]["classes"]}
    assert by_key[grid.points[0].key]["weights"]["digest"] == outcome.weights
    assert by_key[grid.points[0].key]["environment"] in receipts["environments"]
    packed = here / "predictions" / "basis.npz"
    assert check_file(packed) == (len(receipts["runs"]), len(receipts["runs"]))
    assert "predictions/basis.npz" in written["basis.md"].decode()
    changed = by_key[grid.points[0].key]
    changed["scores"]["macro_auc"] += 1e-9
    (here / "receipts" / "basis.json.gz").write_bytes(gzip.compress(json.dumps(receipts).encode()))
    assert check_file(packed) == (len(receipts["runs"]), len(receipts["runs"]) - 1)


def test_predictions_that_are_too_large_are_left_to_an_archive(smoke_store, monkeypatch):
    store, grid = Store(smoke_store), open_study("basis").plan(SMOKE).grid
    outcomes = [store.read(point) for point in grid.points]
    assert pack_predictions(outcomes) == pack_predictions(outcomes)
    monkeypatch.setattr(results_predictions, "MAX_BYTES", 1000)
    assert pack_predictions(outcomes) is None
    assert pack_predictions([]) is None


def test_predictions_that_another_page_holds_are_not_held_twice(smoke_store, tmp_path):
    store, out = Store(smoke_store), tmp_path / "out"
    entries = [Entry(name, name, SMOKE) for name in ("main", "convergence")]
    assert build(entries, store, out) == ["main", "convergence"]
    assert [file.name for file in (out / "predictions").iterdir()] == ["main.npz"]
    page = (out / "convergence.md").read_text()
    assert "among those of [main](predictions/main.npz)" in page
    keys = {point.key for point in open_study("basis").plan(SMOKE).grid.points}
    assert find_holder(keys, out, "basis") is None
    assert find_holder(set(), out, "basis") is None


def test_other_studies_have_answers_from_their_tables(smoke_store, tmp_path):
    entries = [Entry(name, name, SMOKE) for name in MORE]
    assert build(entries, Store(smoke_store), tmp_path) == list(MORE)
    words = {
        "power": "Effects found",
        "ablation": "recipe / dct ",
        "cv": "baseline kaiming at 0.01 0.",
        "medmnist_bases": "/ hartley 0.",
    }
    for name in MORE:
        page = (tmp_path / f"{name}.md").read_text()
        assert words[name] in page.partition("## How it was run")[0]
        assert "Primary" in page or "Secondary" in page or name == "power"


def test_noise_is_told_by_its_drops_and_its_tests():
    rows = [["muscle", "5", "9.2", "0.001", "", ""], ["wander", "5", "1.3", "0.7", "", ""]]
    drops = [("muscle", [0.1, 0.2]), ("wander", [0.0, 0.1]), ("muscle", [0.3]), ("wander", [0.2])]
    values = [{"kind": kind, "drops": values} for kind, values in drops]
    found = {
        "study": "noise",
        "tables": [
            {"title": "What noise as strong as the signal takes", "rows": [], "values": values},
            {"title": "Primary: do bases differ in", "rows": rows, "values": []},
        ],
    }
    told = answer(found)
    assert "muscle: the bases lose 0.150 to 0.300, Friedman p 0.001, n = 5" in told
    assert "1 of 2 tests" in told
    assert "takes 0.050 to 0.300" in list_limits({"noise": found})[0]
    assert "differ for muscle" in list_limits({"noise": found})[0]


def test_plain_words_rest_on_pages_that_exist(smoke_store, tmp_path):
    """Nothing is said of a page that is not there, and numbers are those of its tables."""
    assert not any("](" in text for text in (*list_gains({}), *list_limits({})))
    out = tmp_path / "out"
    names = ("main", "variance", "cv")
    build([Entry(name, name, SMOKE) for name in names], Store(smoke_store), out)
    pages = {name: json.loads((out / "collected" / f"{name}.json").read_text()) for name in names}
    told = " ".join(list_limits(pages))
    spread = next(row for row in pages["variance"]["tables"][0]["values"])
    assert f"{spread['sd']:.3f} ({spread['source']}; n = {spread['n']}" in told
    assert "0 of 2 are shown to be equal" in told
    assert "noise" not in told
    scaled = next(row for row in pages["cv"]["tables"][1]["rows"] if row[0].endswith("at 0.01"))
    assert f"random with 0.01, {scaled[2]};" in told
    assert "from the machine" not in " ".join(list_gains(pages))  # not measured on a CPU


def test_a_study_without_all_its_runs_shows_progress_and_one_without_any_is_named(
    smoke_store, tmp_path
):
    store = Store(tmp_path / "store")
    point = open_study("basis").plan(SMOKE).grid.points[0]
    shutil.copytree(Store(smoke_store).run_folder(point), store.run_folder(point))
    entries = [Entry("basis", "basis", SMOKE), Entry("noise", "noise", SMOKE)]
    assert build(entries, store, tmp_path / "out") == []
    assert "Not finished: 1 of " in (tmp_path / "out" / "basis.md").read_text()
    assert not (tmp_path / "out" / "noise.md").exists()
    index = (tmp_path / "out" / "README.md").read_text()
    assert index.partition("## Not there yet")[2].strip().startswith("noise")


def test_time_limited_runs_archive_what_is_done(smoke_store, tmp_path, monkeypatch):
    monkeypatch.setattr(
        time_limited_runs, "run_local", lambda *_, **__: None
    )  # the runs are there, or not
    entry = Entry("cifar100", "cifar100", SMOKE)
    out, limits = tmp_path / "out", time_limited_runs.Limits(60)
    out.mkdir()
    empty, found = Store(tmp_path / "empty"), []

    @contextmanager
    def share(*_, **__):
        yield False
        found.extend(out.iterdir())  # a machine may be taken away while the service ends

    monkeypatch.setattr(time_limited_runs, "share_gpus", share)
    assert not time_limited_runs.run_entries([entry], empty, out / "runs", limits)
    assert list(out.iterdir()) == []
    assert time_limited_runs.run_entries([entry], Store(smoke_store), out / "runs", limits)
    (file,) = found
    assert unpack_run_archive(file, Store(tmp_path / "elsewhere")).new == 8
    twice = time_limited_runs.list_points([entry, entry])
    assert len(twice) == 8
    planned = []
    monkeypatch.setattr(
        time_limited_runs, "run_local", lambda _, points, **__: planned.extend(points)
    )
    known = [point.key for point in twice[1:]]
    run = partial(time_limited_runs.run_entries, [entry], empty, out / "more", limits)
    assert not run(elsewhere=known)
    assert planned == twice[:1]
    assert run(elsewhere=[*known, twice[0].key])


def test_archives_hold_what_is_new_and_the_weights_of_what_is_measured(smoke_store, tmp_path):
    entries = [Entry("cv", "cv", SMOKE), Entry("attribution", "attribution", SMOKE, 1, True)]
    whole, store, written = Store(smoke_store), Store(tmp_path / "store"), {}
    first, *rest = time_limited_runs.list_points(entries[:1])
    shutil.copytree(whole.run_folder(first), store.run_folder(first))
    (one,) = write_part(entries, store, tmp_path / "a-1", written)
    assert one.runs == 1
    explained = time_limited_runs.list_points(entries[1:])
    shutil.copytree(whole.run_folder(explained[0]), store.run_folder(explained[0]))
    assert write_part(entries, store, tmp_path / "a-2", written) == []  # one more is measured
    for point in (*rest[:2], *explained):
        shutil.copytree(whole.run_folder(point), store.run_folder(point), dirs_exist_ok=True)
    values = {"outcome": "identical", "sentence": "", "details": [], "device": "cpu"}
    write_finding(store.run_folder(first), PROOF, values)
    plain, weighted = write_part(entries, store, tmp_path / "a-3", written)
    assert (plain.runs, weighted.runs) == (3, len(explained))  # one of them for its finding
    there = Store(tmp_path / "there")
    for archive in (one, plain, weighted):
        unpack_run_archive(archive.file, there)
    assert (there.run_folder(explained[0]) / WEIGHTS).exists()
    assert not (there.run_folder(first) / WEIGHTS).exists()
    assert count_proofs([describe_run(there.read(first))]) == {"all": 1, "identical": 1}


def test_a_stage_is_named_by_its_seeds(tmp_path):
    (tmp_path / ECGS).touch()
    names = ["main:3", "main", "power"]
    found = time_limited_runs.choose_entries(names, tmp_path)
    assert [(one.slug, one.options.seeds) for one in found[:1]] == [("main", 3)]
    assert found[1] in list_entries(tmp_path)
    fewer = time_limited_runs.choose_entries(names, tmp_path, 4)
    assert [one.options.seeds for one in fewer] == [3, 4, 4]
    for word in ("mian", "main:x", "main:-1"):
        with pytest.raises(SystemExit, match=f"got {word}"):
            time_limited_runs.choose_entries([word], tmp_path)


def test_every_tenth_run_is_executed_again_once(smoke_store, tmp_path, monkeypatch):
    grid = open_study("main").plan(SMOKE).grid
    chosen = choose_tenth(grid.points)
    assert [p.key for p in chosen] == sorted({p.key for p in grid.points})[::10]
    store = Store(tmp_path / "store")
    for point in chosen[:2]:
        shutil.copytree(Store(smoke_store).run_folder(point), store.run_folder(point))
    executed = []

    def prove(run):
        executed.append(run.name)
        outcome = "identical" if len(executed) == 1 else "differs"
        values = {"outcome": outcome, "sentence": "", "details": [], "device": "cpu"}
        write_finding(run, PROOF, values)
        return values

    monkeypatch.setattr(time_limited_runs, "prove_run", prove)
    assert time_limited_runs.execute_again(grid.points, store, math.inf) == 2
    assert time_limited_runs.execute_again(grid.points, store, math.inf) == 0
    assert executed == [point.key for point in chosen[:2]]
    records = [describe_run(store.read(point)) for point in chosen[:2]]
    assert count_proofs(records) == {"all": 2, "identical": 1}
    assert time_limited_runs.execute_again(grid.points, store, 0.0) == 0


def test_remarks_follow_from_the_data():
    found = {
        "study": "basis",
        "tables": [],
        "data": {"name": "ptb-xl-derived100", "classes": {"SR": 90, "PACE": 0, "PSVT": 7}},
        "runs": {"all": 3, "at chance": 1, "failed": 0, "converged": 2},
        "setting": {"simulated": False},
        "command": "seedless study run basis --folds 3",
    }
    told = " ".join(choose_remarks(found))
    for words in ("z-scored", "do not compare", "PACE", "PSVT (7)", "1 runs ended at chance"):
        assert words in told
    found["data"] = {"name": "simulated", "classes": {"SR": 90}}
    found["setting"]["simulated"] = True
    told = " ".join(choose_remarks(found))
    assert "simulated" in told
    assert "z-scored" not in told


def test_what_is_committed_is_what_the_generator_writes(tmp_path):
    """Pages are made from the collected files beside them: no number was typed by hand."""
    pages = ROOT / "docs" / "results"
    shutil.copytree(pages, tmp_path / "copy")
    of_other_programs = ("protocol.md", "start-causes.md", "default-start.md")
    by_hand = ("objections.md",)
    for path in (tmp_path / "copy").glob("*.md"):
        if path.name not in (*of_other_programs, *by_hand):
            path.unlink()
    build(list_entries(ROOT / "data"), None, tmp_path / "copy")
    assert read_all(tmp_path / "copy") == read_all(pages)
    for file in (pages / "collected").glob("*.json"):
        found = json.loads(file.read_text(encoding="utf-8"))
        assert answer(found) in (pages / f"{file.stem}.md").read_text(encoding="utf-8")


def test_other_studies_have_a_short_answer(smoke_store, tmp_path):
    entries = [Entry(name, name, SMOKE) for name in (*MORE, "factorial", "golden", "order")]
    build(entries, Store(smoke_store), tmp_path)
    for entry in entries:
        found = json.loads((tmp_path / "collected" / f"{entry.slug}.json").read_text())
        assert len(summarize(found).split()) > 3
