"""Help texts: a sentence for every command and option, in panels, whole at 80 columns."""

import re

import pytest
import typer

from seedless.cli.main import COMMANDS, app

WORDS = re.compile(r"\b(verbs?|settle|light runs?|parcels?|sitting|twins?)\b")


def walk(group, path=()):
    for name, command in group.commands.items():
        yield (*path, name), command
        if hasattr(command, "commands"):
            yield from walk(command, (*path, name))


ALL = dict(walk(typer.main.get_command(app)))


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_a_command_is_described_in_one_sentence_of_one_line(path):
    text = ALL[path].help
    first = re.split(r"\n\s*\n", text.strip())[0]
    assert first.endswith((".", "?"))
    assert "\n" not in first
    assert len(first) <= 64, "longer sentences wrap in the list of commands at 80 columns"
    assert not WORDS.search(text)
    assert all(len(line.strip()) <= 78 for line in text.splitlines())


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_option_is_described(path):
    for parameter in ALL[path].params:
        text = getattr(parameter, "help", None)
        assert text, parameter.name
        assert not WORDS.search(text)
        assert len(text) <= 78


@pytest.mark.parametrize("columns", [80, 120])
def test_panels_stand_in_order_and_nothing_is_cut(run_python, columns):
    shown = run_python("-m", "seedless", "--help", COLUMNS=columns, TERMINAL_WIDTH=columns).stdout
    assert re.findall(r"^╭─ ([^─]+) ─", shown, re.MULTILINE) == ["Options", *COMMANDS]
    assert re.findall(r"^│ (\w+) ", shown, re.MULTILINE) == [
        name for panel in COMMANDS.values() for name in panel
    ]
    assert "…" not in shown
    assert "..." not in shown.replace("[ARGS]...", "")
    assert max(map(len, shown.splitlines())) <= columns


@pytest.mark.parametrize("command", [["--help"], ["train", "--help"], ["data", "show", "--help"]])
def test_no_type_stands_beside_an_option_that_takes_no_value(run_python, command):
    shown = run_python("-m", "seedless", *command, COLUMNS=100, TERMINAL_WIDTH=100).stdout
    assert "--help" in shown
    assert "bool" not in shown.lower()


COMPLETE = """
import sys
sys.argv = ["seedless"]
from seedless.cli.main import main
main()
"""


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("seedless ev", ["evaluate"]),
        ("seedless train ecg", ["ecg-small"]),
        ("seedless train demo --set train.opt", ["train.optimizer="]),
        ("seedless train demo --set train.optimizer=ad", ["train.optimizer=adam"]),
        ("seedless init show res", ["resnet18"]),
        ("seedless order show sob", ["sobol"]),
        ("seedless data fetch ptb", ["ptb-xl"]),
        ("seedless study plan crossd", ["crossdataset"]),
    ],
)
def test_a_shell_completes_commands_presets_settings_and_names(run_python, words, offered):
    variables = {
        "COMP_WORDS": words,
        "COMP_CWORD": len(words.split()) - 1,
        "_SEEDLESS_COMPLETE": "complete_bash",
    }
    shown = run_python("-c", COMPLETE, **variables).stdout.split()
    assert shown[: len(offered)] == offered


def test_commands_of_one_name_say_which_is_meant():
    assert "seedless study report" in ALL["report",].help
    assert "seedless report" in ALL["study", "report"].help
    assert "seedless study run" in ALL["run",].help
    assert "seedless run" in ALL["study", "run"].help
    assert "seedless study archive" in ALL["bundle",].help
    assert "seedless bundle" in ALL["study", "archive"].help
    last = [path[-1] for path in ALL if path[-1] not in ("show", "check", "list")]
    assert {name for name in last if last.count(name) > 1} == {"report", "run"}


EARLY = """
import os, sys
os.chdir(FOLDER)
from seedless.cli.main import main
for arguments in CASES:
    sys.argv = ["seedless", *arguments]
    try:
        main()
    except SystemExit as end:
        assert end.code == 2, (arguments, end.code)
    assert "torch" not in sys.modules, arguments
"""
CASES = [
    ["train", "demo"],
    ["train", "nosuch", "--out", "x"],
    ["train", "demo", "--set", "train.epoch=2", "--out", "x"],
    ["train", "demo", "--set", "train.epochs=two", "--out", "x"],
    ["resume", "no-run"],
    ["evaluate", "no-run"],
    ["robustness", ".", "--snr", "loud"],
    ["attribute", "no-run"],
    ["attribute", ".", "--records", "0"],
    ["export", "no-run", "--onnx", "x.onnx"],
    ["card", "no-run"],
    ["bundle", "no-run"],
    ["data", "fetch", "nosuch"],
    ["bench", "--concurrent", "2", "--batch", "3"],
    ["doctor", "--vary", "threads=1", "--", "true"],
    ["doctor", "--", "no-such-program"],
    ["run", "--", "no-such-program"],
    ["train", "demo", "--set", "model.name=conformr", "--out", "x"],
    ["train", "demo", "--set", "data.name=nosuch", "--out", "x"],
    ["train", "demo", "--set", "data.name=no.npz", "--out", "x"],
    ["demo", "--arithmetic", "portabel"],
    ["demo", "--set", "train.epoch=2"],
    ["evaluate", ".", "--split", "tset"],
    ["evaluate", ".", "--by", "height"],
    ["evaluate", "."],
    ["compare", "no-a", "no-b"],
    ["compare", "a", "b", "c"],
    ["churn", "no-a", "no-b"],
    ["verify", "no-run"],
    ["diff", "no-a", "no-b"],
    ["referee", "no-a", "no-b"],
    ["report", "no-run"],
    ["init", "show", "nosuch"],
    ["init", "show", "conformer", "--basis", "nosuch"],
    ["order", "show", "nosuch"],
    ["study", "run", "nosuch"],
    ["sign", "no-run", "--key", "k"],
    ["portable", "check", "--device", "tpu"],
    ["bench", "--model", "nosuch"],
    ["config", "show", "nosuch"],
    ["sign", "finished"],
    ["sign", "finished", "--key", "k", "--new-key", "n"],
    ["train", "demo", "--set", "epochs=3", "--out", "x"],
    ["train", "demo", "--out", "finished"],
    ["churn", "finished"],
    ["report", "finished", "other"],
    ["attribute", "finished", "--method", "nosuch"],
    ["attribute", "finished", "--data", "no.npz"],
    ["robustness", "finished", "--noise", "nosuch"],
    ["evaluate", "finished", "--data", "nosuch"],
    ["evaluate", "finished", "--data", "no.npz"],
    ["verify", "finished", "--data", "nosuch"],
]


def test_arguments_are_checked_before_torch_is_imported(run_python, tmp_path):
    for name in ("finished", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "receipt.json").touch()
    run_python("-c", EARLY.replace("CASES", repr(CASES)).replace("FOLDER", repr(str(tmp_path))))
