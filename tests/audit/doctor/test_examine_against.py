"""A run compared with one that was recorded before."""

import pytest

from seedless.audit.doctor import pair as pairs
from seedless.audit.doctor.examine_against import examine_against
from seedless.audit.doctor.pair import Runner
from seedless.core.errors import RunError
from tests.audit.doctor.records import Script, make_step, write_steps


@pytest.fixture
def against(monkeypatch, tmp_path):
    """Return a function that compares runs of a script with an earlier one."""

    def against(write, earlier):
        write_steps(tmp_path / "kept" / "run-1" / "records", *earlier)
        script = Script(write)
        monkeypatch.setattr(pairs, "execute", script.execute)
        runner = Runner(["python", "train.py"], tmp_path / "runs")
        return examine_against(runner, tmp_path / "kept").diagnosis, len(script.calls)

    return against


def test_a_run_that_agrees_with_the_earlier_one(against):
    found, calls = against(lambda records, *_: write_steps(records, make_step(1)), [make_step(1)])
    assert (found.identical, calls) == (True, 1)


def test_what_changed_since_is_unknown_where_nothing_shows_it(against):
    def write(records, *_):
        write_steps(records, make_step(1, loss="new"))

    found, calls = against(write, [make_step(1)])
    assert (found.identical, found.cause, calls) == (False, "unknown", 2)
    assert "two runs of today agree with each other" in found.evidence


def test_a_file_that_changed_since(against):
    files = {"kind": "files", "read": [{"path": "a.csv", "sha256": "new", "line": "train.py:3"}]}
    old = {**files, "read": [{**files["read"][0], "sha256": "old"}]}

    def write(records, *_):
        write_steps(records, make_step(1, batch="new"), files)

    found, _ = against(write, [make_step(1), old])
    assert (found.cause, found.line) == ("data-changed", "train.py:3")


def test_a_script_that_does_not_repeat_itself_is_explained_first(against):
    def write(records, number, *_):
        write_steps(records, make_step(1, loss=f"run {number}"))

    found, calls = against(write, [make_step(1)])
    assert calls > 2
    assert any("two runs of today differ as well" in sentence for sentence in found.evidence)


def test_a_folder_without_records_is_refused(tmp_path):
    with pytest.raises(RunError, match="which has neither"):
        examine_against(Runner(["true"], tmp_path), tmp_path)
