"""Names that someone else chose: whatever they hold, they are shown in one line of visible text.

The runs here are honest but for the names of their classes, which a command could show raw.
"""

import json
import sys

import numpy as np
import pytest

import seedless
from seedless.cli.main import main
from seedless.runs.folder import read_config
from tests.forgery import forge, read_entries, reconfigure
from tests.tiny import answer_here, copy_run, fit_run, flags_restored, give

NAME = (
    "\x1b[2K\rIDENTICAL: all\nIDENTICAL: every bit\x9b1m <script>alert(1)</script> | `x` \u202e "
    "[a](javascript:b) $\\frac{1$ \u2028# c"
)
CLASSES = (NAME, "plain", "b\u200b")
ENTRY = "tests.cli.test_hostile_values:give_with_names"


def give_with_names():
    """Return what the runs here are made from, as --entry wants it."""
    return {**give(), "classes": CLASSES}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    place = tmp_path_factory.mktemp("hostile")
    with flags_restored():
        for offset, name in enumerate(("one", "two")):
            fit_run(place / name, give_with_names(), order={"offset": offset})
    return place


@pytest.fixture
def call(monkeypatch, capsys):
    """Run the program in this process; return exit code and everything it printed."""
    monkeypatch.setattr("seedless.audit.verification.run_worker", answer_here)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["seedless", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended, flags_restored():
            main()
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return call


def assert_shown_safely(text):
    assert text.replace("\n", "").isprintable()
    assert not [line for line in text.split("\n") if line.startswith("IDENTICAL")]


@pytest.mark.parametrize(
    "command",
    [
        ("verify", "one", "--validate-only"),
        ("evaluate", "one"),
        ("churn", "one", "two"),
        ("churn", "one", "two", "--ids", NAME),
        ("compare", "one", "two"),
        ("compare", "one", "two", "--metric", f"auc:{NAME}"),
        ("compare", "one", "two", "--metric", "auc:unknown"),
        ("diff", "one", "two", "--no-replay"),
        ("card", "one"),
        ("report", "one", "--out", "page.html"),
    ],
    ids=lambda command: " ".join(command[:1] + command[3:]).replace(NAME, "NAME"),
)
def test_a_command_shows_names_in_visible_text(runs, call, monkeypatch, command, tmp_path):
    places = {"one": runs / "one", "two": runs / "two", "page.html": tmp_path / "page.html"}
    code, out, err = call(*(places.get(word, word) for word in command))
    assert code in (0, 1, 2), err
    assert_shown_safely(out)
    assert_shown_safely(err)
    if command[0] in ("evaluate", "churn"):
        assert "\\x1b[2K\\rIDENTICAL: all\\nIDENTICAL" in out
    if command[0] not in ("card", "report"):
        code, out, _ = call(*(places.get(word, word) for word in command), "--json")
        assert out.replace("\n", "").isprintable()
        if code != 2:
            json.loads(out)


def test_a_page_holds_no_markup_of_others(runs, tmp_path):
    page = seedless.report(runs / "one", out=tmp_path / "page.html").read_text()
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert page.replace("\n", "").isprintable()


def test_a_card_holds_no_markup_of_others(runs, call):
    _, card, _ = call("card", runs / "one")
    body = card.split("\n---\n", 1)[1]
    assert "<script" not in body
    assert "&lt;script&gt;" in body
    assert "[a](" not in body
    rows = [line for line in body.split("\n") if "&lt;script" in line and line.startswith("|")]
    assert [row.replace("\\|", "").count("|") for row in rows] == [4] * len(rows)
    assert rows


def test_a_forged_receipt_draws_no_verdict(runs, call, tmp_path):
    """A run with a flipped bit that denies it, and that names its processor as it likes."""
    run = copy_run(runs / "one", tmp_path / "run")
    control = {"flip_bit": "0.weight:3:0"}
    flipped = fit_run(tmp_path / "flipped", give_with_names(), control=control)
    reconfigure(flipped, read_config(run))
    entries = read_entries(flipped)
    entries[0]["environment"]["cpu"]["model"] = f"x{NAME}"
    forge(flipped, entries)
    code, out, err = call("verify", flipped, "--entry", ENTRY)
    assert code in (1, 3)
    assert_shown_safely(out)
    assert_shown_safely(err)
    assert "\\x1b[2K\\rIDENTICAL: all\\nIDENTICAL" in out


@pytest.mark.parametrize("image", [False, True], ids=["signals", "images"])
def test_names_of_a_data_file_are_shown_in_visible_text(call, tmp_path, image):
    """Also in a picture, in which a dollar sign would begin a formula."""
    draw = np.random.default_rng(1)
    arrays = {
        "X": draw.normal(size=(20, 2, 200)).astype("f4"),
        "Y": np.arange(20) % 2,
        "folds": np.arange(20) % 10 + 1,
        "ids": np.array([f"{NAME}{number}" for number in range(20)]),
        "classes": np.array([NAME, "b"]),
    }
    if image:
        arrays["X"] = draw.integers(0, 255, (20, 1, 28, 28)).astype("u1")
    else:
        arrays |= {"leads": np.array(["$\\frac{1$", "II"]), "fs": np.array(100.0)}
    file = tmp_path / "mine.npz"
    np.savez(file, **arrays)
    for command in (
        ("check", file),
        ("show", file, "--out", tmp_path / "a.png"),
        ("show", file, "--record", "unknown"),
        ("show", file, "--class", "unknown"),
    ):
        code, out, err = call("data", *command)
        assert code == (2 if "unknown" in command else 0), err
        assert_shown_safely(out)
        assert_shown_safely(err)
