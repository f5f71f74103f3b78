"""What the pages of docs/results must not claim, and the overview in few words."""

import json

from benchmarks.results_answers import answer, comparable
from benchmarks.results_fairness import (
    CONFOUNDED,
    EARLIER,
    ONE_RUN,
    clean_table,
    has_equal_arms,
    list_caveats,
)
from benchmarks.results_overview import MAX_WORDS, summarize
from seedless.studies.engine.table import Table
from tests.conftest import ROOT


def collect_rows(study, arm, columns=("", "score", "published", "difference")):
    """Return what a study with one arm would have collected, and its table."""
    table = Table("Arms", columns, ((f"breastmnist / {arm}", "0.9", "0.8", "+0.1"),))
    values = [{"arm": arm, "block": "breastmnist"}]
    tables = [{"title": "Arms", "columns": columns, "values": values, "notes": []}]
    return {"study": study, "tables": tables, "runs": {"all": 0}}, table


def test_a_published_value_stands_beside_its_own_arm_alone():
    for arm, shown in (("dct", "0.8"), ("kaiming", ""), ("kaiming_normal", "0.8")):
        found, table = collect_rows("medmnist", arm)
        assert clean_table(found, table, comparable=True).rows[0][2] == shown
    found, table = collect_rows("basis", "dct")
    assert clean_table(found, table, comparable=False).rows[0][2:] == ("0.8", "")
    found, table = collect_rows("order", "golden", ("", "paired TOST p", "published", "difference"))
    assert clean_table(found, table, comparable=True).rows[0][2:] == ("", "")


def test_a_shorter_training_is_not_compared_with_what_was_published():
    found = {"setting": {"simulated": False}, "data": {"name": "breastmnist"}}
    command = "seedless study run medmnist --set execution.precision=tf32"
    assert comparable({**found, "command": command})
    assert not comparable({**found, "command": f"{command} --set train.epochs=100"})
    assert not comparable({**found, "command": command, "data": {"name": "ptb-xl-derived100"}})
    # Published epochs of images were chosen on the test split.
    assert not comparable({**found, "command": command, "study": "medmnist"})


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


def read_collected(slug):
    return json.loads((ROOT / "docs" / "results" / "collected" / f"{slug}.json").read_text())


def test_the_overview_is_short():
    for file in (ROOT / "docs" / "results" / "collected").glob("*.json"):
        text = summarize(read_collected(file.stem))
        assert 3 < len(text.split()) <= MAX_WORDS, (file.stem, text)


def test_arms_of_one_run_are_compared_with_nothing():
    values = [
        {"arm": arm, "scores": dict.fromkeys(range(n), 0.7)} for arm, n in (("a", 1), ("b", 9))
    ]
    tables = [{"title": "Golden order, 2 x 2", "columns": [], "values": values, "notes": []}]
    found = {"study": "golden", "tables": tables, "runs": {"all": 10}}
    for text in (answer(found), summarize(found)):
        assert "0.7" not in text
        assert "one run" in text
    assert ONE_RUN in list_caveats(found)
    values[0]["scores"] = {0: 0.7, 1: 0.8}
    assert ONE_RUN not in list_caveats(found)


def test_runs_from_before_the_protocol_are_named_and_their_tests_are_not_primary():
    found = {"study": "order", "tables": [], "runs": {"all": 9}}
    assert EARLIER in list_caveats(found)
    assert EARLIER not in list_caveats({**found, "executed_again": {"all": 0, "identical": 0}})
    columns = ("order", "TOST p, ± 0.015", "so")
    rows = (("content", "0.07", "equal within the margin by pairs alone"),)
    table = Table("Does an order without a seed cost accuracy?", columns, rows)
    cleaned = clean_table(found, table, comparable=False)
    assert cleaned.title.startswith("Not fixed beforehand")
    assert cleaned.rows[0][2] == "not shown to be equal"
    assert "margin by pairs alone" not in (ROOT / "docs" / "results" / "order.md").read_text()


def test_counts_of_classes_and_records_say_what_they_are_worth():
    found = {"study": "perclass", "tables": [], "runs": {"all": 9}}
    values = tuple({"ranges": ranges} for ranges in ([2, 1], [2, 1], [2, 1], [1, 2]))
    title = "Range over seeds by class, ecg"
    notes = ("mixed is tighter in 3 of 4 classes.", "Seeds vary in order (mixed).")
    cleaned = clean_table(found, Table(title, ("class",), (), notes, values), comparable=False)
    assert "tighter" not in " ".join(cleaned.notes)
    assert "p 0.62" in cleaned.notes[1]
    churn = Table("Test records whose answer depends on the seed", ("",), ())
    assert "grow with the number of runs" in clean_table(found, churn, comparable=False).notes[0]
    columns = ("noise", "p", "in words")
    rows = (("a", "0.026", "the groups differ"), ("b", "0.001", "the groups differ"))
    noise = Table("Primary: do bases differ in what noise costs at 0 dB?", columns, rows)
    words = [row[2] for row in clean_table(found, noise, comparable=False).rows]
    assert words == ["not counted as a difference: p is above 0.05 / 2", "the groups differ"]
