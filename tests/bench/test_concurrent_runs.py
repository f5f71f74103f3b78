"""Runs at once: their own bits, and no harm from one that fails."""

import json

import pytest

from seedless.bench.concurrent_runs import make_job_config, run_concurrently
from seedless.core.errors import RunError, UnknownNameError
from seedless.core.processes import list_device_slots
from seedless.runs.parallel_runs import TrainingJob, train_many

QUICK = ["data.preset=tiny", "train.epochs=1", "execution.threads=1", "execution.device=cpu"]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    work = tmp_path_factory.mktemp("work")
    config = make_job_config("baseline", QUICK)
    return work, run_concurrently(config, 2, work=work)


def test_runs_at_once_have_the_bits_they_have_alone(found):
    work, together = found
    assert together.same
    assert [pair.error for pair in together.pairs] == [None, None]
    first, second = together.pairs
    assert first.alone != second.alone  # two jobs, or one could stand for the other
    for way in ("alone", "together"):
        for number, pair in enumerate(together.pairs):
            receipt = json.loads((work / way / str(number) / "receipt.json").read_bytes())
            assert receipt["predicate"]["weights"]["digest"] == getattr(pair, way)
    assert together.samples > 0
    assert together.as_values()["together_samples_per_second"] > 0


def test_a_failed_job_does_not_stop_the_others(found, tmp_path):
    work, together = found
    good = TrainingJob(str(work / "job.toml"), tmp_path / "good", ("order.offset=0",))
    bad = TrainingJob("nonesuch", tmp_path / "bad")
    results = train_many([bad, good], runs_per_device=2)
    assert [result.ok for result in results] == [False, True]
    assert results[0].exit_code == 2
    assert "unknown preset 'nonesuch'" in results[0].stderr
    assert results[1].digest == together.pairs[0].alone
    assert results[1].job == good


def test_jobs_that_cannot_be_run_are_refused(tmp_path):
    job = TrainingJob("demo", tmp_path / "run")
    with pytest.raises(RunError, match="two jobs would write"):
        train_many([job, job])
    with pytest.raises(RunError, match="runs_per_device to be an integer >= 1, got 0"):
        train_many([job], runs_per_device=0)
    with pytest.raises(RunError, match="at least one run"):
        run_concurrently(make_job_config("baseline"), 0)
    with pytest.raises(UnknownNameError, match="baselin"):
        make_job_config("baselin")
    assert train_many([]) == []


def test_each_device_is_named_as_its_process_shall_see_it(monkeypatch):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 3)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert list_device_slots(None) == ["0", "1", "2"]
    assert list_device_slots([2]) == ["2"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,6,7")
    assert list_device_slots([0, 2]) == ["4", "7"]
    with pytest.raises(RunError, match="no CUDA device 3"):
        list_device_slots([3])
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    assert list_device_slots(None) == [None]


def test_images_have_a_job_of_their_own():
    assert make_job_config("resnet18").data.name == "simulated-images"
