"""Model signatures: the published tool verifies ours, ours verifies its, and neither any other."""

import base64
import json
import shutil
from functools import partial

import pytest
from cryptography.hazmat.primitives.asymmetric import utils

from seedless.core.files import hash_file
from seedless.proof.keys import SignatureError, make_key, public_path, read_keyid
from seedless.proof.model_signing import (
    FILE,
    check_listed_files,
    check_model_signature,
    make_statement,
    sign_model,
)
from tests.conftest import ROOT
from tests.published_tools import run_published

# Written by version 1.1.1 of the published tool, which was told to ignore report.html.
GOLDEN = ROOT / "tests" / "golden" / "model_signing"
CURVES = ("p256", "p384", "p521")


def hash_files(run):
    """The digests that validation would hand over: of the receipt and of all that it covers."""
    names = [path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file()]
    beside = (FILE, "report.html", "receipt.dsse.json", ".lock")
    return {name: hash_file(run / name) for name in names if name not in beside}


@pytest.fixture
def run(tmp_path):
    return shutil.copytree(GOLDEN / "run", tmp_path / "run")


@pytest.fixture
def key(tmp_path):
    return make_key(tmp_path / "model.pem", "P-256")


def rewrite(run, change):
    """Change the parsed bundle of a signature."""
    bundle = json.loads((run / FILE).read_bytes())
    change(bundle)
    (run / FILE).write_text(json.dumps(bundle))


def rewrite_statement(run, change):
    def change_payload(bundle):
        envelope = bundle["dsseEnvelope"]
        statement = json.loads(base64.b64decode(envelope["payload"]))
        change(statement)
        envelope["payload"] = base64.b64encode(json.dumps(statement).encode()).decode()

    rewrite(run, change_payload)


def test_a_signature_holds_names_its_key_and_repeats(run, key):
    files = hash_files(run)
    assert sign_model(run, files, key) == run / FILE
    content = (run / FILE).read_bytes()
    assert check_model_signature(run, files, public_path(key)) == read_keyid(key)
    assert check_listed_files(run, files) == []
    sign_model(run, files, key)
    assert (run / FILE).read_bytes() == content


@pytest.mark.parametrize("curve", CURVES)
def test_what_the_published_tool_signed_is_verified(run, curve):
    shutil.copy(GOLDEN / f"{curve}.sig", run / FILE)
    public = GOLDEN / f"{curve}.pem.pub"
    assert check_model_signature(run, hash_files(run), public) == read_keyid(public)
    (run / "report.html").write_text("added later, and listed as ignored")
    check_model_signature(run, hash_files(run), public)


@pytest.mark.parametrize("name", ["weights.safetensors", "config.toml", "receipt.json"])
def test_a_changed_file_is_found(run, name):
    shutil.copy(GOLDEN / "p256.sig", run / FILE)
    (run / name).write_bytes((run / name).read_bytes() + b"x")
    with pytest.raises(SignatureError, match=f"{name} is not the file that was signed"):
        check_model_signature(run, hash_files(run), GOLDEN / "p256.pem.pub")


def test_added_and_removed_files_are_found(run):
    shutil.copy(GOLDEN / "p256.sig", run / FILE)
    public = GOLDEN / "p256.pem.pub"
    (run / "receipt.dsse.json").write_text("{}")  # not ignored by this signature
    with pytest.raises(SignatureError, match=r"receipt\.dsse\.json was added after"):
        check_model_signature(run, hash_files(run), public)
    (run / "receipt.dsse.json").unlink()
    (run / "checkpoints" / "epoch-0002.safetensors").write_text("more")
    with pytest.raises(SignatureError, match=r"leaves out checkpoints/epoch-0002\.safetensors"):
        check_model_signature(run, hash_files(run), public)
    shutil.rmtree(run / "checkpoints")
    with pytest.raises(SignatureError, match=r"signs .checkpoints/epoch-0001\.safetensors., which"):
        check_model_signature(run, hash_files(run), public)


def test_a_signature_that_leaves_a_file_out_is_refused(run, key):
    """The published tool can be told to ignore any file; that file could then be replaced."""
    files = hash_files(run)
    sign_model(run, {name: files[name] for name in files if name != "config.toml"}, key)
    with pytest.raises(SignatureError, match=r"leaves out config\.toml"):
        check_model_signature(run, files, public_path(key))
    assert check_listed_files(run, files) != []


def test_a_run_without_weights_is_not_signed(run, key):
    files = hash_files(run)
    del files["weights.safetensors"]
    with pytest.raises(SignatureError, match="sign the complete run"):
        sign_model(run, files, key)


def test_another_key_does_not_verify(tmp_path, run, key):
    files, other = hash_files(run), make_key(tmp_path / "other.pem", "P-256")
    sign_model(run, files, key)
    with pytest.raises(SignatureError, match="got one by another key"):
        check_model_signature(run, files, public_path(other))
    claimed = {"publicKey": {"hint": read_keyid(other)}, "tlogEntries": []}
    rewrite(run, lambda bundle: bundle.update(verificationMaterial=claimed))
    with pytest.raises(SignatureError, match="does not verify"):
        check_model_signature(run, files, public_path(other))


def test_only_a_key_of_the_right_kind_signs_and_checks(tmp_path, run, key):
    files, receipt_key = hash_files(run), make_key(tmp_path / "receipt.pem")
    with pytest.raises(SignatureError, match="expected a P-256 private key"):
        sign_model(run, files, receipt_key)
    assert not (run / FILE).exists()
    with pytest.raises(SignatureError, match=f"has no {FILE}.*--model-signing"):
        check_model_signature(run, files, public_path(key))
    sign_model(run, files, key)
    with pytest.raises(SignatureError, match="expected a P-256 public key"):
        check_model_signature(run, files, public_path(receipt_key))


def test_somebody_elses_signature_is_not_overwritten(tmp_path, run, key):
    files = hash_files(run)
    sign_model(run, files, make_key(tmp_path / "other.pem", "P-256"))
    before = (run / FILE).read_bytes()
    with pytest.raises(SignatureError, match="holds another signature"):
        sign_model(run, files, key)
    assert (run / FILE).read_bytes() == before


def test_the_signed_list_cannot_change(run, key):
    files = hash_files(run)
    sign_model(run, files, key)

    def forget_the_weights(statement):
        statement["predicate"]["resources"] = statement["predicate"]["resources"][:-1]

    rewrite_statement(run, forget_the_weights)
    with pytest.raises(SignatureError, match="does not verify"):
        check_model_signature(run, files, public_path(key))
    assert "not a list of files" in check_listed_files(run, files)[0]


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.update(predicateType="https://example.org/v1"),
        lambda s: s.update(_type="x"),
        lambda s: s.update(subject=[]),
        lambda s: s["subject"][0]["digest"].update(sha256="0" * 64),
        lambda s: s["predicate"]["serialization"].update(method="shards"),
        lambda s: s["predicate"]["serialization"].update(hash_type="blake3"),
        lambda s: s["predicate"]["serialization"].update(allow_symlinks=True),
        lambda s: s["predicate"]["serialization"].update(ignore_paths=None),
        lambda s: s["predicate"].update(resources=5),
        lambda s: s["predicate"]["resources"].append(s["predicate"]["resources"][0]),
        lambda s: s["predicate"]["resources"][0].update(digest="xyz"),
        lambda s: s["predicate"].pop("serialization"),
    ],
)
def test_a_malformed_list_is_a_problem_of_the_run(run, key, change):
    files = hash_files(run)
    sign_model(run, files, key)
    rewrite_statement(run, change)
    assert len(check_listed_files(run, files)) == 1


def test_a_list_of_many_files_gives_few_problems(run, key):
    more = {f"file-{number}": "sha256:" + 64 * "0" for number in range(10_000)}
    sign_model(run, {**hash_files(run), **more}, key)
    problems = check_listed_files(run, hash_files(run))
    assert len(problems) == 10
    assert problems[0] == "model.sig: it signs 'file-0', which is not in the folder"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"\xff",
        b"[" * 100_000,
        b'{"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json"}',
        b'{"mediaType": 5}',
    ],
)
def test_what_is_no_bundle_is_refused(run, key, content):
    (run / FILE).write_bytes(content)
    with pytest.raises(SignatureError, match="expected a Sigstore bundle"):
        check_model_signature(run, hash_files(run), public_path(key))
    assert len(check_listed_files(run, hash_files(run))) == 1


def test_a_bundle_with_a_second_signature_is_refused(run, key):
    files = hash_files(run)
    sign_model(run, files, key)
    rewrite(run, lambda bundle: bundle["dsseEnvelope"]["signatures"].append({"sig": "AA=="}))
    with pytest.raises(SignatureError, match="expected a Sigstore bundle"):
        check_model_signature(run, files, public_path(key))


def test_signing_follows_rfc_6979(run, key):
    """Two signatures of one message are equal; a random one would differ."""
    sign_model(run, hash_files(run), key)
    first = json.loads((run / FILE).read_bytes())["dsseEnvelope"]["signatures"][0]["sig"]
    (run / FILE).unlink()
    sign_model(run, hash_files(run), key)
    second = json.loads((run / FILE).read_bytes())["dsseEnvelope"]["signatures"][0]["sig"]
    assert first == second
    utils.decode_dss_signature(base64.b64decode(first))  # DER, as Sigstore has it


def test_the_statement_names_the_folder_and_the_ignored_files(run):
    statement = json.loads(make_statement("demo", hash_files(run)))
    assert statement["subject"][0]["name"] == "demo"
    names = [one["name"] for one in statement["predicate"]["resources"]]
    assert names == sorted(names)
    ignored = {"report.html", FILE, ".git", ".lock"}
    assert ignored < {*statement["predicate"]["serialization"]["ignore_paths"]}


@pytest.fixture(scope="module")
def published_tool():
    """The published tool as a function of its arguments."""
    return partial(run_published, "model_signing")


def test_the_published_tool_verifies_what_was_signed_here(published_tool, run, key):
    sign_model(run, hash_files(run), key)
    (run / "report.html").write_text("made later")

    def verify(public):
        given = ("--signature", run / FILE, "--public_key", public)
        return published_tool("verify", "key", run, *given)

    done = verify(public_path(key))
    assert done.returncode == 0, done.stderr
    assert verify(GOLDEN / "p256.pem.pub").returncode != 0
    (run / "added.py").write_text("added")
    assert "Extra files" in verify(public_path(key)).stderr
    (run / "added.py").unlink()
    (run / "weights.safetensors").write_bytes(b"other")
    assert "Hash mismatch" in verify(public_path(key)).stderr


def test_what_the_published_tool_signs_now_is_verified_here(published_tool, run, key):
    done = published_tool("sign", "key", run, "--private_key", key, "--signature", run / FILE)
    assert done.returncode == 0, done.stderr
    assert check_model_signature(run, hash_files(run), public_path(key)) == read_keyid(key)
