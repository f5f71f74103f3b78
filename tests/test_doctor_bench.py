"""The fault bench of the doctor: its pairs are sound, its page is its record, and it judges."""

import json

import pytest

from benchmarks.doctor import check, page, run
from benchmarks.doctor.catalog import list_pairs
from benchmarks.doctor.pair import Edit, Pair, digest_pair, find_right_lines, write_script
from seedless.audit.doctor.causes import CAUSES

PAIRS = {pair.name: pair for pair in list_pairs()}


@pytest.mark.parametrize(("device", "faults", "clean"), [("cpu", 40, 20), ("cuda", 10, 5)])
def test_every_fault_can_be_planted_and_its_lines_exist(tmp_path, device, faults, clean):
    pairs = list_pairs(device)
    for number, pair in enumerate(pairs):
        write_script(pair, tmp_path / str(number))
        lines = find_right_lines(pair, tmp_path / str(number))
        assert bool(lines) == bool(pair.causes), pair.name
        assert set(pair.causes) <= CAUSES.keys(), pair.name
    assert sum(bool(pair.causes) for pair in pairs) >= faults
    assert sum(not pair.causes for pair in pairs) >= clean


def test_an_edit_that_does_not_fit_is_refused(tmp_path):
    pair = Pair("digits/typo", "digits", (Edit("train.py", "no such text"),))
    with pytest.raises(ValueError, match="must occur once"):
        write_script(pair, tmp_path)


def test_an_answer_is_right_only_with_cause_and_line():
    pair, lines = PAIRS["digits/no-seed"], ["train.py:22"]
    answer = {"identical": False, "cause": "unseeded-weights", "line": "train.py:22"}

    def judge(code, **changes):
        return run.compare_answer(pair, lines, code, answer | changes)

    assert judge(1) == "right"
    assert judge(1, line="train.py:23") == "wrong line"
    assert judge(1, cause="threads") == "wrong cause"
    assert judge(0, identical=True) == "not found"
    assert judge(3) == "no answer"
    clean = PAIRS["digits/clean"]
    assert run.compare_answer(clean, [], 0, {"identical": True}) == "right"
    assert run.compare_answer(clean, [], 1, answer) == "false alarm"
    assert run.compare_answer(clean, [], 2, {}) == "no answer"


def test_the_page_is_the_record():
    assert page.PAGE.read_text() == page.make_page(), "run python -m benchmarks.doctor.page"


def test_the_page_shows_misses_and_what_was_left_out():
    row = {"identical": False, "cause": "threads", "line": "a.py:1", "confidence": "certain"}
    row |= {"causes": ["threads"], "seconds": 3.2, "verdict": "wrong line", "source": "abc"}
    row |= {"command": "seedless doctor --vary threads=1,2 -- python a.py"}
    rows, record = {"digits/threads": row}, page.read_records()["doctor"]
    excluded = [name for name in PAIRS if name not in ("digits/threads", "manual/clean")]
    results = {"rows": rows, "counts": run.count_verdicts(rows), "excluded": excluded}
    checked = {"manual/clean": {"found": "different", "wanted": "identical"}}
    text = page.make_page(
        {
            "doctor": {**record, "results": results},
            "doctor-check": {**record, "results": {"rows": checked}},
        }
    )
    assert "| 1 | 0 (0 %) | 1 | 0 | 0 | 0 | 1 |" in text
    shown = "`--vary threads=1,2` | threads | a.py:1 | certain | 3 | **wrong line** |"
    assert f"| digits/threads | threads | {shown}" in text
    assert (
        f"identical there without the doctor: {', '.join(excluded)}.\n  Not run: manual/c" in text
    )
    assert "one version of the doctor, with source digest `abc`" in text
    assert "- CPU: 0 of 1 pairs did so" in text
    assert "manual/clean (different)" in text
    assert f"- GPU: {len(list_pairs('cuda'))} pairs are written and were not run." in text


def test_a_fault_that_changes_nothing_is_left_out_and_a_clean_pair_never():
    checked = {key: {"found": "identical"} for key in ["digits/no-seed", "digits/clean"]}
    checked["manual/no-seed"] = {"found": "different"}
    assert run.list_excluded(PAIRS, checked) == ["digits/no-seed"]


def test_rows_of_another_version_are_judged_again():
    row = {**run.describe_version(PAIRS["digits/clean"]), "lines": []}
    assert run.keep_current({"digits/clean": row}, PAIRS) == {"digits/clean": row}
    for name in ("pair", "source", "torch", "python"):
        assert run.keep_current({"digits/clean": {**row, name: "other"}}, PAIRS) == {}
    assert run.keep_current({"digits/gone": row}, PAIRS) == {}


def test_the_longest_pair_is_judged_first():
    recorded = {"digits/clean": {"seconds": 20}, "digits/no-seed": {"seconds": 70}}
    names = ["digits/clean", "digits/no-seed", "digits/threads", "vae/clean"]
    ordered = run.put_longest_first([PAIRS[name] for name in names], recorded)
    # The third counts as long as the second, the last is of a script that was never timed.
    assert [pair.name for pair in ordered] == [names[3], names[1], names[2], names[0]]


def test_a_check_holds_as_long_as_the_pair_is_what_was_run(tmp_path):
    row = {"found": "different", "wanted": "different", "pair": digest_pair(PAIRS["vae/no-seed"])}
    file = tmp_path / "check.json"
    for rows, kept in (({"vae/no-seed": row}, ["vae/no-seed"]), ({"vae/clean": row}, [])):
        file.write_text(json.dumps({"results": {"rows": rows}}))
        assert [*check.read_checked(file, "cpu")] == kept
    assert check.read_checked(tmp_path / "none.json", "cpu") == {}


@pytest.mark.parametrize("name", ["manual/no-seed", "charlm/set-vocabulary", "manual/clean"])
def test_the_doctor_answers_rightly(name):
    row = run.judge_pair(PAIRS[name])
    assert row["verdict"] == "right", row
