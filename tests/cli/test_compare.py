"""`seedless compare` as a person runs it, on a paper's published files."""

import json
import math
import os
import re
import shlex
import sys
from pathlib import Path

import pytest

from seedless.cli.compare import split_arms
from seedless.cli.main import main
from seedless.core.errors import StatsError
from tests.conftest import ROOT

MIXED = "ecg/conformer_mixed/*.json"
KAIMING = "ecg/conformer_kaiming/*.json"


@pytest.fixture
def evidence(monkeypatch):
    """Work in the folder of published results."""
    folder = Path(os.environ.get("SEEDLESS_EVIDENCE", ROOT.parent / "shared" / "evidence"))
    if not (folder / "expected.json").is_file():
        pytest.skip(f"no published results at {folder}; set SEEDLESS_EVIDENCE")
    monkeypatch.chdir(folder)


@pytest.fixture
def call(monkeypatch, capsys):
    """Run the program in this process; return exit code, standard output and standard error."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["seedless", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return call


def test_the_headline_of_the_paper(call, evidence):
    code, out, err = call("compare", MIXED, KAIMING, "--field", "auc", "--margin", "0.015")
    assert (code, err) == (0, "")
    assert "t = 2.57834, df = 28.0099, p = 0.0154762" in out
    assert "0.815342, 95 % [0.170309, 1.46037] (Wald), [0.164247, 1.45657]" in out
    assert "p = 0.000599439 for a margin of 0.015, df = 28.0099" in out
    assert "0.709791 if d is the true effect; 25 runs per arm for 0.8" in out
    assert "p = 0.0255055; 20 pairs by the seed in the file name" in out
    assert "WARNING" not in out


def test_the_published_degrees_of_freedom_and_json(call, evidence):
    options = ("--field", "auc", "--margin", "0.015", "--published-df", "--json")
    code, out, err = call("compare", MIXED, KAIMING, *options)
    found = json.loads(out, parse_constant=pytest.fail)
    row = found["row"]
    assert (code, err, found["warnings"]) == (0, "", [])
    assert row["equivalence"]["p"] == pytest.approx(4.472e-4, rel=1e-3)
    assert row["equivalence"]["df"] == 38
    assert row["welch"]["df"] == pytest.approx(28.010, abs=5e-4)
    assert row["power"]["power"] == pytest.approx(0.70979, abs=5e-6)
    assert row["runs_needed"]["per_arm"] == 25
    assert (row["a"]["n"], row["b"]["range"]) == (20, pytest.approx(0.0411))


def test_the_documented_output_is_what_is_printed(call, evidence):
    page = (ROOT / "docs" / "how-to" / "compare.md").read_text()
    command, shown = re.search(r"^\$ seedless ([^\n]+)\n(.*?)^```$", page, re.S | re.M).groups()
    assert call(*shlex.split(command)) == (0, shown, "")


def test_one_experiment_under_two_names(call, evidence):
    """The ablation's two rows with equal weights differ in their time alone."""
    files = ("ecg/ablation/conformer_mixed_nocw_s*", "ecg/ablation/conformer_dct_cw_s*")
    code, out, _ = call("compare", *files, "--field", "auc")
    assert code == 0
    assert "paired t     none; 5 pairs by " in out
    assert "WARNING: the two runs of every pair score the same" in out
    assert "undefined: all 5 paired differences are 0" in out


def test_the_same_files_in_both_arms(call, evidence):
    code, out, _ = call("compare", "ecg/ablation/conformer_kaiming_s*", KAIMING, "--field", "auc")
    assert code == 0
    assert re.search(r"WARNING: 5 runs are in both arms, the first ", out)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere/*", "b/*"), "arm A: nothing matches 'nowhere/*'"),
        (("a/*", "b/*"), "is a file. For JSON files say which number to read"),
        (("a/*", "b/*", "--field", "acc"), "there is no 'acc' (did you mean 'auc'?)"),
        (("a/*", "one.json", "--field", "auc"), "arm B: expected at least two runs, got one"),
        (("a/*", "bad/*", "--field", "auc"), "auc is nan"),
        (("a/*", "none/*", "--field", "auc"), "auc: expected a number, got"),
        (("a", "b/*", "--field", "auc"), "a is a folder; --field reads JSON files"),
        (("a/*", "b/*", "--field", "auc", "--published-df"), "give a margin, too"),
        (("a/*", "b/*", "--field", "auc", "--margin", "-1"), "expected a positive number"),
        (("a/*", "b/*", "--field", "auc", "--margin", "nan"), "expected a positive number"),
        (("a/*", "b/*", "--field", "auc", "--converged-above", "2"), "lower --converged-above"),
        (("a/*", "b/*", "--field", "auc", "--converged-above", "nan"), "expected a finite score"),
    ],
)
def test_bad_input_is_one_line_and_2(call, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    for arm, values in (("a", [0.9, 0.8]), ("b", [0.7, 0.6]), ("bad", [0.7, math.nan])):
        (tmp_path / arm).mkdir()
        for place, value in enumerate(values):
            (tmp_path / arm / f"{place}.json").write_text(json.dumps({"auc": value}))
    (tmp_path / "none").mkdir()
    for place in range(2):
        (tmp_path / "none" / f"{place}.json").write_text('{"auc": "high"}')
    (tmp_path / "one.json").write_text('{"auc": 0.5}')
    code, out, err = call("compare", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert message in err
    assert len(err.splitlines()) == 1


def test_patterns_that_the_shell_wrote_out_are_two_arms_with_a_word_between(call, evidence):
    quoted = call("compare", MIXED, KAIMING, "--field", "auc")
    arms = [sorted(Path().glob(pattern)) for pattern in (MIXED, KAIMING)]
    assert call("compare", *arms[0], "vs", *arms[1], "--field", "auc") == quoted
    code, _, err = call("compare", *arms[0], *arms[1], "--field", "auc")
    assert code == 2
    assert "in quotes" in err
    assert "vs" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a"], "expected two arms, got 1 arguments"),
        (["a", "b", "c"], "expected two arms, got 3 arguments"),
        (["a", "vs"], "an arm is empty"),
        (["a", "vs", "b", "vs", "c"], "expected two arms, got 5 arguments"),
    ],
)
def test_words_that_are_not_two_arms_are_refused(words, message):
    with pytest.raises(StatsError, match=message):
        split_arms(words)
