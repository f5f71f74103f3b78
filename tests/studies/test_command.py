"""The commands of `seedless study` share one declaration of the options that choose the runs."""

import inspect
import json

import pytest
import typer

from seedless.cli.study import app
from seedless.cli.study_options import read_options
from seedless.studies.engine.options import StudyOptions

COMMANDS = typer.main.get_command(app).commands
WITH_GRID = ("plan", "run", "table", "report", "archive")
SHARED = set(inspect.signature(read_options).parameters)
EVERY_OPTION = {
    "--scale": "small",
    "--data": "ptb-xl",
    "--seeds": "3",
    "--device": "cpu",
    "--folds": "4",
    "--other": "mitdb=here",
    "--noise-path": "noise",
    "--arms": "dct, kaiming",
    "--set": "train.epochs=2",
}
EXPECTED = StudyOptions(
    scale="small",
    data="ptb-xl",
    seeds=3,
    device="cpu",
    folds=4,
    other=("mitdb=here",),
    noise="noise",
    prove=True,
    changes=("train.epochs=2",),
    arms=("dct", "kaiming"),
)


def describe_options(command):
    """Return what a user sees of the options that choose the runs, by name."""
    return {
        option.name: (
            option.opts,
            option.default,
            str(option.metavar),
            option.help,
            option.multiple,
        )
        for option in COMMANDS[command].params
        if option.name in SHARED
    }


def test_every_command_belongs_to_one_kind():
    assert set(COMMANDS) == {*WITH_GRID, "list", "unpack"}


@pytest.mark.parametrize("command", WITH_GRID)
def test_every_command_with_a_grid_takes_the_same_options(command):
    assert set(describe_options(command)) == SHARED
    assert describe_options(command) == describe_options("plan")


def test_the_options_under_test_are_all_there_are():
    flags = {p.opts[0] for p in COMMANDS["plan"].params if p.name in SHARED}
    assert flags == {*EVERY_OPTION, "--prove"}


@pytest.mark.parametrize("command", WITH_GRID)
def test_every_command_hands_all_of_them_to_its_study(command, monkeypatch, tmp_path):
    class AskedError(Exception):
        pass

    asked = []

    class Spy:
        def drop_unused(self, options):
            return options

        def plan(self, options):
            asked.append(options)
            raise AskedError

    monkeypatch.setattr("seedless.studies.catalog.open_study", lambda _: Spy())
    words = [word for pair in EVERY_OPTION.items() for word in pair]
    out = ["--out", str(tmp_path / "a.tar.xz")] if command == "archive" else []
    with pytest.raises(AskedError):
        typer.main.get_command(app)(
            [command, "basis", *words, "--prove", *out], standalone_mode=False
        )
    assert asked == [EXPECTED]


def test_without_options_they_are_the_defaults():
    assert read_options() == StudyOptions()


def test_archive_applies_an_option_to_the_studies_that_use_it(run_seedless, smoke_store, tmp_path):
    """`cv` has no --folds; refused alone, it may be archived beside one that has."""
    common = ["--device", "cpu", "--folds", "3"]
    refused = run_seedless("study", "plan", "cv", *common, check=False)
    assert refused.returncode == 2
    store = ["--store", str(smoke_store), "--out", str(tmp_path / "a.tar.xz"), "--json"]
    done = run_seedless("study", "archive", "cv", "golden", *common, *store)
    (written,) = json.loads(done.stdout)
    assert written["runs"] >= 12


@pytest.mark.parametrize(
    ("command", "other"), [("archive", "seedless bundle"), ("report", "seedless report")]
)
def test_help_tells_a_study_command_from_the_one_of_a_run(command, other):
    assert other in COMMANDS[command].help


@pytest.mark.parametrize("command", ["table", "report", "archive"])
def test_a_command_that_reads_a_store_does_not_make_one(command, run_seedless, tmp_path):
    store = tmp_path / "nowhere"
    more = ["--out", tmp_path / "runs.tar.xz"] if command == "archive" else []
    refused = run_seedless("study", command, "basis", "--store", store, *more, check=False)
    assert refused.code == 2
    assert f"no store at '{store}': `seedless study run` makes one" in refused.stderr
    assert not store.exists()
