"""Sources of spread: each varied alone, none by accident; a CPU adds none of its own."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import device_repeats
from seedless.core.config import flatten
from seedless.studies.engine.figures import encode_png
from seedless.studies.engine.findings import find_path
from seedless.studies.engine.options import StudyOptions, choose_init
from seedless.studies.engine.results import Results
from seedless.studies.engine.store import Store
from seedless.studies.published import variance
from seedless.studies.shared import plain_repeats
from tests.studies.fake_outcomes import make_results
from tests.tiny import flags_restored

OPTIONS = StudyOptions(seeds=3, device="cpu")


def settings_that_vary(block):
    points = [p for p in variance.make(OPTIONS).points if p.block == block]
    settings = [flatten(point.config.identity()) for point in points]
    return {key for key in settings[0] if len({one[key] for one in settings}) > 1}


@pytest.mark.parametrize(
    ("block", "known"),
    [
        (variance.INITIALIZATION, {"init.seed"}),
        (variance.ORDER, {"order.seed"}),
        (variance.FOLD, {"data.test_fold", "data.val_fold"}),
        (variance.CROSSED, {"init.seed", "order.seed"}),
    ],
)
def test_a_source_varies_alone(block, known):
    assert settings_that_vary(block) == known


def score(point):
    """Return a score made of two effects that add up, and of the fold."""
    if point.block == variance.FOLD:
        return {"10": 0.9, "9": 0.91, "8": 0.95}[point.replicate.split()[-1]]
    return 0.8 + 0.02 * (point.config.init.seed or 0) + 0.001 * (point.config.order.seed or 0)


def test_sd_and_share_are_those_of_numpy():
    results = make_results(variance.make(OPTIONS), OPTIONS, score)
    found, crossed = variance.tabulate(results)
    known = {
        "initialization": np.var([0, 0.02, 0.04], ddof=1),
        "order": np.var([0, 0.001, 0.002], ddof=1),
        "fold": np.var([0.9, 0.91, 0.95], ddof=1),
    }
    for value in found.values:
        assert value["sd"] == pytest.approx(np.sqrt(known[value["source"]]))
        assert value["share"] == pytest.approx(known[value["source"]] / sum(known.values()))
    parts = {value["source"]: value["variance"] for value in crossed.values}
    assert parts["initialization"] == pytest.approx(known["initialization"])
    assert parts["order"] == pytest.approx(known["order"])
    assert parts["initializationxorder and repeats"] == pytest.approx(0, abs=1e-12)


def test_intervals_of_sds_cover():
    """Of 2,000 samples of 8 normal scores, about 95 % of the intervals hold the true SD, 1."""
    normal = np.random.default_rng(0).standard_normal((2000, 8))
    intervals = [variance.find_sd_interval(row.std(ddof=1), 8) for row in normal]
    covered = np.mean([low <= 1 <= high for low, high in intervals])
    assert 0.935 < covered < 0.965
    found = variance.tabulate(make_results(variance.make(OPTIONS), OPTIONS, score))[0]
    low, high = found.values[0]["interval"]
    assert low < found.values[0]["sd"] < high
    assert found.rows[0][3] == f"{low:.5f} to {high:.5f}"


def test_the_device_is_not_measured_on_a_cpu_and_that_is_said():
    results = make_results(variance.make(OPTIONS), OPTIONS, score)
    row = variance.tabulate(results)[0].rows[-1]
    assert row[:3] == ("device operations", "0", "not measured: a CPU repeats")
    assert encode_png(variance.draw(results))[:4] == b"\x89PNG"


def test_a_failed_run_leaves_the_rest_and_an_unbalanced_design_undecomposed():
    def fail_one(point):
        return None if point.replicate == "start 0, order 0" else score(point)

    found, crossed = variance.tabulate(make_results(variance.make(OPTIONS), OPTIONS, fail_one))
    assert len(found.values) == 3
    assert crossed.rows == ()
    assert "needs all 9 combinations" in crossed.notes[0]


def test_one_seed_is_too_few():
    options = StudyOptions(seeds=1, device="cpu")
    found, crossed = variance.tabulate(make_results(variance.make(options), options, score))
    assert [row[2] for row in found.rows[:2]] == ["too few runs"] * 2
    assert "Not decomposed" in crossed.notes[0]


def tiny(**changes):
    train = {"epochs": 1, "warmup_steps": 0}
    return StudyOptions(device="cpu").ecg(
        init=choose_init("mixed"), order={"name": "content"}, train=train, **changes
    )


def test_plain_repeats_are_equal_on_a_cpu_and_differ_from_another_start():
    with flags_restored():
        one, again = plain_repeats.repeat_plain(tiny(), 2)
        (other,) = plain_repeats.repeat_plain(tiny().change(init={"basis": "dct"}), 1)
    assert one == again
    assert one != other


@pytest.mark.gpu
def test_the_device_is_measured_where_there_is_a_gpu():
    with flags_restored():
        options = StudyOptions(device="cuda")
        scores = variance.measure_device(Results(variance.make(options), (), options))
    assert scores is not None
    assert len(scores) == variance.REPEATS


def test_repeats_are_kept_beside_the_run_for_machines_without_a_gpu(smoke_store, monkeypatch):
    """Written after every repeat, and read before any is made."""
    options = StudyOptions(device="cpu")
    store, grid = Store(smoke_store), variance.make(options)
    point = device_repeats.find_seed_free(grid)
    assert point.config.digest == options.ecg_run("mixed", None).digest  # main's seed-free run
    results = Results(grid, (store.read(point),), options)
    assert variance.measure_device(results) is None
    monkeypatch.setattr(variance.torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(variance.torch.cuda, "get_device_name", lambda: "a GPU")
    made = iter(range(100))
    monkeypatch.setattr(variance, "repeat_plain", lambda _, count: [next(made) / 100] * count)
    on_gpu = replace(results, options=StudyOptions(device="cuda"))
    file = find_path(store.run_folder(point), variance.REPEATED)
    try:
        scores = variance.measure_device(on_gpu)
        assert scores == [number / 100 for number in range(variance.REPEATS)]
        assert variance.measure_device(results) == scores  # without training anything
        assert next(made) == variance.REPEATS
    finally:
        file.unlink()
