"""Scores out of fold: every record once, by a model that never saw it, all of them together."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from typer.testing import CliRunner

from seedless.analysis.run_churn import open_predictions
from seedless.cli.study import app
from seedless.core.errors import StudyError
from seedless.evaluate.predictions import Predictions, SplitPredictions
from seedless.studies.engine.fold_pooling import (
    explain_pooling,
    hold_out,
    list_folds,
    pool_predictions,
    split_folds,
)
from seedless.studies.engine.grid import Grid, Point
from seedless.studies.engine.options import StudyOptions, choose_init
from seedless.studies.engine.results import Results, read_results
from seedless.studies.engine.store import Outcome, Store
from seedless.studies.engine.worker import Worker, read_points, write_points
from seedless.studies.published import golden, perclass
from seedless.studies.published.cv import FOLDS
from tests.studies.plans import plan
from tests.tiny import flags_restored

CLASSES = ("A", "B", "C")
OPTIONS = StudyOptions(seeds=1, device="cpu")


def predict_fold(fold, n=40, classes=CLASSES):
    """Return predictions of a fold: class A often, B at times, C in the first record alone."""
    draw = np.random.default_rng(fold)
    labels = np.zeros((n, 3), dtype=np.uint8)
    labels[:, 0] = draw.random(n) < 0.4
    labels[:3, 1] = 1
    labels[0, 2] = fold == 1
    said = np.clip(draw.random((n, 3)) * 0.7 + 0.2 * labels + 0.01 * fold, 0, 1)
    ids = np.array([f"{fold}-{row}" for row in range(n)])
    return Predictions(classes, "sha256:" + "0" * 64, {"test": SplitPredictions(ids, said, labels)})


@pytest.fixture
def runs():
    return {f"fold {fold}": predict_fold(fold) for fold in (1, 2, 3)}


def test_pooled_areas_are_those_over_all_records_and_rare_classes_have_none(runs):
    found = pool_predictions(runs)
    parts = [run.splits["test"] for run in runs.values()]
    said = np.concatenate([part.probabilities for part in parts])
    labels = np.concatenate([part.labels for part in parts])
    areas = [roc_auc_score(labels[:, k], said[:, k]) for k in (0, 1)]
    assert found["n"] == 120
    assert found["classes"]["A"]["auc"] == pytest.approx(areas[0])
    assert found["classes"]["B"] == {"auc": pytest.approx(areas[1]), "positives": 9}
    assert found["classes"]["C"] == {"auc": None, "positives": 1}
    assert found["macro_auc"] == pytest.approx(np.mean(areas))
    # Negative control: the mean of the folds' own areas is another number.
    alone = np.mean([roc_auc_score(p.labels[:, 0], p.probabilities[:, 0]) for p in parts])
    assert abs(alone - areas[0]) > 1e-4


def test_five_positives_are_enough_and_four_are_not(runs):
    assert pool_predictions(runs, least=9)["classes"]["B"]["auc"] is not None
    assert pool_predictions(runs, least=10)["classes"]["B"]["auc"] is None


def test_the_same_records_twice_other_classes_and_no_runs_are_refused(runs):
    with pytest.raises(StudyError, match="tested on the same records"):
        pool_predictions({**runs, "again": runs["fold 1"]})
    other = predict_fold(4, classes=("A", "B", "D"))
    with pytest.raises(StudyError, match="other has other classes than fold 1"):
        pool_predictions({**runs, "other": other})
    with pytest.raises(StudyError, match="at least one run"):
        pool_predictions({})


def test_folds_go_round_and_three_are_the_published_ones():
    assert tuple(list_folds(3)) == FOLDS
    tests, vals = zip(*list_folds(10), strict=True)
    assert sorted(tests) == sorted(vals) == list(range(1, 11))
    assert all(test != val for test, val in list_folds(10))
    for bad in (0, 1, 11, True):
        with pytest.raises(StudyError, match="from 2 to 10"):
            list_folds(bad)


def test_a_grid_without_folds_stays_and_with_them_shares_the_usual_run(tmp_path):
    plain = golden.make(OPTIONS)
    assert split_folds(plain, None) is plain
    spread = golden.make(StudyOptions(seeds=1, device="cpu", folds=3))
    assert len(spread.points) == 3 * len(plain.points)
    assert {point.key for point in plain.points} < {point.key for point in spread.points}
    assert len({point.key for point in spread.points}) == len(spread.points)
    assert spread.points[1].label.endswith("offset 0 / test fold 9")
    write_points(spread.points, tmp_path / "points.json")
    assert tuple(read_points(tmp_path / "points.json")) == spread.points


def test_images_have_no_folds_to_pool_over(tmp_path):
    grid = perclass.make(StudyOptions(seeds=1, device="cpu", folds=2))
    parts = {point.block: point.part for point in grid.points}
    assert parts["ecg"]
    assert parts["ecg, seed-free"]
    assert not parts["chestmnist"]
    told = "Not pooled, for want of folds: chestmnist; chestmnist, seed-free."
    assert told in explain_pooling(grid, 2)
    file = tmp_path / "bloodmnist.npz"
    file.touch()
    with pytest.raises(StudyError, match="no folds to pool over"):
        perclass.make(StudyOptions(seeds=1, device="cpu", folds=2, data=str(file)))


def test_a_replicate_with_a_failed_fold_has_no_score_and_is_counted(runs, monkeypatch):
    monkeypatch.setattr(  # these runs are nowhere on the disk
        "seedless.studies.engine.store.open_validated",
        lambda run: SimpleNamespace(read_predictions=lambda: runs[run]),
    )
    point = Point("mixed", "seed 0", OPTIONS.ecg())
    points = [hold_out(point, test, val) for test, val in list_folds(3)]
    good = {"test": {"macro_auc": 0.5, "classes": {}}, "converged": True}
    outcomes = [Outcome(p, run, good, "w", None) for p, run in zip(points, runs, strict=True)]
    grid = Grid("x", (), tuple(points))
    whole = Results(grid, tuple(outcomes), OPTIONS)
    assert whole.scores("mixed") == {"seed 0": pool_predictions(runs)["macro_auc"]}
    assert whole.classes() == {"A": whole.classes()["A"], "B": 9, "C": 1}
    assert whole.scores("mixed", class_name="C") == {}
    assert whole.count("mixed") == (3, 0, 0)
    outcomes[1] = Outcome(points[1], "fold 2", None, None, "it broke")
    broken = Results(grid, tuple(outcomes), OPTIONS)
    assert broken.scores("mixed") == {}
    assert broken.count("mixed") == (3, 1, 0)


def test_pooled_runs_score_every_record_of_their_folds_once(tmp_path):
    train = {"epochs": 1, "warmup_steps": 0}
    config = OPTIONS.ecg(init=choose_init("mixed"), train=train)
    grid = split_folds(Grid("x", (), (Point("mixed", "seed-free", config),)), 2)
    store = Store(tmp_path)
    worker = Worker(store)
    with flags_restored():
        assert all(worker.execute(point) for point in grid.points)
    results = read_results(grid, store, OPTIONS)
    folds = [open_predictions(store.run_folder(point)).splits["test"] for point in grid.points]
    assert not {*folds[0].ids} & {*folds[1].ids}
    assert sum(results.classes().values()) == sum(int(fold.labels.sum()) for fold in folds)
    macro = results.scores("mixed")["seed-free"]
    labels = np.concatenate([fold.labels for fold in folds])
    said = np.concatenate([fold.probabilities for fold in folds])
    enough = labels.sum(axis=0) >= 5
    assert 0 < enough.sum() < len(enough)
    known = roc_auc_score(labels[:, enough], said[:, enough], average="macro")
    assert macro == pytest.approx(known)


def test_folds_are_refused_by_a_study_that_has_no_use_for_them(run_seedless):
    with pytest.raises(StudyError, match="--folds has no meaning for the study main"):
        plan("main", StudyOptions(folds=3))
    done = CliRunner().invoke(app, ["plan", "golden", "--folds", "2", "--seeds", "1"])
    assert done.exit_code == 0
    assert "conformer / mixed / offset 0 / test fold 9" in done.output
    refused = run_seedless("study", "plan", "main", "--folds", "3", check=False)
    assert refused.returncode == 2
    assert refused.stderr.strip().count("\n") == 0
