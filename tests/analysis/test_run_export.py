"""`seedless.export`: a model of a notebook as ONNX, and its bill of materials."""

import json

import pytest

import seedless
from seedless.core.errors import ConfigError, RunError
from tests.tiny import fit_run, flags_restored, give, make_arrays


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    with flags_restored():
        return fit_run(tmp_path_factory.mktemp("export") / "run", train={"epochs": 1})


def test_a_run_of_fit_is_exported_from_what_it_was_trained_on(run, tmp_path):
    done = seedless.export(run, onnx=tmp_path / "a.onnx", **give())
    assert done.file.stat().st_size == done.as_dict()["bytes"]
    assert str(done).startswith(str(done.file))
    assert "on 16 test records" in repr(done)
    assert done.difference <= 1e-4
    with pytest.raises(RunError, match="other arrays than"):
        seedless.export(run, onnx=tmp_path / "b.onnx", **{**give(), "train": make_arrays(64, 9)})


def test_a_bill_of_materials_is_written(run, tmp_path):
    done = seedless.export(run, cyclonedx=str(tmp_path / "bom.json"))
    assert json.loads(done.file.read_text())["bomFormat"] == "CycloneDX"
    assert done.digest in str(done)
    with pytest.raises(RunError, match="is there already"):
        seedless.export(run, cyclonedx=done.file)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "one of --onnx"),
        ({"onnx": "a.onnx", "cyclonedx": "a.json"}, "one of --onnx"),
        ({"onnx": "a.onnx", "train": ()}, "both model and train"),
    ],
)
def test_options_that_contradict_each_other_are_refused(run, options, reason):
    with pytest.raises(ConfigError, match=reason):
        seedless.export(run, **options)
