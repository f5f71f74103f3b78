"""`seedless diff` as a person runs it; what it locates is tested in tests/e2e/test_locate.py."""

import json
import sys

import pytest

import seedless
from seedless.cli.main import main
from tests.tiny import ENTRY, answer_here, fit_run, flags_restored


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run, its repeat, and one that another learning rate sends elsewhere."""
    folder = tmp_path_factory.mktemp("diff")
    with flags_restored():
        fit_run(folder / "a")
        fit_run(folder / "again")
        fit_run(folder / "b", train={"rate": 0.002}, execution={"threads": 2})
    return folder


@pytest.fixture
def call(monkeypatch, capsys):
    """Run the program in this process; return exit code, standard output and standard error."""
    monkeypatch.setattr("seedless.audit.run_diff.run_worker", answer_here)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["seedless", *map(str, arguments)])
        with flags_restored(), pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return call


def test_identical_is_0(call, runs):
    code, out, err = call("diff", runs / "a", runs / "again")
    assert (code, out, err) == (0, "IDENTICAL: every entry of the two trails agrees\n", "")


def test_different_is_1_with_settings_epoch_and_step(call, runs):
    a, b = runs / "a", runs / "b"
    code, out, _ = call("diff", a, b, "--entry", ENTRY)
    assert code == 1
    assert f"configuration: train.rate is 0.001 in {a}, 0.002 in {b}\n" in out
    assert f"environment: threads.intraop is 1 in {a}, 2 in {b}\n" in out
    assert "THEY DIFFER in epoch 1: model/0.bias, model/0.weight" in out
    assert "  first at step 1: model/" in out
    assert "The runs begin to differ" not in out  # that is for --locate


def test_without_replay_no_entry_is_needed(call, runs):
    code, out, _ = call("diff", runs / "a", runs / "b", "--no-replay")
    assert code == 1
    assert "THEY DIFFER in epoch 1" in out
    assert "first at step" not in out


def test_a_run_of_fit_says_what_its_trail_says_and_what_more_needs(call, runs):
    code, out, err = call("diff", runs / "a", runs / "b")
    assert (code, err) == (1, "")
    assert f"configuration: train.rate is 0.001 in {runs / 'a'}, 0.002 in {runs / 'b'}\n" in out
    assert "THEY DIFFER in epoch 1: model/0.bias, model/0.weight" in out
    assert "first at step" not in out
    assert "to find the step: use --entry package.module:function" in out


def test_to_locate_in_a_run_of_fit_its_entry_must_be_given(call, runs):
    code, out, err = call("diff", runs / "a", runs / "b", "--locate")
    assert (code, out) == (2, "")
    assert "--entry package.module:function" in err


@pytest.mark.parametrize("options", [(), ("--locate",), ("--no-replay",)])
def test_json_is_json_and_nothing_else(call, runs, options):
    code, out, err = call("diff", runs / "a", runs / "b", "--json", "--entry", ENTRY, *options)
    found = json.loads(out, parse_constant=pytest.fail)  # no NaN, no Infinity
    assert (code, err, found["identical"], found["epoch"]) == (1, "", False, 1)
    assert [mismatch["field"] for mismatch in found["settings"]] == [
        "execution.threads",
        "train.rate",
    ]
    assert (found["finding"] is not None) == ("--locate" in options)
    assert (found["step"] == 1) == ("--no-replay" not in options)
    code, out, _ = call("diff", runs / "a", runs / "again", "--json")
    assert (code, json.loads(out)["identical"]) == (0, True)


def test_own_trails_need_no_run(call, tmp_path):
    from torch import nn

    for name, value in (("a", 0.5), ("b", 0.25)):
        model = nn.Linear(1, 1)
        nn.init.zeros_(model.weight)
        nn.init.zeros_(model.bias)
        with seedless.record(tmp_path / name, model, config={"value": value}) as trail:
            nn.init.constant_(model.weight, value)
            trail.step(step=7, epoch=3)
    code, out, _ = call("diff", tmp_path / "a", tmp_path / "b")
    assert code == 1
    assert f"configuration: value is 0.5 in {tmp_path / 'a'}, 0.25 in {tmp_path / 'b'}\n" in out
    assert "THEY DIFFER at step 7 of epoch 3: model/weight\n" in out
    assert "record every step to find the step" in out


def test_what_is_no_run_is_2_with_one_line(call, runs, tmp_path):
    for pair in ((runs / "a", tmp_path / "nowhere"), (tmp_path, runs / "a")):
        code, out, err = call("diff", *pair)
        assert (code, out) == (2, "")
        assert err.startswith(("error: cannot read ", "error: no run at "))
        assert len(err.splitlines()) == 1
