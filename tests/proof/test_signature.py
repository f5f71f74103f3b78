"""Signatures: who signed which receipt, and nothing else passes for it."""

import base64
import hashlib
import json
import os
import subprocess
import sys

import pytest
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa

from seedless.core.digests import canonical_json
from seedless.core.errors import SeedlessError
from seedless.proof.envelope import encode_pae
from seedless.proof.keys import SignatureError, make_key, public_path, read_keyid
from seedless.proof.receipt import FILE as RECEIPT
from seedless.proof.receipt import SIGNATURE as ENVELOPE
from seedless.proof.signature import check_signature, read_signature, sign_receipt


def make_run(folder, epochs=3):
    folder.mkdir()
    receipt = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "weights.safetensors", "digest": {"sha256": "0" * 64}}],
        "predicateType": "https://example.org/run/v1",
        "predicate": {"epochs": epochs, "files": {}},
    }
    (folder / RECEIPT).write_bytes(canonical_json(receipt) + b"\n")
    return folder


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path / "run")


@pytest.fixture
def key(tmp_path):
    return make_key(tmp_path / "key.pem")


def sample(size, count=150):
    """Positions spread over a file, its first and last bytes among them."""
    return sorted({*range(min(size, 8)), *range(max(0, size - 130), size), *range(0, size, count)})


def rewrite(run, change):
    """Change the parsed envelope and write it as it should be written."""
    envelope = json.loads((run / ENVELOPE).read_bytes())
    change(envelope)
    (run / ENVELOPE).write_bytes(canonical_json(envelope) + b"\n")


def test_a_signature_holds_and_names_its_key(run, key):
    assert sign_receipt(run, key) == run / ENVELOPE
    assert check_signature(run, public_path(key)) == read_keyid(key) == read_keyid(public_path(key))
    assert sorted(file.name for file in run.iterdir()) == [ENVELOPE, RECEIPT]


def test_the_pre_authentication_encoding_is_that_of_the_specification():
    """The example of protocol.md in github.com/secure-systems-lab/dsse."""
    expected = b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    assert encode_pae("http://example.com/HelloWorld", b"hello world") == expected
    assert encode_pae("é", b"") == b"DSSEv1 2 \xc3\xa9 0 "


def test_the_envelope_verifies_without_this_package(run, key):
    sign_receipt(run, key)
    content = (run / ENVELOPE).read_bytes()
    envelope = json.loads(content)
    assert content == canonical_json(envelope) + b"\n"
    assert envelope["payloadType"] == "application/vnd.in-toto+json"
    payload = base64.b64decode(envelope["payload"])
    assert payload == (run / RECEIPT).read_bytes()
    (entry,) = envelope["signatures"]
    public = form.load_pem_public_key(public_path(key).read_bytes())
    raw = public.public_bytes(form.Encoding.Raw, form.PublicFormat.Raw)
    assert entry["keyid"] == hashlib.sha256(raw).hexdigest()
    signed = f"DSSEv1 28 application/vnd.in-toto+json {len(payload)} ".encode() + payload
    public.verify(base64.b64decode(entry["sig"]), signed)


def test_the_key_of_rfc_8032_signs_as_published(tmp_path, run):
    """Test 1 of RFC 8032, section 7.1, fixes the public key; signing twice repeats the bytes."""
    secret = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
    public = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
    file = tmp_path / "rfc.pem"
    private = ed25519.Ed25519PrivateKey.from_private_bytes(secret)
    file.write_bytes(
        private.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    )
    assert read_keyid(file) == hashlib.sha256(public).hexdigest()
    first = sign_receipt(run, file).read_bytes()
    assert sign_receipt(run, file).read_bytes() == first


@pytest.mark.parametrize("bit", [0, 5, 7])
@pytest.mark.parametrize("name", [ENVELOPE, RECEIPT])
def test_no_byte_can_change(run, key, name, bit):
    sign_receipt(run, key)
    file = run / name
    whole = file.read_bytes()
    for position in sample(len(whole), 7):
        changed = bytearray(whole)
        changed[position] ^= 1 << bit
        file.write_bytes(changed)
        with pytest.raises(SignatureError):
            check_signature(run, public_path(key))
    file.write_bytes(whole)
    check_signature(run, public_path(key))


@pytest.mark.parametrize("name", [ENVELOPE, RECEIPT])
def test_nothing_can_be_cut_off_or_added(run, key, name):
    sign_receipt(run, key)
    whole = (run / name).read_bytes()
    for changed in (b"", whole[:-1], whole[: len(whole) // 2], whole + b"\n", b" " + whole):
        (run / name).write_bytes(changed)
        with pytest.raises(SignatureError):
            check_signature(run, public_path(key))


def test_base64_that_reads_the_same_is_still_a_change(run, key):
    """The last character before `==` has four bits that no decoder looks at."""
    sign_receipt(run, key)

    def spell_otherwise(envelope):
        entry = envelope["signatures"][0]
        before = base64.b64decode(entry["sig"])
        letter = chr(ord(entry["sig"][-3]) + 1)
        entry["sig"] = entry["sig"][:-3] + letter + "=="
        assert base64.b64decode(entry["sig"], validate=True) == before

    rewrite(run, spell_otherwise)
    with pytest.raises(SignatureError, match="canonical"):
        check_signature(run, public_path(key))


def test_an_envelope_of_another_run_is_named_as_such(tmp_path, run, key):
    other = make_run(tmp_path / "other", epochs=4)
    (run / ENVELOPE).write_bytes(sign_receipt(other, key).read_bytes())
    with pytest.raises(SignatureError, match="signs another receipt"):
        check_signature(run, public_path(key))


def test_a_signature_by_another_key_names_both(tmp_path, run, key):
    sign_receipt(run, key)
    other = make_key(tmp_path / "other.pem")
    with pytest.raises(SignatureError, match="expected a signature by key") as refusal:
        check_signature(run, public_path(other))
    assert read_keyid(key) in str(refusal.value)
    assert read_keyid(other) in str(refusal.value)


def test_claiming_another_keyid_does_not_help(tmp_path, run, key):
    sign_receipt(run, key)
    other = make_key(tmp_path / "other.pem")
    rewrite(run, lambda envelope: envelope["signatures"][0].update(keyid=read_keyid(other)))
    with pytest.raises(SignatureError, match="does not verify"):
        check_signature(run, public_path(other))


@pytest.mark.parametrize(
    ("signature", "reason"),
    [
        (b"", "its signature has 0 bytes, not 64"),
        (b"\0" * 63, "its signature has 63 bytes, not 64"),
        (b"\0" * 64, "does not verify"),
    ],
)
def test_a_forged_signature_does_not_verify(run, key, signature, reason):
    sign_receipt(run, key)
    text = base64.b64encode(signature).decode()
    rewrite(run, lambda envelope: envelope["signatures"][0].update(sig=text))
    with pytest.raises(SignatureError, match=reason):
        check_signature(run, public_path(key))


def test_without_a_public_key_the_signer_is_named_and_not_checked(run, key):
    assert read_signature(run) == {"state": "none", "keyid": None}
    sign_receipt(run, key)
    assert read_signature(run) == {"state": "not checked", "keyid": read_keyid(key)}


def test_without_a_public_key_an_envelope_must_still_be_one_of_this_receipt(tmp_path, run, key):
    other = make_run(tmp_path / "other", epochs=4)
    (run / ENVELOPE).write_bytes(sign_receipt(other, key).read_bytes())
    with pytest.raises(SignatureError, match="signs another receipt"):
        read_signature(run)
    (run / ENVELOPE).write_bytes(b"{}")
    with pytest.raises(SignatureError, match="got a malformed one"):
        read_signature(run)


def test_an_envelope_that_is_no_plain_file_is_refused_without_opening_it(tmp_path, run, key):
    sign_receipt(run, key).rename(tmp_path / "elsewhere")
    (run / ENVELOPE).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SignatureError, match="expected a plain file"):
        read_signature(run)
    (run / ENVELOPE).unlink()
    os.mkfifo(run / ENVELOPE)
    with pytest.raises(SignatureError, match="expected a plain file"):
        read_signature(run)


def test_a_signature_over_the_payload_alone_does_not_verify(run, key):
    """Negative control of the encoding: the type is signed too."""
    sign_receipt(run, key)
    private = form.load_pem_private_key(key.read_bytes(), None)
    text = base64.b64encode(private.sign((run / RECEIPT).read_bytes())).decode()
    rewrite(run, lambda envelope: envelope["signatures"][0].update(sig=text))
    with pytest.raises(SignatureError, match="does not verify"):
        check_signature(run, public_path(key))


@pytest.mark.parametrize(
    "change",
    [
        lambda envelope: envelope.update(payloadType="text/plain"),
        lambda envelope: envelope.update(more=1),
        lambda envelope: envelope.pop("payload"),
        lambda envelope: envelope.update(payload=5),
        lambda envelope: envelope.update(signatures=[]),
        lambda envelope: envelope.update(signatures=5),
        lambda envelope: envelope.update(signatures=["ab"]),
        lambda envelope: envelope.update(signatures=envelope["signatures"] * 2),
        lambda envelope: envelope["signatures"][0].update(keyid=7),
        lambda envelope: envelope["signatures"][0].update(keyid="A" * 64),
        lambda envelope: envelope["signatures"][0].pop("sig"),
    ],
)
def test_a_malformed_envelope_says_so(run, key, change):
    sign_receipt(run, key)
    rewrite(run, change)
    with pytest.raises(SignatureError, match="got a malformed one"):
        check_signature(run, public_path(key))


@pytest.mark.parametrize("content", [b"null", b"[]", b"{", b"\xff", b"[" * 100_000, b'"x"'])
def test_what_is_no_envelope_at_all_is_malformed_too(run, key, content):
    (run / ENVELOPE).write_bytes(content)
    with pytest.raises(SignatureError, match="got a malformed one"):
        check_signature(run, public_path(key))


def test_an_unsigned_run_says_how_to_sign(run, key):
    with pytest.raises(SignatureError, match="seedless sign"):
        check_signature(run, public_path(key))


def test_only_a_receipt_is_signed(tmp_path, run, key):
    with pytest.raises(SignatureError, match=r"no receipt\.json"):
        sign_receipt(tmp_path, key)
    for content in (b"", b"[]", b'{"_type": "x"}', b'{"_type": []}'):
        (run / RECEIPT).write_bytes(content)
        with pytest.raises(SignatureError, match="in-toto"):
            sign_receipt(run, key)
    assert not (run / ENVELOPE).exists()


def test_somebody_elses_signature_is_not_overwritten(tmp_path, run, key):
    before = sign_receipt(run, key).read_bytes()
    with pytest.raises(SignatureError, match="remove it"):
        sign_receipt(run, make_key(tmp_path / "other.pem"))
    assert (run / ENVELOPE).read_bytes() == before


def test_other_key_files_are_refused_by_what_they_are(tmp_path, run, key):
    sign_receipt(run, key)
    other = rsa.generate_private_key(65537, 2048)
    pem = form.Encoding.PEM
    files = {
        "rsa": other.private_bytes(pem, form.PrivateFormat.PKCS8, form.NoEncryption()),
        "rsa.pub": other.public_key().public_bytes(pem, form.PublicFormat.SubjectPublicKeyInfo),
        "locked": form.load_pem_private_key(key.read_bytes(), None).private_bytes(
            pem, form.PrivateFormat.PKCS8, form.BestAvailableEncryption(b"word")
        ),
        "text": b"not a key",
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    for name, match in (
        ("rsa", "another kind"),
        ("locked", "passphrase"),
        ("text", "PEM"),
        ("key.pem.pub", "public one"),
        ("absent", "cannot be read"),
    ):
        with pytest.raises(SignatureError, match=match):
            sign_receipt(run, tmp_path / name)
    for name, match in (
        ("rsa.pub", "another kind"),
        ("text", "PEM"),
        ("key.pem", r"give .*key\.pem\.pub"),
        ("absent", "cannot be read"),
    ):
        with pytest.raises(SignatureError, match=match):
            check_signature(run, tmp_path / name)


def test_without_cryptography_the_error_says_what_to_install(monkeypatch, tmp_path, run, key):
    for module in [name for name in sys.modules if name.split(".")[0] == "cryptography"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    for call in (
        lambda: make_key(tmp_path / "new.pem"),
        lambda: sign_receipt(run, key),
        lambda: check_signature(run, public_path(key)),
        lambda: read_keyid(key),
    ):
        with pytest.raises(SeedlessError, match=r"pip install 'seedless\[sign\]'"):
            call()


def test_importing_loads_no_cryptography():
    code = "import sys, seedless.proof.bundle; sys.exit('cryptography' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
