"""A finished run in Python and in notebooks: its tables, its predictions, its page."""

import subprocess
import sys

import numpy as np
import pytest
import torch

import seedless
from seedless.core.errors import DataError, RunError
from tests.tiny import copy_run, flags_restored, give, merge


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    with flags_restored():
        out = tmp_path_factory.mktemp("finished") / "run"
        return seedless.fit(**give(), config=merge(), classes=["a", "b", "<c>"], out=out)


def test_it_prints_in_one_short_line(run):
    text = repr(run)
    assert "\n" not in text
    assert len(text) < 250
    for part in (str(run.path), "validation macro_auc 0.", "of 3", run.digest[:19]):
        assert part in text


def test_a_notebook_shows_a_table_in_which_names_are_escaped(run):
    page = run._repr_html_()
    assert page.startswith("<table>")
    assert "64 train, 32 val, 16 test" in page
    assert run.digest in page
    assert "<script>" not in seedless.load(run, give()["model"]())._repr_html_()
    odd = type(run)(run.path / "<script>\x1b", run.receipt, run.model)
    assert "&lt;script&gt;\\x1b" in odd._repr_html_()


def test_a_run_that_did_not_converge_says_so(run):
    claims = {**run.claims, "metrics": {**run.claims["metrics"], "converged": False}}
    failed = type(run)(run.path, {"predicate": claims}, run.model)
    assert "NOT CONVERGED" in repr(failed)
    assert "NOT CONVERGED" in failed._repr_html_()
    assert "NOT CONVERGED" not in repr(run) + run._repr_html_()


def test_the_tables_are_what_the_files_say(run):
    assert run.config.train.epochs == 3
    assert run.config.digest == run.claims["config"]["digest"]
    history = run.history
    assert list(history.index) == [1, 2, 3]
    assert list(history.columns) == ["step", "loss", "rate", "score", "seconds"]
    assert history["score"].iloc[-1] == pytest.approx(
        run.claims["metrics"]["validation"]["macro_auc"], abs=0.5
    )
    for split in ("validation", "test"):
        scores = run.claims["metrics"][split]
        column = run.metrics[split]
        assert column["macro_auc"] == scores["macro_auc"]
        assert column["auc:<c>"] == scores["classes"]["<c>"]["auc"]
        assert column["n"] == scores["n"]


def test_an_epoch_without_validation_has_no_score(tmp_path):
    given = give()
    del given["val"], given["test"]
    run = seedless.fit(**given, config=merge(), out=tmp_path / "run")
    assert run.history["score"].isna().all()
    assert list(run.metrics.columns) == ["train"]
    assert "train macro_auc" in repr(run)


def test_predictions_have_a_row_for_each_record(run):
    table = run.predictions
    assert len(table) == 32 + 16
    test = table.loc["test"]
    assert test["probability"].shape == test["label"].shape == (16, 3)
    np.testing.assert_allclose(test["probability"].sum(axis=1), 1)
    assert (test["label"].sum(axis=1) == 1).all()
    assert list(test["probability"].columns) == ["a", "b", "<c>"]


def test_predict_has_the_bits_of_the_runs_own_predictions(run):
    samples, _ = give()["test"]
    threads = torch.get_num_threads()
    found = run.predict(samples)
    assert torch.get_num_threads() == threads
    written = run.predictions.loc["test"]["probability"].to_numpy()
    order = [np.flatnonzero((written == row).all(axis=1)) for row in found]
    assert sorted(int(place[0]) for place in order) == list(range(16))
    assert found.dtype == np.float64
    np.testing.assert_array_equal(run.predict(torch.from_numpy(samples)), found)


def test_predict_refuses_what_it_cannot_use(run, tmp_path):
    with pytest.raises(DataError, match="NaN"):
        run.predict(np.full((2, 8), np.nan))
    with pytest.raises(DataError, match="no samples"):
        run.predict(np.empty((0, 8)))
    with pytest.raises(DataError, match=r"cannot process samples of shape \(5,\).*RuntimeError"):
        run.predict(np.zeros((2, 5)))
    given = {**give(), "loss": torch.nn.functional.cross_entropy}
    own = seedless.fit(**given, config=merge(), out=tmp_path / "own")
    assert "validation loss" in repr(own)
    with pytest.raises(RunError, match=r"run\.model"):
        own.predict(given["val"][0])
    with pytest.raises(RunError, match="no predictions"):
        own.predictions  # noqa: B018


def test_a_changed_file_is_not_shown(run, tmp_path):
    copy = copy_run(run.path, tmp_path / "run")
    log = copy / "log.jsonl"
    log.write_text(log.read_text().replace('"loss":', '"loss":1'))
    opened = type(run)(copy, run.receipt, run.model)
    with pytest.raises(RunError, match="not what its receipt says"):
        opened.history  # noqa: B018


def test_report_writes_the_page_of_the_run(run, tmp_path):
    page = run.report(out=tmp_path / "page.html")
    assert page == tmp_path / "page.html"
    assert page.read_text().startswith("<!doctype html>")


def test_pandas_is_loaded_only_when_it_is_asked_for(run):
    code = (
        "import sys, seedless; from tests.tiny import make_model; "
        f"run = seedless.load({str(run.path)!r}, make_model()); repr(run); run._repr_html_(); "
        "assert 'pandas' not in sys.modules; run.metrics; assert 'pandas' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=".")
