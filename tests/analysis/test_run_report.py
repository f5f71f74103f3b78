"""Pages of finished runs: what they claim is what the receipts hold, and bad input is refused."""

import json
import re
import shutil

import numpy as np
import pytest
from matplotlib.figure import Figure

from seedless.analysis import demo, examples
from seedless.analysis.examples import draw_examples
from seedless.analysis.run_report import report, view_run
from seedless.core.config import override, parse_config
from seedless.core.config_files import open_config
from seedless.core.errors import RunError
from seedless.core.setting_choices import check_choices
from seedless.evaluate.attribution import Attribution
from seedless.report.page import render_page
from seedless.runs.train import train_run
from seedless.runs.validation import open_validated
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
    assert "get a different answer from at least one of these runs" in page
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
    from seedless.core.errors import DataError

    def refuse(run):
        raise DataError("gone")

    monkeypatch.setattr(examples, "open_run", refuse)
    assert 'id="examples"' not in report(*runs[:1], out=tmp_path / "page.html").read_text()


def make_own_run(folder, name, seed=0, **arrays):
    """Train the ECG preset on a user's arrays: 60 signals of 3 leads, with class numbers."""
    draw = np.random.default_rng(1)
    numbers = draw.integers(0, 3, 60)
    waves = np.sin(np.arange(120) / 9 * (1 + numbers[:, None, None])) * [[1.0], [0.5], [-0.7]]
    signals = 900 * (waves + 0.4 * draw.normal(size=waves.shape))
    file = folder / f"{name}.npz"
    folds = np.arange(60) % 10 + 1
    np.savez(file, **{"X": signals.astype("f4"), "Y": numbers, "folds": folds, **arrays})
    settings = [
        f"data.name={file}",
        *("init.basis=kaiming", f"init.seed={seed}", "train.epochs=1", "train.warmup_steps=0"),
        *("execution.device=cpu", "execution.threads=1"),
    ]
    return train_run(override(open_config("ecg-small"), settings), folder / name).path


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """Runs on class numbers without names and rate, twice, and on named leads with a rate."""
    folder = tmp_path_factory.mktemp("own")
    labels = np.eye(3, dtype=np.uint8)[np.arange(60) % 3]
    labels[:2] = 0  # two training records have no label
    named = {"Y": labels, "leads": np.array(["I", "II", "V1"]), "fs": 50}
    numbers = [make_own_run(folder, f"numbers-{seed}", seed) for seed in (0, 1)]
    return [*numbers, make_own_run(folder, "named", **named)]


@pytest.fixture
def drawn(monkeypatch):
    """The texts in every figure that is saved."""
    found, save = [], Figure.savefig

    def record(figure, *arguments, **options):
        found.append([text.get_text() for axes in figure.axes for text in axes.texts])
        return save(figure, *arguments, **options)

    monkeypatch.setattr(Figure, "savefig", record)
    return found


def test_a_unit_that_is_not_known_is_not_drawn_as_millivolts(own, runs, drawn):
    draw_examples(open_validated(own[2]), 1)
    assert {"I", "II", "V1"} <= set(drawn[0])
    assert any("25 mm/s" in text and "mm per unit, unit unknown" in text for text in drawn[0])
    # Negative control: simulated records are in millivolts.
    draw_examples(open_validated(runs[0]), 1)
    assert any("10 mm/mV" in text for text in drawn[2])


def test_signals_without_names_and_rate_are_drawn_as_signals(own, drawn):
    draw_examples(open_validated(own[0]), 1)
    assert {"lead 1", "lead 2", "lead 3"} <= set(drawn[0])
    assert any("120 samples, rate unknown" in text for text in drawn[0])


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_caption_names_a_tint_only_where_there_is_one(own, monkeypatch, value):
    def explain(model, samples, targets):
        maps = np.full((1, samples.shape[-1]), value, dtype=np.float32)
        return Attribution(("a",), ("b",), "gradcam", "layer", maps)

    monkeypatch.setattr(examples, "explain_classes", explain)
    (example,) = draw_examples(open_validated(own[0]), 1)
    caption = example.caption
    assert ("Tinted: the evidence for" in caption) is bool(value)
    assert ("tinted where the evidence for" in example.seen) is bool(value)
    assert ("Nothing is tinted: Grad-CAM finds no evidence for" in caption) is not bool(value)


def test_the_answer_of_a_multi_class_run_needs_no_threshold(own, runs, tmp_path):
    def read_answers(*folders):
        page = report(*folders, out=tmp_path / f"{folders[0].name}.html", examples=0).read_text()
        return page.split('<section id="churn">')[1].split("</section>")[0]

    numbers = read_answers(*own[:2])
    assert "the answer of a run is its most probable class" in numbers
    assert "threshold" not in numbers
    assert "at the thresholds it chose on validation" in read_answers(*runs[:2])
    one = report(own[0], out=tmp_path / "one.html", examples=0).read_text()
    assert "those of each class against all others" in one
    several = report(runs[0], out=tmp_path / "several.html", examples=0).read_text()
    assert "those of each class against all others" not in several


def test_runs_that_differ_are_told_apart_in_the_curves(runs, tmp_path):
    page = report(*runs, out=tmp_path / "page.html", examples=0).read_text()
    learning = page.split('<section id="learning">')[1].split("</section>")[0]
    drawings, legend = learning.split('<ul class="legend')
    looks = re.findall(r'class="line ([^"]+)"', legend)
    assert len(set(looks)) == len(runs) == 3
    for drawing in drawings.split("</figure>")[:-1]:
        assert re.findall(r'class="line ([^"]+)"', drawing) == looks
    assert all(run.name in legend for run in runs)


def test_records_without_a_label_are_not_counted_as_trained_on(own, tmp_path):
    page = report(own[2], out=tmp_path / "named.html", examples=0).read_text()
    assert "<b>48</b> training records, labelled or not" in page
    numbers = report(own[0], out=tmp_path / "numbers.html", examples=0).read_text()
    assert "<b>48</b> training records</li>" in numbers


def test_a_pattern_names_the_folders_that_it_matches(runs, tmp_path):
    one = report(*runs[:2], out=tmp_path / "one.html", examples=0).read_text()
    pattern = str(runs[0].with_name("seed-*"))
    assert report(pattern, out=tmp_path / "two.html", examples=0).read_text() == one
    with pytest.raises(
        RunError, match=r"no run at '.*none-\*': expected a run folder, or a pattern"
    ):
        report(str(runs[0].with_name("none-*")), out=tmp_path / "three.html")


def test_what_is_there_is_replaced_with_an_argument_that_python_has(runs, tmp_path):
    there = tmp_path / "there.html"
    there.write_text("mine")
    with pytest.raises(RunError, match=r"force=True"):
        report(runs[0], out=there, examples=0)
    with pytest.raises(RunError, match=r"force=True"):
        train_run(parse_config({}), runs[0])


def test_the_demo_shows_what_a_seed_changes_beside_a_repeat(runs, tmp_path):
    twin = shutil.copytree(runs[2], tmp_path / "twin")
    views = [
        view_run(open_validated(run), label)
        for run, label in zip(
            [runs[2], twin, *runs[:2]], ["first", "second", "seed 0", "seed 1"], strict=True
        )
    ]
    page = render_page(views[:2], title="demo", seeds=views[2:])
    section = page.split('<section id="seeds">')[1].split("</section>")[0]
    assert "<b>0 of 23</b> get a different answer from a repeat" in section
    found = int(re.search(r"<b>(\d+) of 23</b> test records", section)[1])
    one, two = (view.predictions.splits["test"] for view in views[2:])
    assert found == int((one.probabilities.argmax(1) != two.probabilities.argmax(1)).sum()) > 0
    for view in views[2:]:
        assert f"<b>{view.metrics['test']['macro_auc']:.3f}</b> with {view.label}" in section
    assert '<a href="#seeds">What a seed changes</a>' in page
    assert '<section id="seeds">' not in render_page(views[:2], title="demo")


def test_the_runs_of_the_demo_are_configurations_that_exist():
    for name in demo.SEEDS:
        settings = [word for word in demo._seed(name) if word != "--set"]
        config = override(open_config(demo.PRESET), settings)
        check_choices(config)
        assert config.init.seed == config.order.seed == int(name[-1])
