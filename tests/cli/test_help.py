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
import sys
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
]


def test_arguments_are_checked_before_torch_is_imported(run_python):
    run_python("-c", EARLY.replace("CASES", repr(CASES)))
