"""The pages of docs/results: from a store alone, to the byte, with what must be said in them."""

import gzip
import json
import math
import shutil

from benchmarks import results_predictions, time_limited_runs
from benchmarks.results import build, count_proofs
from benchmarks.results_answers import answer
from benchmarks.results_fairness import CONFOUNDED, clean_table, has_equal_arms, list_caveats
from benchmarks.results_page import choose_remarks
from benchmarks.results_plan import Entry, choose_tenth, list_entries, spell_command
from benchmarks.results_predictions import check_file, pack_predictions
from seedless.studies.catalog import open_study
from seedless.studies.engine.findings import PROOF, write_finding
from seedless.studies.engine.options import StudyOptions
from seedless.studies.engine.run_archive import unpack_run_archive, write_run_archives
from seedless.studies.engine.store import Store
from seedless.studies.engine.table import Table
from tests.conftest import ROOT

SMOKE = StudyOptions("smoke", device="cpu")
NAMES = ("theory", "factorial", "medmnist", "basis", "golden", "perclass", "order", "crossdataset")
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


def test_a_study_without_all_its_runs_is_named_and_has_no_page(smoke_store, tmp_path):
    store = Store(tmp_path / "store")
    point = open_study("basis").plan(SMOKE).grid.points[0]
    shutil.copytree(Store(smoke_store).run_folder(point), store.run_folder(point))
    assert build([Entry("basis", "basis", SMOKE)], store, tmp_path / "out") == []
    assert not (tmp_path / "out" / "basis.md").exists()
    index = (tmp_path / "out" / "README.md").read_text()
    assert index.partition("## Not there yet")[2].strip().startswith("basis")


def test_time_limited_runs_archive_what_is_done(smoke_store, tmp_path, monkeypatch):
    monkeypatch.setattr(
        time_limited_runs, "run_local", lambda *_, **__: None
    )  # the runs are there, or not
    entry = Entry("cifar100", "cifar100", SMOKE)
    out = tmp_path / "out"
    out.mkdir()
    assert not time_limited_runs.run_entries([entry], Store(tmp_path / "empty"), out, 60)
    assert list(out.iterdir()) == []
    assert time_limited_runs.run_entries([entry], Store(smoke_store), out, 60)
    (file,) = out.iterdir()
    assert unpack_run_archive(file, Store(tmp_path / "elsewhere")).new == 8
    twice = time_limited_runs.list_points([entry, entry])
    assert len(twice) == 8


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
    outcomes = [store.read(point) for point in chosen[:2]]
    assert count_proofs(outcomes) == {"all": 2, "identical": 1}
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
    """Pages are made from the collected files beside them: none was edited by hand."""
    pages = ROOT / "docs" / "results"
    shutil.copytree(pages, tmp_path / "copy")
    own_generators = ("protocol.md", "start-causes.md", "default-start.md")
    for path in (tmp_path / "copy").glob("*.md"):
        if path.name not in own_generators:
            path.unlink()
    build(list_entries(ROOT / "data"), None, tmp_path / "copy")
    assert read_all(tmp_path / "copy") == read_all(pages)
    for file in (pages / "collected").glob("*.json"):
        found = json.loads(file.read_text(encoding="utf-8"))
        assert answer(found) in (pages / f"{file.stem}.md").read_text(encoding="utf-8")


def collect_rows(study, arm, columns=("", "score", "published", "difference")):
    """Return what a study with one arm would have collected, and its table."""
    table = Table("Arms", columns, ((f"breastmnist / {arm}", "0.9", "0.8", "+0.1"),))
    values = [{"arm": arm, "block": "breastmnist"}]
    return {"study": study, "tables": [{"columns": columns, "values": values}]}, table


def test_a_published_value_stands_beside_its_own_arm_alone():
    for arm, shown in (("dct", "0.8"), ("kaiming", ""), ("kaiming_normal", "0.8")):
        found, table = collect_rows("medmnist", arm)
        assert clean_table(found, table, comparable=True).rows[0][2] == shown
    found, table = collect_rows("basis", "dct")
    assert clean_table(found, table, comparable=False).rows[0][2:] == ("0.8", "")
    found, table = collect_rows("order", "golden", ("", "paired TOST p", "published", "difference"))
    assert clean_table(found, table, comparable=True).rows[0][2:] == ("", "")


def test_pages_whose_arms_differ_in_more_than_the_basis_say_so():
    confounded, _ = collect_rows("golden", "kaiming")
    assert list_caveats(confounded) == [CONFOUNDED]
    equal, _ = collect_rows("golden", "kaiming at 0.01")
    assert list_caveats(equal) == []
    for slug in ("basis", "golden", "perclass", "medmnist"):
        page = (ROOT / "docs" / "results" / f"{slug}.md").read_text(encoding="utf-8")
        collected = ROOT / "docs" / "results" / "collected" / f"{slug}.json"
        told = CONFOUNDED in page
        assert told != has_equal_arms(json.loads(collected.read_text(encoding="utf-8")))
