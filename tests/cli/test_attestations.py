"""The commands that write what other tools read, as a person runs them."""

import json
import sys
from base64 import b64decode

import pytest

from seedless.cli.main import main
from seedless.core.files import hash_file
from seedless.proof.envelope import check_envelope
from seedless.proof.keys import make_key, public_path, read_keyid
from seedless.proof.receipt import read_receipt
from seedless.runs.folder import read_config
from tests.forgery import reconfigure
from tests.tiny import ENTRY, answer_here, copy_run, fit_run, flags_restored


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    with flags_restored():
        return fit_run(tmp_path_factory.mktemp("attest") / "run")


@pytest.fixture
def run(finished, tmp_path):
    with flags_restored():
        yield copy_run(finished, tmp_path / "run")


@pytest.fixture
def key(tmp_path):
    return make_key(tmp_path / "key.pem")


@pytest.fixture
def model_key(tmp_path):
    return make_key(tmp_path / "model.pem", "P-256")


@pytest.fixture
def call(monkeypatch, capsys):
    """Run the program in this process; return exit code, standard output and standard error."""
    monkeypatch.setattr("seedless.audit.verification.run_worker", answer_here)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["seedless", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return call


def change_weights(run):
    (run / "weights.safetensors").write_bytes(b"other")


class TestProvenance:
    def test_it_is_written_next_to_the_receipt_and_the_run_stays_valid(self, call, run):
        code, out, _ = call("provenance", run, "--json")
        file = run / "provenance.json"
        expected = {"run": str(run), "file": str(file), "digest": hash_file(file)}
        assert (code, json.loads(out)) == (0, expected)
        content = file.read_bytes()
        assert call("provenance", run)[0] == 0
        assert file.read_bytes() == content
        assert call("verify", run, "--validate-only")[0] == 0

    def test_with_a_key_it_is_an_envelope_of_the_same_bytes(self, call, run, key):
        call("provenance", run)
        assert call("provenance", run, "--key", key)[0] == 0
        payload, keyid = check_envelope(run / "provenance.dsse.json", public_path(key))
        assert payload == (run / "provenance.json").read_bytes()
        assert keyid == read_keyid(key)
        assert call("verify", run, "--validate-only")[0] == 0

    def test_it_can_be_written_elsewhere(self, call, run, tmp_path):
        out = tmp_path / "elsewhere.json"
        assert call("provenance", run, "--out", out)[0] == 0
        assert json.loads(out.read_bytes())["predicateType"] == "https://slsa.dev/provenance/v1"
        assert not (run / "provenance.json").exists()
        code, _, err = call("provenance", run, "--out", out)
        assert code == 2
        assert "is there already" in err
        assert call("provenance", run, "--out", out, "--force")[0] == 0
        code, _, err = call("provenance", run, "--out", run / "other.json")
        assert code == 2
        assert "inside the run folder" in err

    def test_a_run_that_is_not_valid_has_none(self, call, run):
        change_weights(run)
        code, _, err = call("provenance", run)
        assert code == 2
        assert "weights.safetensors was changed" in err
        assert not (run / "provenance.json").exists()

    def test_a_planted_one_is_invalid_and_not_replaced(self, call, run):
        (run / "provenance.json").write_text("{}")
        code, out, _ = call("verify", run, "--validate-only")
        assert code == 2
        assert "provenance.json does not say what the receipt says" in out
        assert call("provenance", run)[0] == 2

    def test_the_signature_of_another_is_not_replaced(self, call, run, key, tmp_path):
        other = make_key(tmp_path / "other.pem")
        assert call("provenance", run, "--key", other)[0] == 0
        code, _, err = call("provenance", run, "--key", key)
        assert code == 2
        assert f"is signed by key {read_keyid(other)}" in err
        assert call("provenance", run, "--key", key, "--force")[0] == 0
        assert check_envelope(run / "provenance.dsse.json", public_path(key))[1] == read_keyid(key)

    def test_a_folder_that_cannot_be_written_is_an_error(self, call, run, monkeypatch):
        def refuse(*_):
            raise OSError(30, "Read-only file system")

        monkeypatch.setattr("seedless.core.files.write_atomic", refuse)
        code, _, err = call("provenance", run)
        assert code == 2
        assert err == f"error: cannot write {run / 'provenance.json'}: Read-only file system\n"

    def test_a_key_for_models_is_refused(self, call, run, model_key):
        code, _, err = call("provenance", run, "--key", model_key)
        assert code == 2
        assert "expected an ed25519 private key" in err


class TestSummary:
    def read(self, file, key):
        return json.loads(check_envelope(file, public_path(key))[0])["predicate"]

    def test_a_run_that_was_executed_passes(self, call, run, key, tmp_path):
        out = tmp_path / "summary.json"
        code, printed, _ = call("verify", run, "--entry", ENTRY, "--summary", out, "--key", key)
        assert code == 0
        assert printed.startswith("IDENTICAL")
        summary = self.read(out, key)
        assert summary["verificationResult"] == "PASSED"
        assert summary["verifier"]["id"] == f"urn:seedless:verifier:ed25519:{read_keyid(key)}"
        digest = read_receipt(run)["predicate"]["digest"]
        assert summary["resourceUri"] == f"urn:seedless:run:{digest}"
        (read,) = summary["inputAttestations"]
        assert f"sha256:{read['digest']['sha256']}" == hash_file(run / "receipt.json")

    @pytest.mark.parametrize(
        ("options", "code", "executed"),
        [
            (("--validate-only",), 0, "nothing that decides"),
            (("--entry", ENTRY, "--segment", 2), 4, "segments 2 of 3"),
            (("--entry", ENTRY, "--segment", 2, "--accept-part"), 0, "segments 2 of 3"),
        ],
    )
    def test_a_part_does_not_pass(self, call, run, key, tmp_path, options, code, executed):
        out = tmp_path / "summary.json"
        assert call("verify", run, *options, "--summary", out, "--key", key)[0] == code
        summary = self.read(out, key)
        assert summary["verificationResult"] == "FAILED"
        assert summary["urn:seedless:verification:1"]["executed"] == executed

    def test_a_run_that_differs_fails(self, call, run, key, tmp_path):
        other = fit_run(tmp_path / "flipped", control={"flip_bit": "0.weight:3:0"})
        reconfigure(other, read_config(run))
        out = tmp_path / "summary.json"
        assert call("verify", other, "--entry", ENTRY, "--summary", out, "--key", key)[0] == 1
        summary = self.read(out, key)
        assert summary["verificationResult"] == "FAILED"
        assert summary["urn:seedless:verification:1"]["outcome"] == "differs"

    def test_a_run_that_is_not_valid_has_no_summary(self, call, run, key, tmp_path):
        change_weights(run)
        out = tmp_path / "summary.json"
        code, printed, err = call("verify", run, "--summary", out, "--key", key)
        assert code == 2
        assert printed.startswith("INVALID")
        assert "no summary was written" in err
        assert not out.exists()

    def test_it_may_be_kept_in_the_run_folder_under_one_name(self, call, run, key):
        given = ("--validate-only", "--key", key, "--summary")
        code, _, err = call("verify", run, *given, run / "summary.json")
        assert code == 2
        assert "verification.dsse.json only" in err
        assert call("verify", run, *given, run / "verification.dsse.json")[0] == 0
        assert call("verify", run, "--validate-only")[0] == 0

    def test_what_could_not_be_written_is_refused_before_anything_is_executed(
        self, call, run, key, model_key, tmp_path
    ):
        out = tmp_path / "summary.json"
        for given, message in (
            (("--summary", out), "expected both --summary FILE and --key"),
            (("--key", key), "expected both --summary FILE and --key"),
            (("--summary", out, "--key", model_key), "expected an ed25519 private key"),
            (("--summary", out, "--key", public_path(key)), "this is a public one"),
            (("--summary", tmp_path / "no" / "file", "--key", key), "there is no folder"),
            (("--summary", key, "--key", key), "is there already"),
        ):
            code, printed, err = call("verify", run, "--entry", ENTRY, *given)
            assert (code, printed) == (2, ""), given
            assert message in err
        assert not out.exists()


class TestModelSignature:
    def test_sign_and_verify(self, call, run, tmp_path):
        key = tmp_path / "new.pem"
        assert call("sign", "--new-key", key, "--model-signing")[0] == 0
        code, out, _ = call("sign", run, "--key", key, "--model-signing", "--json")
        expected = {"run": str(run), "signature": str(run / "model.sig"), "keyid": read_keyid(key)}
        assert (code, json.loads(out)) == (0, expected)
        code, out, _ = call("verify", run, "--validate-only", "--public-key", public_path(key))
        assert code == 0
        assert f"files signed by key {read_keyid(key)} in model.sig (checked)" in out

    def test_it_says_how_others_check_it(self, call, run, model_key):
        _, out, _ = call("sign", run, "--key", model_key, "--model-signing")
        command = f"model_signing verify key {run} --signature {run / 'model.sig'}"
        assert f"{command} --public_key {public_path(model_key)}" in out

    def test_it_covers_what_comes_later_by_name_only(self, call, run, key, model_key):
        call("sign", run, "--key", model_key, "--model-signing")
        call("sign", run, "--key", key)
        call("provenance", run)
        (run / "report.html").write_text("made later")
        checked = ("verify", run, "--validate-only", "--public-key")
        assert call(*checked, public_path(model_key))[0] == 0
        assert call(*checked, public_path(key))[0] == 0

    def test_a_bundle_carries_it(self, call, run, model_key, tmp_path):
        call("sign", run, "--key", model_key, "--model-signing")
        call("provenance", run)
        assert call("bundle", run, "--out", tmp_path / "run.zip")[0] == 0
        checked = ("--validate-only", "--public-key", public_path(model_key))
        code, out, _ = call("verify", tmp_path / "run.zip", *checked)
        assert code == 0
        assert "in model.sig (checked)" in out

    def test_another_key_and_no_signature_are_invalid(self, call, run, model_key, tmp_path):
        checked = ("verify", run, "--validate-only", "--public-key", public_path(model_key))
        code, out, _ = call(*checked)
        assert code == 2
        assert "has no model.sig" in out
        call("sign", run, "--key", make_key(tmp_path / "x.pem", "P-256"), "--model-signing")
        code, out, _ = call(*checked)
        assert code == 2
        assert "got one by another key" in out

    def test_keys_of_the_other_kind_are_refused(self, call, run, key, model_key):
        code, _, err = call("sign", run, "--key", key, "--model-signing")
        assert code == 2
        assert "expected a P-256 private key" in err
        code, _, err = call("sign", run, "--key", model_key)
        assert code == 2
        assert "expected an ed25519 private key" in err

    def test_a_run_that_is_not_valid_is_not_signed(self, call, run, model_key):
        change_weights(run)
        code, _, err = call("sign", run, "--key", model_key, "--model-signing")
        assert code == 2
        assert "weights.safetensors was changed" in err
        assert not (run / "model.sig").exists()

    def test_the_weights_are_in_it(self, call, run, model_key):
        call("sign", run, "--key", model_key, "--model-signing")
        bundle = json.loads((run / "model.sig").read_bytes())
        statement = json.loads(b64decode(bundle["dsseEnvelope"]["payload"]))
        signed = {one["name"]: one["digest"] for one in statement["predicate"]["resources"]}
        for name in ("weights.safetensors", "receipt.json", "trail.jsonl"):
            assert f"sha256:{signed[name]}" == hash_file(run / name)


class TestBillOfMaterials:
    def test_it_is_written_once(self, call, run, tmp_path):
        out = tmp_path / "bom.json"
        code, printed, _ = call("export", run, "--cyclonedx", out, "--json")
        assert code == 0
        assert json.loads(printed)["digest"] == hash_file(out)
        assert json.loads(out.read_bytes())["bomFormat"] == "CycloneDX"
        code, _, err = call("export", run, "--cyclonedx", out)
        assert code == 2
        assert "is there already" in err

    def test_a_run_that_is_not_valid_has_none(self, call, run, tmp_path):
        change_weights(run)
        code, _, err = call("export", run, "--cyclonedx", tmp_path / "bom.json")
        assert code == 2
        assert "weights.safetensors was changed" in err
        assert not (tmp_path / "bom.json").exists()

    @pytest.mark.parametrize("given", [(), ("--onnx", "a", "--cyclonedx", "b")])
    def test_one_format_must_be_chosen(self, call, run, given):
        code, _, err = call("export", run, *given)
        assert code == 2
        assert "expected one of --onnx FILE.onnx and --cyclonedx FILE.json" in err
