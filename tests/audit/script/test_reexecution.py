"""Executing a script's run again: only when asked, only what was recorded, and compared."""

import os
import shutil
import sys

import pytest

import seedless
from seedless.audit.script import reexecution
from seedless.core.errors import ConfigError
from tests.forgery import read_entries, read_statement, rechain, replace, seal


@pytest.fixture
def run(example, tmp_path):
    return shutil.copytree(example.run, tmp_path / "run")


@pytest.fixture
def repeat(example, executed, run, monkeypatch):
    """Verify the copy of the run with the records of the one real execution."""
    monkeypatch.setattr(reexecution, "execute_shown", executed.again)
    return lambda: seedless.verify(run, execute_script=True, sources=example.folder)


def forge(run, field, value):
    """Change a field of the receipt, and whatever repeats it."""
    statement = replace(read_statement(run), ("predicate", *field), value)
    claims = statement["predicate"]
    entries = read_entries(run)
    entries[0]["environment"] = claims["environment"]
    entries[0]["settings"] = {name: claims["script"][name] for name in ("command", "sources")}
    forge_trail(run, entries, statement)


def forge_trail(run, entries, statement=None):
    entries = rechain(run, entries)
    end = {"head": entries[-1]["digest"], "entries": len(entries)}
    statement = replace(statement or read_statement(run), ("predicate", "trail"), end)
    seal(run, replace(statement, ("predicate", "processes", "trails"), [end]))
    assert seedless.verify(run, validate_only=True).ok


def list_tree(folder):
    return {(str(path), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


def test_a_script_that_repeats_is_identical(executed):
    assert executed.verdict.outcome == "identical", executed.verdict
    assert executed.verdict.sentence == "executed again, identical: 6 steps and 1 output"
    assert executed.verdict.details == ()


def test_what_is_executed_is_shown_before(executed, example):
    assert executed.shown[-1] == "executed"
    text = "\n".join(executed.shown[:-1])
    assert f"{sys.executable} train.py --epochs 3" in text
    assert str(example.folder / "train.py") in text
    assert "MKL_CBWR=COMPATIBLE" in text
    assert "with your rights" in text


def test_nothing_is_executed_without_the_word(example, monkeypatch):
    monkeypatch.setattr(reexecution, "execute_shown", pytest.fail)
    monkeypatch.chdir(example.folder)
    assert seedless.verify(example.run).outcome == "not executed"
    assert seedless.verify(example.run, validate_only=True).outcome == "consistent"
    for options in ({"python": sys.executable}, {"sources": example.folder}):
        with pytest.raises(ConfigError, match="are about --execute"):
            seedless.verify(example.run, **options)
    with pytest.raises(ConfigError, match="contradict each other"):
        seedless.verify(example.run, execute_script=True, validate_only=True)


def test_executing_changes_neither_the_run_nor_the_folder(example, run, repeat):
    before = list_tree(example.folder), list_tree(run)
    assert repeat().outcome == "identical"
    assert (list_tree(example.folder), list_tree(run)) == before


# Differences


@pytest.mark.parametrize("name", ["weights", "loss", "gradients", "input"])
def test_the_first_step_that_differs_is_named_with_advice(run, repeat, name):
    entries = read_entries(run)
    for entry in entries[3:]:
        entry["state"][name] = 16 * "0"
    forge_trail(run, entries)
    verdict = repeat()
    assert (verdict.outcome, verdict.code) == ("differs", 1)
    assert verdict.sentence.endswith(f"it differs at step 3 in {name}")
    assert verdict.difference == {"step": 3, "ranks": [0], "names": [name]}
    assert "seedless doctor -- python train.py --epochs 3" in " ".join(verdict.details)


@pytest.mark.parametrize(
    "change",
    [lambda entries: entries.pop(), lambda entries: entries.append({**entries[-1], "step": 7})],
    ids=["fewer", "more"],
)
def test_another_number_of_steps_differs(run, repeat, change):
    entries = read_entries(run)
    change(entries)
    forge_trail(run, entries)
    verdict = repeat()
    assert (verdict.outcome, verdict.difference["names"]) == ("differs", ["length"])


def test_values_that_differ_stand_in_the_order_of_their_computation(run, repeat):
    entries = read_entries(run)
    for name in ("weights", "gradients", "input"):
        entries[2]["state"][name] = 16 * "0"
    forge_trail(run, entries)
    assert repeat().sentence.endswith("at step 2 in input, then in gradients, weights")


def test_an_output_with_another_content_differs(run, repeat):
    output = ("script", "outputs", "out/model.pt")
    forge(run, (*output, "digest"), "sha256:" + 64 * "0")
    verdict = repeat()
    assert verdict.outcome == "identical"  # times inside it do not count
    assert "the same content" in " ".join(verdict.details)
    forge(run, (*output, "content"), "sha256:" + 64 * "1")
    verdict = repeat()
    assert (verdict.outcome, verdict.difference) == ("differs", {"names": ["out/model.pt"]})
    assert "all 6 steps agree" in verdict.sentence
    assert "--output" in " ".join(verdict.details)


def test_an_output_that_is_not_written_differs(run, repeat):
    known = read_statement(run)["predicate"]["script"]["outputs"]
    forge(run, ("script", "outputs"), {**known, "more.txt": known["out/model.pt"]})
    verdict = repeat()
    assert verdict.outcome == "differs"
    assert "more.txt was not written" in verdict.details


@pytest.mark.parametrize(
    ("field", "value", "differs"),
    [
        (("environment", "threads", "intraop"), 7, True),
        (("environment", "packages", "torch"), "9.9", True),
        (("environment", "cpu", "model"), "Another", True),
        (("environment", "flags", "deterministic_algorithms"), True, False),
    ],
)
def test_a_difference_on_another_machine_cannot_be_judged(run, repeat, field, value, differs):
    forge(run, field, value)
    assert repeat().outcome == "identical"  # whatever the machine, if nothing differs
    entries = read_entries(run)
    entries[1]["state"]["weights"] = 16 * "0"
    forge_trail(run, entries)
    verdict = repeat()
    assert verdict.outcome == ("cannot judge" if differs else "differs")
    assert (f"this machine differs: {'.'.join(field[1:])}" in str(verdict.details)) == differs


def test_another_version_is_compared_in_what_both_record(run, repeat):
    statement = replace(
        read_statement(run), ("predicate", "source", "digest"), "sha256:" + 64 * "0"
    )
    entries = read_entries(run)
    entries[0]["source"] = statement["predicate"]["source"]
    for entry in entries[1:]:
        del entry["state"]["gradients"]
        entry["state"]["other"] = 16 * "0"
    forge_trail(run, entries, statement)
    verdict = repeat()
    assert verdict.outcome == "identical"
    assert "another version of seedless" in " ".join(verdict.details)
    for entry in entries[1:]:
        entry["state"] = {"loss": entry["state"]["loss"]}  # nothing is left of the weights
    forge_trail(run, entries)
    verdict = repeat()
    assert (verdict.outcome, verdict.difference["names"]) == ("cannot judge", ["weights"])


def test_a_command_that_fails_here_cannot_be_judged(run, repeat, executed, monkeypatch):
    def fail(*arguments, **options):
        result = executed.again(*arguments, **options)
        (result.folder / "stderr.txt").write_text("ModuleNotFoundError: no x\x1b[2J\n")
        return type(result)(**{**vars(result), "exit_code": 1})

    monkeypatch.setattr(reexecution, "execute_shown", fail)
    verdict = repeat()
    assert (verdict.outcome, verdict.code) == ("cannot judge", 3)
    assert r"ModuleNotFoundError: no x\x1b[2J" in verdict.as_text()


def test_a_script_that_changed_what_it_read_has_no_repeat(run, example, monkeypatch):
    monkeypatch.setattr(reexecution, "execute_shown", pytest.fail)
    forge(run, ("script", "changed"), ["state.json"])
    verdict = seedless.verify(run, execute_script=True, sources=example.folder)
    assert verdict.outcome == "cannot judge"
    assert "state.json" in verdict.sentence


# What is not executed


@pytest.fixture
def folder(example, tmp_path):
    return shutil.copytree(example.folder, tmp_path / "work")


@pytest.mark.parametrize("name", ["train.py", "table.json"])
@pytest.mark.parametrize("how", ["changed", "missing", "pipe", "folder"])
def test_other_sources_and_data_are_refused_before_anything_is_executed(
    run, folder, monkeypatch, name, how
):
    monkeypatch.setattr(reexecution, "execute_shown", pytest.fail)
    path = folder / name
    content = bytearray(path.read_bytes())
    path.unlink()
    if how == "changed":
        content[-2] ^= 1
        path.write_bytes(content)
    elif how == "pipe":
        os.mkfifo(path)
    elif how == "folder":
        path.mkdir()
    with pytest.raises(ConfigError):
        seedless.verify(run, execute_script=True, sources=folder)


def test_a_link_to_the_same_content_is_followed(run, folder, tmp_path, executed, monkeypatch):
    monkeypatch.setattr(reexecution, "execute_shown", executed.again)
    os.rename(folder / "table.json", tmp_path / "table.json")
    (folder / "table.json").symlink_to(tmp_path / "table.json")
    assert seedless.verify(run, execute_script=True, sources=folder).outcome == "identical"


def test_large_data_are_linked(run, folder, executed, monkeypatch):
    seen = []

    def look(command, place, scratch, **options):
        seen.append((scratch / "table.json").is_symlink())
        (scratch / "table.json").unlink()
        return executed.again(command, place, scratch, **options)

    monkeypatch.setattr(reexecution, "execute_shown", look)
    monkeypatch.setattr(reexecution, "MAX_COPIED_BYTES", 10)
    assert seedless.verify(run, execute_script=True, sources=folder).outcome == "identical"
    assert seen == [True]


def test_nothing_in_the_run_folder_is_executed(run, example, monkeypatch):
    monkeypatch.setattr(reexecution, "execute_shown", pytest.fail)
    with pytest.raises(ConfigError, match="is in the run folder"):
        seedless.verify(run, execute_script=True, sources=run)
    (run / "report.html").write_text("#!/bin/sh\n")
    (run / "report.html").chmod(0o755)
    with pytest.raises(ConfigError, match="is in the run folder"):
        seedless.verify(
            run, execute_script=True, sources=example.folder, python=str(run / "report.html")
        )
    with pytest.raises(ConfigError, match="there is no program"):
        seedless.verify(run, execute_script=True, sources=example.folder, python="no-such-python")


@pytest.mark.parametrize("option", [{"segment": 1}, {"device": "cpu"}, {"data": "x"}])
def test_options_of_other_runs_are_refused(example, option):
    with pytest.raises(ConfigError, match="is the run of a script"):
        seedless.verify(example.run, **option)


def test_variables_are_those_of_the_run(run, repeat, executed, monkeypatch):
    given = {}

    def look(command, place, scratch, *, variables):
        given.update(variables)
        return executed.again(command, place, scratch)

    monkeypatch.setattr(reexecution, "execute_shown", look)
    monkeypatch.setenv("MKL_DYNAMIC", "FALSE")
    repeat()
    assert given["MKL_CBWR"] == "COMPATIBLE"
    assert given["MKL_DYNAMIC"] is None  # it was not set then
    assert "CUDA_VISIBLE_DEVICES" not in given
    assert "LD_PRELOAD" not in given
