"""`seedless evaluate` and `seedless churn` on real run folders: the table, JSON, and refusals."""

import json
import shutil
import sys

import numpy as np
import pytest
import torch

from seedless.analysis.evaluation import evaluate
from seedless.analysis.run_churn import open_predictions
from seedless.cli.main import main
from seedless.core.config import parse_config
from seedless.runs.train import train_run
from tests.tiny import fit_run, flags_restored
from tests.train.problems import make_arrays

LEADS = ("I", "II")


def write_arrays(file, seed=0, classes=("a", "b", "c"), leads=LEADS, fs=100.0, rows=None):
    samples, labels = make_arrays(60, leads=2, length=48)
    rows = np.arange(60) if rows is None else rows
    np.savez(
        file,
        X=samples[rows] + np.float32(seed),
        Y=labels[rows],
        folds=(np.arange(60) % 10 + 1)[rows],
        ids=np.array([f"r{row:02d}" for row in range(60)])[rows],
        classes=np.array(classes),
        leads=np.array(leads),
        fs=np.array(fs),
    )
    return file


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two runs of the same data with other rates, a run of fit, and the data."""
    place = tmp_path_factory.mktemp("evaluate")
    write_arrays(place / "own.npz")
    with flags_restored():
        for name, rate in (("one", 1e-3), ("two", 0.1)):
            config = parse_config(
                {
                    "data": {"name": str(place / "own.npz")},
                    "model": {"name": "baseline", "small": True},
                    "order": {"batch_size": 12},
                    "execution": {"device": "cpu", "threads": 1},
                    "train": {"epochs": 1, "rate": rate},
                }
            )
            train_run(config, place / name)
        fit_run(place / "given")
    return place


@pytest.fixture
def seedless(monkeypatch, capfd):
    def run(*arguments, code=0):
        monkeypatch.setattr(sys, "argv", ["seedless", *map(str, arguments)])
        ended = 0
        with flags_restored():
            try:
                main()
            except SystemExit as end:
                ended = end.code or 0
        output = capfd.readouterr()
        assert ended == code, output
        return output

    return run


@pytest.fixture
def refuse(seedless):
    def run(*arguments):
        output = seedless(*arguments, code=2)
        (line,) = output.err.splitlines()
        assert output.out == ""
        assert line.startswith("error: ")
        return line

    return run


def test_the_scores_of_a_run_are_those_of_its_metrics(seedless, folder):
    found = json.loads(seedless("evaluate", folder / "one", "--json").out)
    metrics = json.loads((folder / "one" / "metrics.json").read_bytes())
    assert found["scores"] == metrics["test"]
    assert found["left_out"] == {"run": [], "data": []}
    held = seedless("evaluate", folder / "one", "--json", "--split", "validation").out
    assert json.loads(held)["scores"] == metrics["validation"]


def test_the_table_names_every_class_and_what_is_undefined(seedless, folder):
    text = seedless("evaluate", folder / "one").out
    metrics = json.loads((folder / "one" / "metrics.json").read_bytes())["test"]
    lines = {line.split()[0]: line for line in text.splitlines()}
    for name, row in metrics["classes"].items():
        shown = "undef." if row["auc"] is None else f"{row['auc']:.3f}"
        assert lines[name].split()[1:3] == [str(row["positives"]), shown]
    assert f"{metrics['macro_auc']:.3f}" in lines["macro"]
    assert "thresholds chosen on   validation" in text


def test_predicting_again_on_the_same_data_gives_the_same_scores(folder):
    """Scale, order of the batches and thresholds are the run's own, so even the bits agree."""
    with flags_restored():
        again = evaluate(folder / "one", data=str(folder / "own.npz"))
        other = evaluate(folder / "one", settings=[f"data.name={folder / 'own.npz'}"])
    assert again.scores == other.scores == evaluate(folder / "one").scores


def test_records_stored_in_another_order_are_scored_alike(folder, tmp_path):
    turned = write_arrays(tmp_path / "turned.npz", rows=np.arange(60)[::-1])
    with flags_restored():
        assert evaluate(folder / "one", data=str(turned)).scores == evaluate(folder / "one").scores


def test_other_data_are_scored_with_the_runs_scale_and_thresholds(folder, tmp_path):
    shifted = write_arrays(tmp_path / "shifted.npz", seed=1)
    with flags_restored():
        found = evaluate(folder / "one", data=str(shifted), split="all")
    own = evaluate(folder / "one").scores
    assert found.scores["n"] == 60
    assert found.scores["macro_auc"] != own["macro_auc"]  # a scale of its own would hide the shift
    for name, row in own["classes"].items():
        assert found.scores["classes"][name]["threshold"] == row["threshold"]


def test_records_the_run_was_trained_on_are_pointed_out(seedless, folder, tmp_path):
    """By content: another file, other names, and another split do not hide them."""
    same = write_arrays(tmp_path / "same.npz")
    command = ("evaluate", folder / "one", "--data", same)
    found = json.loads(seedless(*command, "--split", "all", "--json").out)
    assert found["trained"] == 48  # eight folds of ten
    assert "TRAINED ON             48 of these 60 records" in seedless(
        *command, "--split", "all"
    ).out.replace("\n", " ")
    assert json.loads(seedless(*command, "--json").out)["trained"] == 0  # its test split
    assert "TRAINED ON" not in seedless(*command).out
    other = write_arrays(tmp_path / "other.npz", seed=1)
    found = json.loads(seedless(*command[:3], other, "--split", "all", "--json").out)
    assert found["trained"] == 0


def test_where_the_runs_own_data_are_gone_nothing_is_claimed(seedless, folder, tmp_path):
    file, kept = folder / "own.npz", tmp_path / "kept.npz"
    command = ("evaluate", folder / "one", "--data", kept, "--split", "all", "--json")
    shutil.move(file, kept)
    try:
        assert json.loads(seedless(*command).out)["trained"] is None
        write_arrays(file, seed=3)  # others in their place
        assert json.loads(seedless(*command).out)["trained"] is None
    finally:
        shutil.move(kept, file)


def test_leads_and_classes_are_matched_by_name(seedless, folder, tmp_path):
    samples, labels = make_arrays(60, leads=2, length=48)
    np.savez(
        tmp_path / "other.npz",
        X=np.concatenate([samples[:, ::-1], samples[:, :1]], axis=1),
        Y=labels[:, [2, 0]],
        folds=np.arange(60) % 10 + 1,
        ids=np.array([f"r{row:02d}" for row in range(60)]),
        classes=np.array(["c", "a"]),
        leads=np.array(["II", "I", "V1"]),
        fs=np.array(100.0),
    )
    own = evaluate(folder / "one").scores["classes"]
    command = ("evaluate", folder / "one", "--data", tmp_path / "other.npz")
    found = json.loads(seedless(*command, "--json").out)
    assert list(found["scores"]["classes"]) == ["a", "c"]
    for name, row in found["scores"]["classes"].items():
        assert row["auc"] == pytest.approx(own[name]["auc"], abs=1e-9)
    assert found["left_out"] == {"run": ["b"], "data": []}
    assert "left out, only in the run: b" in seedless(*command).out


def test_incompatible_data_are_refused(refuse, folder, tmp_path):
    def ask(**changes):
        file = write_arrays(tmp_path / "odd.npz", **changes)
        return refuse("evaluate", folder / "one", "--data", file)

    assert "have no class in common: a, b, c against x, y, z" in ask(classes=("x", "y", "z"))
    assert "odd lacks II" in ask(leads=("I", "V6"))
    assert "read it with --set data.fs=100" in ask(fs=250.0)
    images = ("--data", "simulated-images", "--set", "data.records=40")
    assert "one is multi-label" in refuse("evaluate", folder / "one", *images)
    short, labels = make_arrays(60, leads=2, length=40)
    folds = np.arange(60) % 10 + 1
    np.savez(tmp_path / "short.npz", X=short, Y=labels, folds=folds, classes=np.array(list("abc")))
    said = refuse("evaluate", folder / "one", "--data", tmp_path / "short.npz")
    assert "trained on samples of shape (2, 48), short has (2, 40)" in said


def test_what_makes_no_sense_is_refused(refuse, folder, tmp_path):
    one = folder / "one"
    assert "choose --split validation or test" in refuse("evaluate", one, "--split", "train")
    assert "unknown group 'height'; known: age, sex" in refuse("evaluate", one, "--by", "height")
    assert "does not say the sex" in refuse("evaluate", one, "--by", "sex")
    assert "settings of the data" in refuse("evaluate", one, "--set", "train.epochs=3")
    assert "is a run of fit()" in refuse("evaluate", folder / "given", "--data", "simulated")
    assert "is a run of fit()" in refuse("evaluate", folder / "given", "--by", "age")
    assert "at least 40 resamples" in refuse("evaluate", one, "--resamples", "3")
    assert "no run at" in refuse("evaluate", tmp_path / "nowhere")
    other = shutil.copytree(one, tmp_path / "other")
    shutil.copy(folder / "two" / "predictions.npz", other)
    assert "not what its receipt says: predictions.npz was changed" in refuse("evaluate", other)


def test_a_run_of_fit_is_scored_from_its_predictions(seedless, folder):
    found = json.loads(seedless("evaluate", folder / "given", "--json").out)
    assert found["scores"]["accuracy"] > 0.3
    assert found["scores"]["effective_rank"] is None  # its model declares no head


def test_groups_by_sex_and_age(seedless, tmp_path):
    config = parse_config(
        {
            "data": {"name": "simulated", "preset": "tiny"},
            "model": {"name": "baseline", "small": True},
            "execution": {"device": "cpu", "threads": 1},
            "train": {"epochs": 1},
        }
    )
    with flags_restored():
        train_run(config, tmp_path / "run")
    found = json.loads(seedless("evaluate", tmp_path / "run", "--by", "sex", "--json").out)
    groups = found["subgroups"]["groups"]
    assert set(groups) == {"F", "M"}
    assert sum(group["n"] for group in groups.values()) == found["scores"]["n"]
    for name, row in found["scores"]["classes"].items():
        positives = [group["classes"][name]["positives"] for group in groups.values()]
        assert sum(positives) == row["positives"]
    assert "by age, against" in seedless("evaluate", tmp_path / "run", "--by", "age").out


def test_churn_of_a_run_with_its_copy_is_none(seedless, folder, tmp_path):
    copy = shutil.copytree(folder / "one", tmp_path / "copy")
    found = json.loads(seedless("churn", folder / "one", copy, "--json").out)
    assert found["exact"]["count"] == 0
    assert all(row["flips"]["count"] == 0 for row in found["classes"].values())


def test_churn_lists_the_records_that_flip(seedless, folder):
    runs = (folder / "one", folder / "two")
    found = json.loads(seedless("churn", *runs, "--json").out)
    flips = {name: row["flips"]["count"] for name, row in found["classes"].items()}
    assert sum(flips.values()) > 0  # the runs differ; so do their calls
    name = max(flips, key=flips.get)
    listed = seedless("churn", *runs, "--ids", name).out.splitlines()
    assert [line.split()[0] for line in listed[3:]] == [
        flip["id"] for flip in found["classes"][name]["records"]
    ]
    ids = open_predictions(folder / "one").splits["test"].ids.tolist()
    assert set(found["records"]) <= set(ids)
    text = seedless("churn", *runs).out
    assert "McNemar p" in text
    last = next(line for line in text.splitlines() if line.startswith("any class"))
    assert f"{found['exact']['rate']:.2%}" in last
    assert f"{found['mcnemar']['p']:.4f}" in last
    assert seedless("churn", *runs, "--half", "--split", "validation").out


def test_runs_that_cannot_be_compared_are_refused(refuse, folder):
    one = folder / "one"
    assert "two runs or more" in refuse("churn", one)
    assert "one of them twice" in refuse("churn", one, one)
    assert "multi-class" in refuse("churn", one, folder / "given")
    assert "unknown class 'd'" in refuse("churn", one, folder / "two", "--ids", "d")
    assert "no run at" in refuse("churn", one, folder / "nothing")


def test_features_are_what_the_head_receives(folder):
    from seedless.runs.opened_run import load

    run = load(folder / "one")
    for scored in open_predictions(folder / "one").splits.values():
        logits = run.model.head(torch.tensor(scored.features)).detach().double().sigmoid()
        np.testing.assert_allclose(logits.numpy(), scored.probabilities, atol=1e-6)
