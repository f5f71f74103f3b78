"""What the tables say, held against the runs they are made of."""

from dataclasses import replace

import numpy as np
import pytest

from seedless.analysis.run_churn import open_predictions
from seedless.studies.catalog import open_study
from seedless.studies.engine.ray_workers import run_ray
from seedless.studies.engine.runner import collect_results
from seedless.studies.engine.store import Store
from seedless.studies.engine.table import Published, Table
from seedless.studies.published import attribution, medmnist, noise
from seedless.studies.published.demographics import find_pairs
from tests.studies.conftest import SMOKE
from tests.studies.plans import plan
from tests.studies.tiny_grids import make_tiny_grid


@pytest.fixture
def read(smoke_store):
    """Return the results of a study."""

    def of(name, options=SMOKE):
        return collect_results(plan(name, options), Store(smoke_store))

    return of


def test_accuracy_is_that_of_the_predictions(read):
    results = read("cifar100")
    scores = replace(results, measure="accuracy").scores("dct")
    for one in results.outcomes_of("dct"):
        test = open_predictions(one.run).splits["test"]
        hits = test.probabilities.argmax(axis=1) == test.labels.argmax(axis=1)
        assert scores[one.point.replicate] == pytest.approx(hits.mean(), abs=1e-12)
    assert results.scores("dct") != scores


def test_churn_counts_the_images_that_seeds_disagree_about(read):
    results = read("medmnist")
    table = medmnist.tabulate_churn(results, ["retinamnist"])
    tests = [
        open_predictions(one.run).splits["test"]
        for one in results.outcomes_of("dct", "retinamnist")
    ]
    calls = np.stack([t.probabilities[np.argsort(t.ids)].argmax(axis=1) for t in tests])
    assert table.values[0]["flips"] == int((calls != calls[0]).any(axis=0).sum())


def test_proof_executes_runs_and_finds_the_broken_one(read, monkeypatch):
    from seedless.audit import Verdict
    from seedless.studies.engine import findings

    asked = []

    def check(run):
        asked.append(run.name)
        return Verdict("differs" if len(asked) == 2 else "identical", "")

    monkeypatch.setattr(findings, "verify", check)
    monkeypatch.setattr(findings, "read_finding", lambda *_: None)
    monkeypatch.setattr(findings, "write_finding", lambda *_: None)  # others share this store
    plain, proven = (
        medmnist.tabulate(read("medmnist", replace(SMOKE, prove=prove))) for prove in (False, True)
    )
    assert len(proven) == len(plain) + 1
    said = [row[3].partition(":")[0] for row in proven[-1].rows]
    assert said == ["identical", "differs", *["identical"] * 10]
    assert [row[1] for row in proven[-1].rows] == asked


def test_records_that_divide_the_seeds_are_named_with_their_votes(read):
    results = read("medmnist")
    rows = medmnist.tabulate_patients(results, ["chestmnist"]).rows
    tests = {}
    for arm in medmnist.PUBLISHED_ARMS:
        churn = medmnist.find_churn(results, arm, "chestmnist")
        for name, one in churn.classes.items():
            for flip in one.records:
                tests[f"chestmnist: {flip.id}", name, arm] = f"{sum(flip.calls)} of 2"
    assert rows
    for record, name, *votes in rows:
        for arm, vote in zip(medmnist.PUBLISHED_ARMS, votes, strict=True):
            assert vote == tests.get((record, name, arm), "all alike")


def test_a_test_that_cannot_be_made_says_who_is_missing(read):
    rows = open_study("demographics").tabulate(read("demographics"))[-1].rows
    for row in rows:
        assert row[3] or "a test over classes needs two" in row[5]


def test_explanations_that_differ_are_not_called_equal(read, monkeypatch):
    other = {"encoder": "sha256:00", "encoder.0.attention": "sha256:00"}
    monkeypatch.setattr(attribution, "digest_in_worker", lambda *_: other)
    table = attribution.tabulate(read("attribution"))[0]
    assert [row[3] for row in table.rows] == ["NO", "NO"]
    assert [row[5] for row in table.rows] == ["yes", "yes"]


def test_recorded_noise_is_another_noise(read, real_data):
    place = str(real_data / "nstdb-excerpt")
    found = {}
    for options in (SMOKE, replace(SMOKE, noise=place)):
        results = read("noise", options)
        found[options.noise] = noise.find_drops(results, "dct", "seed-free", "ma", 0.0)
    assert found[None].keys() == found[place].keys() == {"seed-free"}
    assert found[None] != found[place]


def test_classes_with_few_positives_are_not_compared(read):
    results = read("demographics")
    positives = results.classes("seed-free")
    assert all(positives[name] > 4 for name in find_pairs(results, "seed-free"))


@pytest.mark.parametrize(("value", "inside"), [(0.784, True), (0.7855, False)])
def test_a_published_interval_holds_what_lies_in_it(value, inside):
    # R: qt(.975, 19) * 0.003 / sqrt(20) = 0.001404
    assert Published(0.784, 0.003, 20).contains(value) is inside


def test_a_cluster_that_is_not_there_is_an_error_not_a_traceback(tmp_path, monkeypatch):
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    from seedless.core.errors import StudyError

    def fail(**_):
        raise ConnectionError("no such host")

    monkeypatch.setattr(ray, "init", fail)
    monkeypatch.setenv("RAY_ADDRESS", "far:1")
    with pytest.raises(StudyError, match=r"cluster at far:1: .*no such host"):
        run_ray(Store(tmp_path), make_tiny_grid().points)


def test_cells_hold_no_markup_and_begin_no_line():
    table = Table("scores", ("class", "AUC"), (("a|b <i>\n| c | d |\x1b [x](y)", "1"),), ("n\nm",))
    row = table.to_markdown().splitlines()[4]
    assert row == r"| a\|b &lt;i>\n\| c \| d \|\x1b [x]\(y) | 1 |"
    assert str(table).replace("\n", "").isprintable()
    assert str(table).count("\n") == 6
