"""The fault bench of the doctor: its pairs are sound, its page is its record, and it judges."""

import pytest

from benchmarks.doctor import page, run
from benchmarks.doctor.catalog import list_pairs
from benchmarks.doctor.pair import Edit, Pair, find_right_lines, write_script
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
    row = {"identical": False, "cause": "threads", "line": "a.py:1", "confidence": "certain"}
    row |= {"causes": ["threads"], "seconds": 3.2, "verdict": "wrong line"}
    record = page.read_records()["doctor"]
    counts = run.count_verdicts({"x/y": row})
    text = page.make_page(
        {"doctor": {**record, "results": {"rows": {"x/y": row}, "counts": counts}}}
    )
    assert "| 1 | 0 (0 %) | 1 | 0 | 0 | 0 |" in text
    assert "| x/y | threads | threads | a.py:1 | certain | 3 | **wrong line** |" in text


@pytest.mark.parametrize("name", ["manual/no-seed", "charlm/set-vocabulary", "manual/clean"])
def test_the_doctor_answers_rightly(name):
    row = run.judge_pair(PAIRS[name])
    assert row["verdict"] == "right", row
