"""A receipt that says something else of the weights file than its other files is invalid."""

import shutil

import pytest

import seedless
from seedless.core.digests import digest_value
from seedless.proof.schemas import SCHEMA
from tests.forgery import forge, read_entries, read_statement, replace, seal, strip_run
from tests.runs.test_fine_tuning import NO_START
from tests.tiny import copy_run, fit_run, flags_restored, give, make_model


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A run that takes its body from a file and starts its last layer anew, and that file."""
    folder = tmp_path_factory.mktemp("begun")
    with flags_restored():
        file = fit_run(folder / "base") / "weights.safetensors"
        file = shutil.copy(file, folder / "base.safetensors")
        run = seedless.fit(
            **give(), weights=file, reinitialize=["4.*"], config=NO_START, out=folder / "run"
        )
    return run.path, file


@pytest.fixture
def run(begun, tmp_path):
    return copy_run(begun[0], tmp_path / "run")


def refuse(run):
    verdict = seedless.verify(run, validate_only=True)
    assert verdict.outcome == "invalid"
    return " ".join(verdict.details)


def change_file(run, change):
    """Let ``change`` work on what line 0 and the receipt say of the file, and seal it again."""
    entries = read_entries(run)
    change(entries[0]["initialization"]["file"])
    forge(run, entries)


def move(name, source, target):
    """Return a change that moves a tensor from one list to another."""

    def change(file):
        file[source].remove(name)
        file[target] = sorted([*file[target], name])

    return change


FORGED = {
    "another file": (lambda f: f.update(digest=f"sha256:{64 * '0'}"), "that config.toml names"),
    "other tensors": (lambda f: f.update(tensors=f"sha256:{64 * '0'}"), "trail's first line"),
    "a head that was not started": (move("4.bias", "started", "taken"), "init.reinitialize says"),
    "a body that was started": (move("0.bias", "taken", "started"), "init.reinitialize says: 0.b"),
    "a body of its own": (move("0.bias", "taken", "kept"), "trail's first line"),
    "a tensor less": (lambda f: f["taken"].remove("0.bias"), "of every tensor"),
    "a tensor more": (lambda f: f["kept"].append("5.bias"), "of every tensor"),
    "a path": (lambda f: f.update(name="/home/someone/base.safetensors"), "name of a file"),
    "no name": (lambda f: f.update(name=""), "name of a file"),
    "a field more": (lambda f: f.update(author="someone"), "does not state name, digest and tens"),
    "a field less": (lambda f: f.pop("kept"), "does not state name, digest and tensors"),
    "another order": (lambda f: f["taken"].reverse(), "is not sorted"),
    "a name twice": (lambda f: f["taken"].insert(0, f["taken"][0]), "is not sorted, each name on"),
    "numbers": (lambda f: f.update(kept=[1]), "is not a list of names"),
    "nothing taken": (lambda f: f.update(taken=[]), "of which nothing was taken"),
}


@pytest.mark.parametrize("case", FORGED)
def test_what_is_said_of_the_file_is_compared(run, case):
    change, message = FORGED[case]
    change_file(run, change)
    assert message in refuse(run)


def test_an_unchanged_copy_is_consistent(run):
    """[Negative control] Sealed anew without a change, nothing is found."""
    change_file(run, lambda file: None)
    assert seedless.verify(run, validate_only=True).outcome == "consistent"


def test_the_section_cannot_be_left_out(run):
    entries = read_entries(run)
    del entries[0]["initialization"]["file"]
    forge(run, entries)
    assert "does not state name, digest and tensors" in refuse(run)
    forge(run, entries, schema=SCHEMA)
    assert "config.toml names a weights file, and the receipt does not" in refuse(run)


def test_an_older_schema_does_not_have_the_section(run):
    statement = read_statement(run)
    seal(run, replace(statement, ("predicate", "schema"), SCHEMA), files=False)
    assert "has initialization.file, which schema 2.0 does not have" in refuse(run)


def test_a_run_without_a_file_is_not_of_this_schema(tmp_path):
    plain = fit_run(tmp_path / "plain")
    assert read_statement(plain)["predicate"]["schema"] == SCHEMA
    seal(plain, replace(read_statement(plain), ("predicate", "schema"), "2.4"), files=False)
    assert "does not state name, digest and tensors" in refuse(plain)


def test_functions_of_the_user_go_with_a_file(begun, tmp_path):
    import torch

    def loss(outputs, targets):
        return torch.nn.functional.cross_entropy(outputs, targets, reduction="none")

    arguments = {
        "model": make_model,
        "train": give()["train"],
        "loss": loss,
        "weights": begun[1],
    }
    made = seedless.fit(**arguments, config=NO_START, out=tmp_path / "own")
    assert made.claims["schema"] == "2.4"
    assert made.claims["callables"]
    assert seedless.verify(made.path, **arguments).outcome == "identical"
    seal(made.path, replace(read_statement(made.path), ("predicate", "callables"), {}), files=False)
    assert "predicate.callables is not a list" in refuse(made.path)


def test_a_forged_list_that_agrees_with_itself_is_found_by_executing(run, begun):
    """Someone who forges everything still cannot make the file give other tensors."""
    entries = read_entries(run)
    file = entries[0]["initialization"]["file"]
    state = entries[0]["state"]
    state["model/0.bias"] = 64 * "0"
    file["tensors"] = digest_value({f"model/{n}": state[f"model/{n}"] for n in file["taken"]})
    forge(run, entries)
    assert seedless.verify(run, validate_only=True).outcome == "consistent"
    verdict = seedless.verify(run, **give(), weights=begun[1])
    assert verdict.outcome == "differs"
    assert "initialization.file.tensors" in " ".join(verdict.details)


def test_a_stripped_run_is_executed_with_the_file(run, begun):
    strip_run(run)
    assert seedless.verify(run, validate_only=True).outcome == "consistent"
    assert seedless.verify(run, **give(), weights=begun[1]).outcome == "identical"
