"""ONNX files: the same logits, the same bytes, and nothing left where they differ."""

import json

import numpy as np
import pytest
import torch

import seedless
from seedless.analysis import onnx_export
from seedless.core.errors import ModelError, RunError
from seedless.data.normalize import Scale
from tests.evaluate.models import MODELS, make_model, make_samples
from tests.small import ECG, train_small
from tests.tiny import ENTRY, fit_run, flags_restored

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    with flags_restored():
        return train_small(
            tmp_path_factory.mktemp("ecg") / "run", *ECG, "model.name=baseline", "init.basis=dct"
        )


@pytest.fixture(scope="module")
def done(run, tmp_path_factory):
    """That run as a file; an export takes seconds, so those who only read share it."""
    with flags_restored():
        return onnx_export.export_run(run, tmp_path_factory.mktemp("onnx") / "a.onnx", records=20)


@pytest.mark.parametrize("name", MODELS)
def test_every_model_gives_its_own_logits_at_any_batch_size(name):
    model, samples = make_model(name).eval(), make_samples(name, 5)
    scale = Scale((0.3,), (1.7,))
    content = onnx_export.convert(
        onnx_export.NormalizedModel(model, scale, samples.ndim), samples, {"a": "b"}
    )
    with torch.no_grad():
        expected = model(torch.from_numpy(scale.apply(samples))).numpy()
    assert onnx_export.compare(content, samples, expected) < 1e-5
    assert onnx_export.compare(content, samples, expected + 1e-3) > 9e-4  # it can fail
    proto = onnx.load_from_string(content)
    onnx.checker.check_model(proto)
    assert [one.name for one in proto.graph.input] == ["x"]
    assert [one.name for one in proto.graph.output] == ["logits"]
    assert proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert b".py" not in content  # no source lines, no folders


def test_one_scale_a_lead():
    layers = torch.nn.Conv1d(6, 4, 5, stride=4), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool1d(1)
    model = torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(4, 3)).eval()
    seedless.initialize(model, "dct")
    samples = make_samples("baseline", 3)
    scale = Scale(tuple(0.1 * k for k in range(6)), tuple(1 + 0.2 * k for k in range(6)))
    content = onnx_export.convert(onnx_export.NormalizedModel(model, scale, 3), samples, {})
    with torch.no_grad():
        expected = model(torch.from_numpy(scale.apply(samples))).numpy()
    assert onnx_export.compare(content, samples, expected) < 1e-5
    with torch.no_grad():
        one = model(torch.from_numpy(Scale((0.1,), (1.0,)).apply(samples))).numpy()
    assert onnx_export.compare(content, samples, one) > 1e-3  # with one scale for all it would show


def test_a_run_is_exported_with_what_its_user_must_know(run, done):
    assert done.difference <= onnx_export.TOLERANCE
    assert done.records == 20
    said = {one.key: one.value for one in onnx.load(done.file).metadata_props}
    claims = seedless.load(run).claims
    assert said["seedless.weights"] == claims["weights"]["digest"]
    assert json.loads(said["seedless.classes"]) == claims["data"]["classes"]
    normalization = json.loads(said["seedless.normalization"])
    assert normalization["where"].startswith("inside this file")
    assert {k: normalization[k] for k in ("mean", "deviation")} == claims["data"]["scale"]
    assert said["seedless.probabilities"] == "sigmoid"
    # Through the file alone: raw records in, the run's written probabilities out.
    found = done.opened
    session = ort.InferenceSession(done.file)
    logits = session.run(None, {"x": found.records})[0].astype(np.float64)
    np.testing.assert_allclose(1 / (1 + np.exp(-logits)), found.predict(found.records), atol=1e-5)


def test_the_file_repeats_to_the_byte_in_another_process(run, done, tmp_path, run_python):
    """Of another hash seed, and with nothing exported before it."""
    script = (
        "import sys; from pathlib import Path; \n"
        "from seedless.analysis.onnx_export import export_run\n"
        "export_run(sys.argv[1], Path(sys.argv[2]), records=4)\n"
        "print(hash('a'))\n"
    )
    printed = run_python("-c", script, str(run), str(tmp_path / "b.onnx"), PYTHONHASHSEED=7).stdout
    assert int(printed) != hash("a")
    assert (tmp_path / "b.onnx").read_bytes() == done.file.read_bytes()


def test_a_file_that_is_not_the_model_is_not_left(tmp_path, monkeypatch):
    run = fit_run(tmp_path / "run")
    right = onnx_export.convert

    def wrong(model, samples, metadata):
        with torch.no_grad():
            model.model[4].bias += 1e-3
        return right(model, samples, metadata)

    monkeypatch.setattr(onnx_export, "convert", wrong)
    out = tmp_path / "files" / "wrong.onnx"
    out.parent.mkdir()
    with pytest.raises(RunError, match=r"differ by up to 0\.001 on 8 test records, more than 0"):
        onnx_export.export_run(run, out, entry=ENTRY, records=8)
    assert not out.exists()
    monkeypatch.setattr(onnx_export, "compare", lambda *_: float("nan"))
    with pytest.raises(RunError, match="no file was left"):
        onnx_export.export_run(run, out, entry=ENTRY, records=8)
    assert list(out.parent.iterdir()) == []


def test_a_model_of_ones_own(tmp_path):
    run = fit_run(tmp_path / "run")
    done = onnx_export.export_run(run, tmp_path / "own.onnx", entry=ENTRY)
    said = {one.key: one.value for one in onnx.load(done.file).metadata_props}
    assert said["seedless.normalization"].startswith("none")
    assert said["seedless.probabilities"] == "softmax"


def test_what_cannot_be_exported_says_why(run, tmp_path, monkeypatch):
    class Odd(torch.nn.Module):
        def forward(self, x):
            return x[:, 0] if x.sum() > 0 else x[:, 1]

    with pytest.raises(ModelError, match="torch cannot export this model as ONNX: "):
        onnx_export.convert(Odd(), make_samples("baseline", 2), {})
    monkeypatch.setattr(onnx_export, "find_spec", lambda name: None if name == "onnxscript" else 1)
    with pytest.raises(RunError, match=r"needs onnxscript.*pip install 'seedless\[onnx\]'"):
        onnx_export.export_run(run, tmp_path / "a.onnx")
