"""The folder of a script's run: what it may hold, and what its files must say."""

import os
import shutil
import zipfile

import pytest

import seedless
from seedless.core.digests import canonical_json
from seedless.core.errors import RunError
from seedless.proof.keys import make_key, public_path
from seedless.proof.loop_lines import read_loop
from seedless.runs.bundled_run import bundle
from seedless.runs.script_run import is_script_run, open_finished, open_script, validate_script
from seedless.runs.script_seal import flatten_values, list_step_lines
from seedless.runs.signed_run import sign_run
from seedless.runs.validation import open_validated
from tests.forgery import read_entries, read_statement, rechain, replace, seal, write_entries
from tests.script_runs import DATA, make_steps, write_script_run


@pytest.fixture
def run(tmp_path):
    return write_script_run(tmp_path / "run")


def refuse(run):
    verdict = seedless.verify(run)
    assert verdict.code == 2, verdict
    return " ".join([verdict.sentence, *verdict.details])


def forge_trail(run, change):
    """Change the lines of the trail, chain them anew and give the receipt what follows."""
    entries = read_entries(run)
    change(entries)
    entries = rechain(run, entries)
    end = {"head": entries[-1]["digest"], "entries": len(entries)}
    statement = replace(read_statement(run), ("predicate", "trail"), end)
    seal(run, replace(statement, ("predicate", "processes", "trails"), [end]))


def test_what_is_sealed_is_valid_and_was_not_executed(run):
    verdict = seedless.verify(run)
    assert (verdict.outcome, verdict.code, verdict.ok) == ("not executed", 4, False)
    first = verdict.as_text().splitlines()[0]
    assert first.startswith("NOT EXECUTED: ")
    assert "nothing was executed" in first
    assert "h5py" in verdict.as_text()
    assert seedless.verify(run, validate_only=True).outcome == "consistent"


def test_each_process_has_a_trail_with_a_line_for_each_step(tmp_path):
    run = write_script_run(tmp_path / "run", processes=[make_steps(3), make_steps(2)])
    trails = read_loop(run)
    assert [[line["step"] for line in trail[1:]] for trail in trails.values()] == [
        [1, 2, 3],
        [1, 2],
    ]
    start, first, *_ = trails[1]
    assert (start["rank"], start["world_size"], start["state"]) == (1, 2, {})
    assert start["settings"]["command"][:2] == ["python", "train.py"]
    assert (first["loss"], first["rate"]) == (1.5, 0.1)
    assert {*first["state"]} == {"weights", "batch/0", "batch/1"}
    assert open_script(run).claims["processes"]["count"] == 2


def test_a_long_run_has_fewer_lines_and_digests_of_the_steps_between(tmp_path, monkeypatch):
    monkeypatch.setattr("seedless.runs.script_seal.MAX_STEP_LINES", 5)
    lines = read_loop(write_script_run(tmp_path / "a", processes=[make_steps(9)]))[0][1:]
    assert [line["step"] for line in lines] == [2, 4, 6, 8, 9]
    other = make_steps(9, step_3={"weights": 16 * "f"})
    changed = read_loop(write_script_run(tmp_path / "b", processes=[other]))[0][1:]
    assert changed[0]["state"] == lines[0]["state"]
    assert changed[1]["state"] != lines[1]["state"]
    assert open_script(tmp_path / "b")


@pytest.mark.parametrize("loss", [[float("nan")], [float("inf"), 1.0], [], None, "x"])
def test_a_loss_that_is_no_number_is_left_out(loss):
    step = {"step": 1, "optimizer": 0, "values": {}, "shown": {"loss": loss}}
    assert next(list_step_lines([step]))["loss"] is None


def test_values_get_a_number_where_there_are_several():
    assert flatten_values({"a": "1", "b": ["2"], "c": ["3", "4"]}) == {
        "a": "1",
        "b": "2",
        "c/0": "3",
        "c/1": "4",
    }


# Changes that must be found


@pytest.mark.parametrize("name", ["trail.jsonl", "data.jsonl", "receipt.json"])
def test_one_flipped_bit_in_any_file_is_found(run, name):
    content = bytearray((run / name).read_bytes())
    content[len(content) // 2] ^= 1
    (run / name).write_bytes(content)
    assert refuse(run)


@pytest.mark.parametrize(
    "name", ["weights.safetensors", "provenance.json", "light.json", "train.py", "config.toml"]
)
def test_another_file_is_refused(run, name):
    (run / name).write_text("")
    assert name in refuse(run)
    seal(run)
    assert name in refuse(run)


@pytest.mark.parametrize("name", ["trail.jsonl", "data.jsonl"])
def test_a_missing_file_is_refused_under_a_new_seal(run, name):
    (run / name).unlink()
    assert name in refuse(run)
    seal(run, replace(read_statement(run), ("predicate", "files"), {}), files=False)
    assert refuse(run)


def test_the_trail_of_a_process_that_is_not_counted_is_refused(tmp_path):
    run = write_script_run(tmp_path / "run", processes=[make_steps(3), make_steps(2)])
    statement = read_statement(run)
    fewer = {"count": 1, "trails": statement["predicate"]["processes"]["trails"][:1]}
    seal(run, replace(statement, ("predicate", "processes"), fewer))
    assert "one trail for each process" in refuse(run)


@pytest.mark.parametrize("name", ["trail.jsonl", "data.jsonl", "receipt.json"])
def test_a_link_is_refused(run, tmp_path, name):
    os.rename(run / name, tmp_path / name)
    (run / name).symlink_to(tmp_path / name)
    assert refuse(run)


CHANGES = {
    "a step is missing at the end": lambda entries: entries.pop(),
    "no step": lambda entries: entries.__delitem__(slice(1, None)),
    "steps in another order": lambda entries: entries.insert(1, entries.pop(2)),
    "a step twice": lambda entries: entries.insert(1, entries[1]),
    "another rank": lambda entries: entries[0].update(rank=1),
    "another command": lambda entries: entries[0]["settings"].update(command=["python", "x.py"]),
    "another environment": lambda entries: entries[0]["environment"].update(python="3.14"),
    "another kind": lambda entries: entries[1].update(kind="epoch"),
    "a field more": lambda entries: entries[1].update(approved=True),
    "a state of another form": lambda entries: entries[1]["state"].update(weights="\x1b[2J"),
    "a tensor at the start": lambda entries: entries[0]["state"].update(weights=64 * "0"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_trail_that_cannot_be_of_this_run_is_refused_under_a_new_seal(run, change):
    if change is CHANGES["a step is missing at the end"]:
        entries = read_entries(run)[:-1]
        write_entries(run, entries)
        seal(run)
    else:
        forge_trail(run, change)
    assert refuse(run)


@pytest.mark.parametrize(
    "lines",
    [
        [DATA[0]],
        [DATA[0], DATA[1]],
        [DATA[1], DATA[1]],
        [DATA[1], {**DATA[0], "path": "../table.csv"}],
        [DATA[1], {**DATA[0], "size": 5}],
        [DATA[1], {**DATA[0], "mode": 1}],
        [DATA[1], 7],
    ],
    ids=["fewer", "not sorted", "twice", "leads out", "another size", "a field more", "a number"],
)
def test_data_that_cannot_be_of_this_run_are_refused_under_a_new_seal(run, lines):
    (run / "data.jsonl").write_bytes(b"".join(canonical_json(one) + b"\n" for one in lines))
    seal(run)
    assert refuse(run)


# What uses it, and what cannot


def test_what_needs_a_model_refuses_it_and_says_why(run):
    with pytest.raises(RunError, match="is the run of a script, which has no model"):
        open_validated(run)
    assert is_script_run(run)
    assert not is_script_run(run.parent)
    assert open_finished(run).script["command"][0] == "python"


def test_a_run_that_was_changed_is_not_opened(run):
    (run / "data.jsonl").write_text("")
    with pytest.raises(RunError, match=r"is not what its receipt says: data\.jsonl was changed"):
        open_finished(run)


def test_only_runs_of_scripts_are_read_as_such(run):
    seal(run, replace(read_statement(run), ("predicate", "kind"), "train"), files=False)
    with pytest.raises(RunError, match="is not the run of a script"):
        validate_script(run)
    assert refuse(run)


def test_it_can_be_signed_and_the_signature_is_checked(run, tmp_path):
    key = make_key(tmp_path / "key.pem")
    sign_run(run, key)
    verdict = seedless.verify(run, public_key=public_path(key))
    assert (verdict.outcome, verdict.signature["state"]) == ("not executed", "checked")
    stranger = make_key(tmp_path / "stranger.pem")
    assert seedless.verify(run, public_key=public_path(stranger)).outcome == "invalid"


def test_it_can_be_bundled_and_nothing_can_be_added(run, tmp_path):
    file = bundle(run, tmp_path / "run.zip").file
    assert seedless.verify(file).outcome == "not executed"
    with zipfile.ZipFile(file) as archive:
        names = archive.namelist()
    assert {"receipt.json", "trail.jsonl", "data.jsonl"} <= {*names}
    assert all(name.startswith("source/seedless/") for name in names if "/" in name)
    with pytest.raises(RunError, match="leave --with-data out"):
        bundle(run, tmp_path / "data.zip", with_data=True)
    for name in ("data/x.npy", "train.py", "weights.safetensors"):
        shutil.copyfile(file, tmp_path / "more.zip")
        with zipfile.ZipFile(tmp_path / "more.zip", "a") as archive:
            archive.writestr(zipfile.ZipInfo(name), b"x")
        assert seedless.verify(tmp_path / "more.zip").outcome == "invalid"
