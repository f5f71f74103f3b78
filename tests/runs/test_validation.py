"""`open_validated`: a run is used only if it agrees with its receipt, and only as it was read."""

import dataclasses
import json
import os

import pytest
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from seedless.core.config_files import load_config
from seedless.core.errors import RunError
from seedless.evaluate.predictions import parse_predictions, serialize
from seedless.evaluate.scores import score_predictions
from seedless.proof.stripped_run import describe_stripped, is_stripped
from seedless.runs.validation import open_validated, validate
from tests.forgery import forge, read_entries, read_statement, reconfigure, rewrite_checkpoint, seal
from tests.tiny import copy_run, fit_run, flags_restored


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    with flags_restored():
        return fit_run(tmp_path_factory.mktemp("validation") / "run", train={"epochs": 1})


@pytest.fixture
def run(made, tmp_path):
    return copy_run(made, tmp_path / "run")


def strip(run):
    """Leave out what the archive of a study leaves out."""
    statement = read_statement(run)
    names = [name for name in statement["predicate"]["files"] if is_stripped(name)]
    for name in names:
        (run / name).unlink(missing_ok=True)
    (run / "checkpoints").rmdir()
    (run / "light.json").write_bytes(describe_stripped(statement, names))


def test_a_run_that_agrees_is_returned_with_what_was_read(run):
    opened = open_validated(str(run))
    assert opened.receipt == read_statement(run)
    assert opened.claims == opened.receipt["predicate"]
    assert open_validated(opened) is opened
    assert opened.read_predictions().weights == opened.claims["weights"]["digest"]
    assert json.loads(opened.read_file("metrics.json")) == opened.claims["metrics"]


def test_the_error_names_the_first_problem_and_how_to_see_all(run):
    (run / "metrics.json").write_text("{}")
    expected = r"run is not what its receipt says: metrics\.json was changed.* \(and \d+ more\)"
    with pytest.raises(RunError, match=expected) as refusal:
        open_validated(run)
    assert f"`seedless verify --validate-only {run}` lists everything" in str(refusal.value)


@pytest.mark.parametrize("name", ["weights.safetensors", "predictions.npz", "config.toml"])
def test_a_file_that_changes_after_it_was_validated_is_not_used(run, name):
    opened = open_validated(run)
    content = (run / name).read_bytes()
    (run / name).write_bytes(content + b"\n")
    with pytest.raises(RunError, match="was changed while it was used"):
        opened.read_file(name)
    (run / name).unlink()
    with pytest.raises(RunError, match="cannot read"):
        opened.read_file(name)
    (run / name).write_bytes(content)
    assert opened.read_file(name) == content


def test_weights_that_were_left_out_are_said_to_be(run):
    strip(run)
    with pytest.raises(
        RunError, match=r"stripped run, without weights\.safetensors: `seedless ver"
    ):
        open_validated(run).read_file("weights.safetensors")


@pytest.mark.parametrize("name", ["receipt.json", "config.toml", "trail.jsonl", "predictions.npz"])
def test_a_pipe_in_the_place_of_a_file_keeps_nobody_waiting(run, name):
    (run / name).unlink()
    os.mkfifo(run / name)
    (problem,) = validate(run).problems
    assert problem.startswith(f"'{name}' is a pipe")


def test_a_module_is_refused_although_the_receipt_lists_it(run):
    (run / "torch.py").write_text("raise SystemExit\n")
    seal(run)
    assert validate(run).problems == (
        "'torch.py' is not a file of a run: it was added; move it away",
    )


def test_a_stripped_run_cannot_list_a_module_as_left_out(run):
    (run / "checkpoints" / "torch.py").write_text("raise SystemExit\n")
    seal(run)
    (run / "checkpoints" / "torch.py").unlink()
    strip(run)
    problems = " ".join(validate(run).problems)
    assert "the receipt lists 'checkpoints/torch.py', which is not a file that receipts" in problems


@pytest.mark.parametrize("metadata", [{"format": "pt", "licence": "mit"}, {"format": "tf"}, None])
def test_metadata_added_to_the_weights_make_a_run_invalid(run, metadata):
    path = run / "weights.safetensors"
    save_file(load_file(path), path, metadata=metadata)
    seal(run)
    (problem,) = validate(run).problems
    assert problem == "weights.safetensors has other metadata than a run writes: they were added"


@pytest.mark.parametrize(
    "change",
    [
        lambda meta: meta.update(note="added"),
        lambda meta: meta.update(best=1),
        lambda meta: meta.update(moved=None),
        lambda meta: meta.pop("moved"),
    ],
)
def test_a_checkpoint_with_metadata_of_another_form_is_refused_by_name(run, change):
    (path,) = (run / "checkpoints").iterdir()
    rewrite_checkpoint(path, lambda meta, tensors: change(meta))
    seal(run)
    assert [problem for problem in validate(run).problems if path.name in problem]


def test_metadata_added_beside_those_of_a_checkpoint_are_refused(run):
    (path,) = (run / "checkpoints").iterdir()
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
    save_file(load_file(path), path, metadata={**metadata, "note": "added"})
    seal(run)
    assert any("other metadata than a checkpoint" in one for one in validate(run).problems)


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("cpu", "a processor"),
        ("cpu", {"model": 1}),
        ("devices", [1]),
        ("devices", {}),
        ("packages", [1, 2]),
        ("packages", {"torch": 2}),
        ("python", None),
    ],
)
def test_an_environment_of_another_form_makes_a_run_invalid(run, part, value):
    entries = read_entries(run)
    entries[0]["environment"][part] = value
    forge(run, entries)
    (problem,) = validate(run).problems
    assert problem.startswith("the environment does not state versions")


@pytest.mark.parametrize("source", ["seedless", {"name": "seedless"}, {"digest": 1}])
def test_a_source_of_another_form_makes_a_run_invalid(run, source):
    entries = read_entries(run)
    entries[0]["source"] = source
    forge(run, entries)
    (problem,) = validate(run).problems
    assert problem.startswith("the receipt does not state name, version and digest of the source")


def test_a_run_on_a_gpu_names_one(run):
    config = load_config(run / "config.toml")
    reconfigure(run, config.change(execution={"device": "cuda"}), devices=())
    (problem,) = validate(run).problems
    assert problem == "config.toml names a CUDA device, and the environment has none"


def test_predictions_of_a_split_that_no_run_has_make_it_invalid(run):
    path = run / "predictions.npz"
    predictions = parse_predictions(path.read_bytes())
    test = predictions.splits["test"]
    added = dataclasses.replace(predictions, splits={**predictions.splits, "clinic": test})
    path.write_bytes(serialize(added))
    statement = read_statement(run)
    metrics = {**statement["predicate"]["metrics"], **score_predictions(added)}
    (run / "metrics.json").write_text(json.dumps(metrics))
    statement["predicate"] |= {"metrics": metrics, "predictions": added.digest}
    seal(run, statement)
    (problem,) = validate(run).problems
    assert problem == "predictions.npz has splits that no run scores: they were added"
