"""A run that is ended and started again, compared with one that was not ended."""

import pytest

from seedless.audit.doctor import pair as pairs
from seedless.audit.doctor.examine_resume import examine_resume
from seedless.audit.doctor.pair import Runner
from seedless.core.errors import RunError
from tests.audit.doctor.records import Script, make_step, write_steps


def make_steps(first, last, **changed):
    return [
        make_step(
            1 + number - first,
            weights_before=f"w{number - 1}",
            weights=f"w{number}",
            **(changed if number == first else {}),
        )
        for number in range(first, last + 1)
    ]


@pytest.fixture
def resume(monkeypatch, tmp_path):
    """Return a function that ends a script after two of its four steps and starts it again."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")

    def resume(*parts, last=2):
        script = Script(lambda records, number, *_: write_steps(records, *parts[number - 1]))
        monkeypatch.setattr(pairs, "execute", script.execute)
        runner = Runner(["python", "train.py"], tmp_path / "runs")
        found = examine_resume(runner, last).diagnosis
        return found, [settings.end_after for settings, _ in script.calls]

    return resume


def test_an_exact_resume_is_identical(resume):
    found, ends = resume(make_steps(1, 4), make_steps(1, 2), make_steps(3, 4))
    assert (found.identical, found.steps) == (True, 2)
    assert ends == [None, 2, None]


def test_a_resume_that_is_not_exact_differs(resume):
    found, _ = resume(make_steps(1, 4), make_steps(1, 2), make_steps(3, 4, rate="x"))
    assert (found.identical, found.step, found.cause) == (False, 3, "resume-scheduler")
    assert "scheduler.state_dict()" in found.remedy


def test_runs_that_differ_before_are_explained_without_the_resume(resume):
    parts = [make_steps(1, 4), make_steps(1, 2, loss="x"), *[make_steps(1, 4)] * 20]
    found, _ = resume(*parts)
    assert any("without any resume" in sentence for sentence in found.evidence)


def test_a_restart_without_a_step_cannot_be_told(resume):
    found, _ = resume(make_steps(1, 4), make_steps(1, 2), [])
    assert found.identical is None
    assert "after the restart, no training step was recorded" in found.reason


def test_the_step_must_be_before_the_last_one(resume):
    with pytest.raises(RunError, match="between 1 and 3"):
        resume(make_steps(1, 4), make_steps(1, 4), [], last=4)
