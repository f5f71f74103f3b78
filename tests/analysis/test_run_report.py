"""Pages of finished runs: what they claim is what the receipts hold, and bad input is refused."""

import json
import re
import shutil

import pytest

from seedless.analysis.run_report import report
from seedless.core.config import parse_config
from seedless.core.errors import RunError
from seedless.runs.train import train_run
from tests.tiny import fit_run


def make_run(out, basis="kaiming", seed=None, classes=None):
    order = {"name": "content"} if seed is None else {"name": "seeded", "seed": seed}
    config = {
        "data": {"name": "simulated", "preset": "tiny"},
        "model": {"name": "conformer", "small": True},
        "init": {"basis": basis, "seed": seed if basis == "kaiming" else None},
        "order": {**order, "batch_size": 64},
        "train": {"epochs": 1, "warmup_steps": 2, "checkpoint_every": 1},
        "execution": {"device": "cpu", "threads": 1},
    }
    return train_run(parse_config(config), out).path


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    seeded = [make_run(folder / f"seed-{seed}", seed=seed) for seed in (0, 1)]
    return [*seeded, make_run(folder / "free", basis="dct")]


def digest_of(run):
    return json.loads((run / "receipt.json").read_bytes())["predicate"]["weights"]["digest"]


def test_a_single_run_shows_its_digests_scores_and_examples(runs, tmp_path):
    page = report(*runs[:1], out=tmp_path / "one.html").read_text()
    assert digest_of(runs[0]).removeprefix("sha256:") in page
    assert page.count('<figure class="example">') == 2
    assert "Grad-CAM" in page
    classes = json.loads((runs[0] / "metrics.json").read_bytes())["test"]["classes"]
    defined = [name for name, found in classes.items() if found["auc"] is not None]
    assert page.count('aria-label="ROC curve of') == len(defined) > 0
    assert page.count('aria-label="Reliability of') == len(defined)
    assert "thresholds" not in page.split("<table")[0]


def test_the_page_of_a_run_lies_in_its_folder_and_leaves_it_valid(runs, tmp_path):
    run = shutil.copytree(runs[0], tmp_path / "run")
    page = report(run, examples=0)
    assert page == run / "report.html"
    assert "Not a valid run" not in page.read_text()


def test_runs_that_vary_are_points_with_the_seed_free_run_starred(runs, tmp_path):
    page = report(*runs, out=tmp_path / "many.html", examples=0).read_text()
    assert "3 runs, 3 models" in page
    for run in runs:
        assert digest_of(run).removeprefix("sha256:") in page
    strips = re.findall(r'<svg class="strip"[^>]*role="img".*?</svg>', page, re.DOTALL)
    assert strips
    assert all(strip.count('class="one"') == 2 for strip in strips)
    assert all(strip.count('class="star"') == 1 for strip in strips)
    assert "get another answer from at least one of these runs" in page
    again = report(*runs, out=tmp_path / "again.html", examples=0).read_text()
    assert again == page


def test_repeats_of_one_run_change_no_ones_answer(runs, tmp_path):
    twin = shutil.copytree(runs[0], tmp_path / "twin")
    page = report(runs[0], twin, out=tmp_path / "two.html", examples=0).read_text()
    assert "Two runs that recorded the same bits" in page
    assert "get the same answer from every run" in page


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [("trail.jsonl", b'"loss":', b'"lose":'), ("metrics.json", b'"converged"', b'"converted"')],
)
def test_a_changed_run_has_no_page(runs, tmp_path, file, old, new):
    changed = shutil.copytree(runs[0], tmp_path / "run") / file
    changed.write_bytes(changed.read_bytes().replace(old, new, 1))
    with pytest.raises(RunError, match=f"not what its receipt says: .*{re.escape(file)}"):
        report(changed.parent, out=tmp_path / "page.html", examples=0)
    assert not (tmp_path / "page.html").exists()


def test_what_cannot_be_shown_together_is_refused(runs, tmp_path):
    out = tmp_path / "page.html"
    with pytest.raises(RunError, match="at least one run"):
        report(out=out)
    with pytest.raises(RunError, match="name a file"):
        report(*runs[:2])
    with pytest.raises(RunError, match="named twice"):
        report(runs[0], runs[0], out=out)
    with pytest.raises(RunError, match="no receipt"):
        report(runs[0].parent, out=out)
    other = fit_run(tmp_path / "fit")
    with pytest.raises(RunError, match="differ in their task"):
        report(runs[0], other, out=out)


def test_a_run_of_fit_has_a_page_without_examples(tmp_path):
    page = report(fit_run(tmp_path / "fit"), out=tmp_path / "page.html").read_text()
    assert 'id="examples"' not in page
    assert 'id="plots"' in page


def test_a_page_replaces_nothing_and_is_not_put_into_a_run(runs, tmp_path):
    there = tmp_path / "there.html"
    there.write_text("mine")
    with pytest.raises(RunError, match="there already"):
        report(*runs[:1], out=there, examples=0)
    assert there.read_text() == "mine"
    report(*runs[:1], out=there, examples=0, force=True)
    run = shutil.copytree(runs[1], tmp_path / "run")
    for out in (run / "weights.safetensors", run / "page.html"):
        with pytest.raises(RunError, match=r"there already|inside the run folder"):
            report(runs[0], run, out=out, examples=0)


def test_every_run_of_a_page_is_checked(runs, tmp_path):
    forged = shutil.copytree(runs[1], tmp_path / "forged") / "metrics.json"
    metrics = json.loads(forged.read_bytes())
    metrics["test"]["macro_auc"] = 0.999
    forged.write_text(json.dumps(metrics))
    with pytest.raises(RunError, match=r"forged is not what its receipt says: metrics\.json"):
        report(runs[0], forged.parent, out=tmp_path / "p.html", examples=0)
    assert not (tmp_path / "p.html").exists()


def test_a_run_whose_data_are_gone_has_no_examples(runs, tmp_path, monkeypatch):
    from seedless.analysis import run_report
    from seedless.core.errors import DataError

    def refuse(run):
        raise DataError("gone")

    monkeypatch.setattr(run_report, "open_run", refuse)
    assert 'id="examples"' not in report(*runs[:1], out=tmp_path / "page.html").read_text()
