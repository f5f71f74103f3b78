"""Model cards: valid YAML, honest words, nothing invented, and the same bytes every time."""

import json

import pytest

from seedless.core.errors import SeedlessError
from seedless.report.card import make_card, write_front_matter
from seedless.report.run_view import RunView

yaml = pytest.importorskip("yaml")


def make_view(**changes):
    """Return a run as a page or a card sees it; a key of ``changes`` replaces a part of it."""
    predicate = {
        "kind": "train",
        "config": {
            "digest": "sha256:" + "c" * 64,
            "values": {
                "model": {"name": "conformer", "leads": 12, "channels": None, "small": True},
                "order": {"name": "content", "batch_size": 32},
                "init": {"basis": "mixed"},
                "train": {"epochs": 8, "optimizer": "adam", "rate": 0.001},
            },
        },
        "source": {"name": "seedless", "version": "0.1.0", "digest": "sha256:" + "5" * 64},
        "environment": {
            "python": "3.11.7",
            "packages": {"torch": "2.13.0", "numpy": "2.4"},
            "cpu": {"model": "CPU", "capability": "AVX2"},
            "threads": {"intraop": 1},
            "devices": [{"name": "GPU | one"}],
        },
        "data": {
            "name": "ptb-xl",
            "digest": "sha256:" + "d" * 64,
            "classes": ["SR", "AF|IB", "PACE"],
            "records": {"train": 1200, "test": 50},
            "task": "multi-label",
            "scale": {"mean": [0.5], "deviation": [2.0]},
        },
        "model": {"type": "Conformer", "parameters": 26322},
        "promise": {"same_bits": True, "generators_moved": [], "control": None},
        "weights": {"digest": "sha256:" + "a" * 64, "md5": "b" * 32, "epoch": 6},
    }
    metrics = {
        "test": {
            "n": 50,
            "macro_auc": 0.75,
            "classes": {
                "AF|IB": {"auc": 0.5, "positives": 3},
                "PACE": {"auc": None, "positives": 0},
                "SR": {"auc": 1.0, "positives": 40},
            },
        },
        "selected": {"epoch": 6, "metric": "macro_auc", "score": 0.8},
        "converged": True,
    }
    predicate |= changes.get("predicate", {})
    receipt = {"predicate": predicate, "subject": [{"digest": {"sha256": "f" * 64}}]}
    return RunView(
        changes.get("label", "my model"), receipt, "", (), (), changes.get("metrics", metrics)
    )


def split_card(text):
    """Return front matter as parsed, and the body."""
    start, matter, body = text.split("---\n", 2)
    assert start == ""
    return yaml.safe_load(matter), body


def test_front_matter_is_what_the_hub_expects():
    matter, _ = split_card(make_card(make_view()))
    assert matter["license"] == "other"
    assert matter["library_name"] == "seedless"
    assert matter["datasets"] == ["ptb-xl"]
    assert matter["metrics"] == ["roc_auc"]
    assert {"ecg", "reproducibility"} <= set(matter["tags"])
    (entry,) = matter["model-index"]
    assert entry["name"] == "my model"
    (result,) = entry["results"]
    assert result["task"]["type"] == "other"
    assert result["dataset"] == {"type": "ptb-xl", "name": "ptb-xl", "split": "test"}
    assert result["metrics"] == [  # in the order of the classes; PACE has no AUC
        {"type": "roc_auc", "name": "macro AUC", "value": 0.75},
        {"type": "roc_auc", "name": "AUC SR", "value": 1.0},
        {"type": "roc_auc", "name": "AUC AF|IB", "value": 0.5},
    ]
    matter, _ = split_card(make_card(make_view(), "cc-by-4.0"))
    assert matter["license"] == "cc-by-4.0"


def test_the_body_holds_what_a_reader_must_know():
    _, body = split_card(make_card(make_view()))
    assert "# my model\n" in body
    for told in ("c" * 64, "d" * 64, "a" * 64, "f" * 64, "b" * 32):
        assert told in body
    assert "seedless verify RUN\n" in body
    assert "It is not a medical device" in body
    assert "| SR | 40 | 1.0000 |\n| AF\\|IB | 3 | 0.5000 |\n| PACE | 0 | not defined |" in body
    assert "AF\\|IB (3), PACE (0)" in body
    assert "SR (40)" not in body
    assert 'seedless.load("RUN")' in body
    assert "mean 0.5 and deviation 2" in body
    assert "Not converged" not in body
    assert "Not tested" not in body
    assert "26,322 parameters" in body
    assert "simulated" not in body


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"metrics": {"converged": False}}, "**Not converged.**"),
        ({"metrics": {"validation": {"macro_auc": 0.7, "n": 9}}}, "**Not tested.**"),
        ({"metrics": {}}, "This run has no scores."),
        (
            {"predicate": {"promise": {"same_bits": False, "generators_moved": ["np"]}}},
            "**The same bits are not promised.** Global generators moved (np).",
        ),
        ({"predicate": {"promise": {"control": "head.weight:0:0"}}}, "**A negative control.**"),
        ({"predicate": {"data": {"name": "simulated"}}}, "The data are simulated"),
        ({"predicate": {"kind": "fit"}}, "seedless verify RUN --entry package.module:function"),
        ({"predicate": {"kind": "fit"}}, 'seedless.load("RUN", model=MODEL)'),
    ],
)
def test_marks_against_a_run_are_told(changes, told):
    assert told in make_card(make_view(**changes))
    if told.startswith("**"):
        assert told not in make_card(make_view())


def test_seeds_and_broken_promises_are_not_called_seed_free():
    assert "Trained without a seed: anyone who repeats" in make_card(make_view())
    settings = {"values": {"init": {"seed": 0}, "order": {"seed": 7}}}
    seeded = make_card(make_view(predicate={"config": settings}))
    assert "A random control, initialized with seed 0 and ordered with seed 7: anyone" in seeded
    moved = make_card(make_view(predicate={"promise": {"same_bits": False}}))
    assert "Trained without a seed.\n" in moved
    assert "gets the same bits" not in moved


def test_a_portable_run_promises_its_bits_on_every_processor():
    settings = {"values": {"execution": {"arithmetic": "portable"}}}
    portable, native = make_card(make_view(predicate={"config": settings})), make_card(make_view())
    assert "on any processor with IEEE float64, with the same versions, gets" in portable
    assert "same kind of machine" not in portable
    assert "on the same kind of machine, with the same versions and thread count, gets" in native


def test_what_others_add_to_metrics_does_not_matter_and_what_lacks_is_left_out():
    metrics = dict(make_view().metrics)
    richer = json.loads(json.dumps(metrics))
    richer["test"] |= {"intervals": {"macro": [0.7, 0.8]}, "thresholds": [1]}
    richer["test"]["classes"]["SR"] |= {"interval": [0.9, 1.0]}
    richer["calibration"] = {"ece": 0.1}
    assert make_card(make_view(metrics=richer)) == make_card(make_view())
    bare = RunView("bare", {"predicate": {}}, "", (), (), {})
    matter, body = split_card(make_card(bare))
    assert "model-index" not in matter
    assert "None" not in body
    odd = {"test": {"macro_auc": "high", "classes": {"SR": None, "PACE": {"positives": "few"}}}}
    _, body = split_card(make_card(make_view(metrics=odd)))
    assert "| SR |  | not defined |" in body


def test_images_are_images():
    settings = {"values": {"model": {"name": "resnet18", "channels": 3}}}
    view = make_view(predicate={"config": settings})
    matter, body = split_card(make_card(view))
    assert matter["model-index"][0]["results"][0]["task"]["type"] == "image-classification"
    assert "ecg" not in matter["tags"]
    assert "(batch, channels, height, width)" in body
    own = make_view(predicate={"config": {"values": {"model": {"name": "given"}}}, "kind": "fit"})
    matter, body = split_card(make_card(own))
    assert not {"ecg", "image-classification"} & set(matter["tags"])
    assert "`Conformer`, 26,322 parameters" in body


AWKWARD = [
    *("plain", "", " padded ", "yes", "null", "1e3", "a: b", "- x", "# no", "'", '"', "\\"),
    *("tab\tline\nend\r", "é ü 漢 😀", "\x00\x07\x1b", "\x7f\x85\xa0\u2028\ufeff", "{a}", "%TAG"),
]


@pytest.mark.parametrize("text", AWKWARD)
def test_any_text_comes_back(text):
    values = {"key": text, "list": [text, {"a": text, "b": [text]}], "n": {"o": text}}
    written = write_front_matter(values)
    assert yaml.safe_load(written.split("---\n")[1]) == values
    matter, _ = split_card(make_card(make_view(label=text), text))
    assert matter["model-index"][0]["name"] == text
    assert matter["license"] == text


def test_plain_values_come_back():
    values = {
        "a": 1,
        "b": True,
        "c": None,
        "d": 0.00001,
        "e": 0.5,
        "f": [1.5e-7, "1e-05"],
        "odd key: x": [2, [3, [4]]],
    }
    found = yaml.safe_load(write_front_matter(values).split("---\n")[1])
    assert found == values
    assert isinstance(found["d"], float)
    for bad in (float("nan"), float("inf"), b"bytes", object()):
        with pytest.raises(SeedlessError, match="plain values only"):
            write_front_matter({"a": bad})


def test_headings_and_tables_survive_awkward_names():
    _, body = split_card(make_card(make_view(label="a\n# b | *c* <i>")))
    assert "\n# a \\# b \\| \\*c\\* &lt;i&gt;\n" in body


def test_front_matter_is_text_for_a_viewer_that_does_not_know_it():
    """It is shown as Markdown there; a class may have any name."""
    name = 'x](javascript:alert(1)) <img src=x onerror="alert(1)"> `code` & [a](b) \\ "quoted"'
    values = {"metrics": [{"name": name, "value": 1e-05}]}
    written = write_front_matter(values)
    assert not {*"<>&`"} & {*written}
    assert "](" not in written
    assert yaml.safe_load(written.split("---\n")[1]) == {
        "metrics": [{"name": name, "value": 1e-05}]
    }
