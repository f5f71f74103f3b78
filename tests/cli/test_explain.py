"""`seedless robustness`, `attribute`, `export` and `card` as a person runs them."""

import json
import sys

import numpy as np
import pytest

import seedless
from seedless.cli.main import main
from seedless.core.files import hash_file
from tests.small import ECG, train_small
from tests.tiny import ENTRY, fit_run, flags_restored


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    with flags_restored():
        return train_small(tmp_path_factory.mktemp("explain") / "run", *ECG)


@pytest.fixture
def call(monkeypatch, capsys):
    """Run the program in this process; return exit code, standard output and standard error."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["seedless", *map(str, arguments)])
        with flags_restored(), pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return call


def test_robustness_prints_a_table_and_json(call, run, real_data):
    code, out, _ = call("robustness", run, "--snr", "20,0")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].split() == ["noise", "SNR", "dB", "macro", "AUC", "drop"]
    assert [line.split()[0] for line in lines[1:8]] == [
        "clean",
        *["bw"] * 2,
        *["ma"] * 2,
        *["em"] * 2,
    ]
    clean = seedless.load(run).metrics["test"]["macro_auc"]
    assert lines[1].split() == ["clean", f"{clean:.4f}", "0.0000"]
    assert lines[-1].startswith("simulated noise on ")
    code, again, _ = call("robustness", run, "--snr", "20 0", "--json")
    found = json.loads(again)
    assert (code, found["noise"], len(found["rows"])) == (0, "simulated", 7)
    assert found["rows"][0]["macro_auc"] == clean
    for row, line in zip(found["rows"], lines[1:8], strict=True):
        assert f"{row['macro_auc']:.4f}" in line
    recorded = ("--noise", "nstdb", "--noise-path", real_data / "nstdb-excerpt")
    code, out, _ = call("robustness", run, "--snr=-6", *recorded, "--json")
    real = json.loads(out)
    assert (code, real["noise"], len(real["rows"])) == (0, "nstdb", 4)
    assert real["rows"][1]["snr_db"] == -6


def test_attribute_writes_maps_that_repeat_to_the_byte(call, run, tmp_path):
    files = [tmp_path / "a.npz", tmp_path / "b.npz"]
    for file in files:
        code, out, _ = call("attribute", run, "--records", 3, "--out", file)
        assert code == 0
        assert len(out.splitlines()) == 5
    assert files[0].read_bytes() == files[1].read_bytes()
    with np.load(files[0]) as file:
        maps, digests = file["maps"], file["digests"]
        assert maps.shape == (1, 3, 1000)
        assert maps.dtype == np.float32
        assert file["weights"] == seedless.load(run).digest
        assert file["layers"].tolist() == ["encoder"]
    assert f"gradcam encoder  {digests[0]}" in out
    assert hash_file(files[0]) in out


def test_attribute_explains_records_of_a_class(call, run):
    code, out, _ = call("attribute", run, "--class", "AFIB", "--records", 2, "--json")
    found = json.loads(out)
    assert code == 0
    assert [row["class"] for row in found["records"]] == ["AFIB", "AFIB"]
    assert all(row["labelled"] for row in found["records"])
    with np.load(run / "predictions.npz") as file:
        ids, classes = file["test_ids"].tolist(), file["classes"].tolist()
        for row in found["records"]:
            written = file["test_probabilities"][ids.index(row["id"]), classes.index("AFIB")]
            assert row["probability"] == written
    code, out, _ = call("attribute", run, "--method", "attention", "--records", 1, "--json")
    assert [layer for layer, _ in json.loads(out)["layers"]] == ["encoder.0.attention"]


def test_attribute_writes_a_page_with_pictures_and_digests(call, run, tmp_path):
    pages = [tmp_path / "a.html", tmp_path / "b.html"]
    for page in pages:
        code, out, _ = call("attribute", run, "--records", 2, "--report", page)
        assert (code, out.splitlines()[-1]) == (0, str(page))
    text = pages[0].read_text()
    assert text == pages[1].read_text()
    assert text.count("<img ") == 2
    assert text.count("<source ") == 2
    assert str(tmp_path) not in text
    found = json.loads(call("attribute", run, "--records", 2, "--json")[1])
    for row in found["records"]:
        assert f"the model gives {row['class']} a probability of {row['probability']:.2f}" in text
    assert found["layers"][0][1].removeprefix("sha256:") in text
    assert seedless.load(run).digest.removeprefix("sha256:") in text
    assert found["page"] is None
    code, _, err = call("attribute", run, "--records", 2, "--report", pages[0])
    assert code == 2
    assert "is there already" in err
    attention = ("attribute", run, "--method", "attention", "--records", 1, "--force", "--report")
    assert call(*attention, pages[0])[0] == 0
    assert "Where the attention is, in 1 record<" in pages[0].read_text()


def test_export_says_how_far_the_file_is_from_the_run(call, tmp_path):
    pytest.importorskip("onnxruntime")
    run, file = fit_run(tmp_path / "run"), tmp_path / "model.onnx"
    command = ("export", run, "--onnx", file, "--entry", ENTRY)
    code, out, err = call(*command, "--records", 5, "--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert 0 <= found["max_abs_difference"] <= found["tolerance"] == 1e-4
    assert found["digest"] == hash_file(file)
    code, _, err = call(*command)
    assert code == 2
    assert "is there already" in err


def test_card_prints_or_writes_the_same_bytes(call, run, tmp_path):
    code, shown, _ = call("card", run, "--license", "mit", "--name", "ours")
    assert code == 0
    file = tmp_path / "README.md"
    code, out, _ = call("card", run, "--license", "mit", "--name", "ours", "--out", file)
    assert file.read_text() == shown
    assert out == f"{file}  {hash_file(file)}\n"
    assert shown.startswith('---\n"license": "mit"\n')
    assert str(run) not in shown
    found = json.loads(call("card", run, "--json")[1])
    assert found["card"].startswith("---\n")
    assert found["file"] is None


def test_the_run_is_as_valid_as_before(call, run):
    assert call("verify", run, "--validate-only")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("robustness", "RUN", "--noise", "nstbd"), "did you mean 'nstdb'"),
        (("robustness", "RUN", "--snr", "loud"), "expected --snr as numbers in dB"),
        (("robustness", "RUN", "--snr", ","), "each once; got none"),
        (("robustness", "RUN", "--snr", "nan"), "each once; got nan"),
        (("robustness", "RUN", "--noise-path", "x"), "belongs to recorded noise"),
        (("robustness", "RUN", "--noise", "nstdb", "--noise-path", "absent"), "no such folder"),
        (("attribute", "RUN", "--class", "AFIBB"), "did you mean 'AFIB'"),
        (("attribute", "RUN", "--method", "shap"), "unknown attribution method 'shap'"),
        (("attribute", "RUN", "--layer", "encodr"), "did you mean 'encoder'"),
        (("attribute", "RUN", "--layer", "x", "--method", "attention"), "belongs to gradcam"),
        (("attribute", "RUN", "--out", "RUN/maps.npz"), "would be inside the run folder"),
        (("export", "RUN", "--onnx", "RUN/m.onnx"), "would be inside the run folder"),
        (("card", "RUN", "--out", "RUN/README.md"), "would be inside the run folder"),
        (("card", "absent"), "no run at 'absent'"),
        (("attribute", "absent"), "no run at 'absent'"),
        (("export", "absent", "--onnx", "x.onnx"), "no run at 'absent'"),
        (("robustness", "RUN", "--entry", ENTRY), "leave --entry out"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_input_is_2_with_one_message(call, run, arguments, message):
    code, out, err = call(*(str(part).replace("RUN", str(run)) for part in arguments))
    assert code == 2
    assert message in " ".join(err.split())
    assert err.startswith("error: ")
    assert "Traceback" not in err
    assert out == ""
    assert not (run / "README.md").exists()


def test_noise_is_for_recordings(call, tmp_path):
    other = fit_run(tmp_path / "fit")
    code, _, err = call("robustness", other, "--entry", ENTRY)
    assert code == 2
    assert "noise is added to recordings" in err
