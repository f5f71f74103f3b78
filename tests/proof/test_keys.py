"""Key files: each kind of signature takes keys of one kind, and says so of any other."""

import base64
import hashlib
import json
import stat

import pytest
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from seedless.core.digests import canonical_json
from seedless.proof.envelope import encode_pae
from seedless.proof.keys import (
    SMALL_ORDER_Y,
    SignatureError,
    has_small_order,
    is_ecdsa_public,
    make_key,
    public_path,
    read_ecdsa_private,
    read_ecdsa_public,
    read_ed25519_private,
    read_ed25519_public,
    read_keyid,
)
from seedless.proof.receipt import FILE as RECEIPT
from seedless.proof.receipt import SIGNATURE as ENVELOPE
from seedless.proof.signature import check_signature, sign_receipt

PRIME = 2**255 - 19
D = -121665 * pow(121666, -1, PRIME) % PRIME  # the constant of the curve, RFC 8032 section 5.1


@pytest.fixture
def key(tmp_path):
    return make_key(tmp_path / "key.pem")


def write_pair(folder, key):
    """Write a private key and its public half; return the private key's path."""
    file = folder / "other.pem"
    file.write_bytes(
        key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    )
    shown = key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    public_path(file).write_bytes(shown)
    return file


def test_a_key_for_models_is_on_p256_and_private(tmp_path):
    key = make_key(tmp_path / "model.pem", "P-256")
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert read_ecdsa_private(key).curve.name == "secp256r1"
    assert read_ecdsa_public(public_path(key)).curve.name == "secp256r1"
    assert is_ecdsa_public(public_path(key))
    assert not is_ecdsa_public(public_path(make_key(tmp_path / "receipt.pem")))


def test_the_id_of_a_key_for_models_is_the_hash_of_its_pem_file(tmp_path):
    key = make_key(tmp_path / "model.pem", "P-256")
    expected = hashlib.sha256(public_path(key).read_bytes()).hexdigest()
    assert read_keyid(key) == read_keyid(public_path(key)) == expected


def test_each_kind_of_key_is_refused_where_the_other_is_needed(tmp_path):
    model = make_key(tmp_path / "model.pem", "P-256")
    receipt = make_key(tmp_path / "receipt.pem")
    with pytest.raises(SignatureError, match=r"model\.pem: expected an ed25519 private key"):
        read_ed25519_private(model)
    with pytest.raises(SignatureError, match=r"model\.pem\.pub: expected an ed25519 public key"):
        read_ed25519_public(public_path(model))
    with pytest.raises(SignatureError, match=r"a P-256 private key.*--model-signing"):
        read_ecdsa_private(receipt)
    with pytest.raises(SignatureError, match="expected a P-256 public key"):
        read_ecdsa_public(public_path(receipt))


@pytest.mark.parametrize("curve", [ec.SECP384R1(), ec.SECP521R1()], ids=lambda one: one.name)
def test_larger_curves_are_checked_and_not_signed_with(tmp_path, curve):
    key = write_pair(tmp_path, ec.generate_private_key(curve))
    assert read_ecdsa_public(public_path(key)).curve.name == curve.name
    with pytest.raises(SignatureError, match="expected a P-256 private key"):
        read_ecdsa_private(key)


@pytest.mark.parametrize(
    "other",
    [
        lambda: ec.generate_private_key(ec.SECP256K1()),
        lambda: rsa.generate_private_key(65537, 2048),
    ],
    ids=["secp256k1", "rsa"],
)
def test_keys_of_no_use_have_no_id(tmp_path, other):
    key = write_pair(tmp_path, other())
    for read in (read_keyid, read_ecdsa_private, read_ed25519_private):
        with pytest.raises(SignatureError, match="got a key of another kind"):
            read(key)
    for read in (read_keyid, read_ecdsa_public, read_ed25519_public):
        with pytest.raises(SignatureError, match="got a key of another kind"):
            read(public_path(key))
    assert not is_ecdsa_public(public_path(key))


def test_an_ed25519_key_keeps_its_id(tmp_path):
    key = ed25519.Ed25519PrivateKey.generate()
    raw = key.public_key().public_bytes_raw()
    assert read_keyid(write_pair(tmp_path, key)) == hashlib.sha256(raw).hexdigest()


def double(y):
    """Return the y-coordinate of twice a point, from that of the point.

    By the addition law of RFC 8032, section 5.1.4, with x^2 = (y^2 - 1) / (d y^2 + 1).
    """
    x_squared = (y * y - 1) * pow(D * y * y + 1, -1, PRIME)
    return (y * y + x_squared) * pow(1 - D * x_squared * y * y, -1, PRIME) % PRIME


def encode_small_orders():
    """Return every encoding of a point of small order: both signs of x, and y + p where it fits."""
    ys = [y for y in (*SMALL_ORDER_Y, PRIME, PRIME + 1) if y < 2**255]
    return [(y | sign << 255).to_bytes(32, "little") for y in ys for sign in (0, 1)]


def write_public(file, raw):
    public = ed25519.Ed25519PublicKey.from_public_bytes(raw)
    pem = form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo
    file.write_bytes(public.public_bytes(*pem))
    return file


def test_a_new_key_is_private_and_overwrites_nothing(tmp_path, key):
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert key.read_bytes().startswith(b"-----BEGIN PRIVATE KEY-----")
    assert public_path(key).name == "key.pem.pub"
    assert public_path(key).read_bytes().startswith(b"-----BEGIN PUBLIC KEY-----")
    before = key.read_bytes()
    with pytest.raises(SignatureError, match="is there already"):
        make_key(key)
    assert key.read_bytes() == before
    (tmp_path / "half.pem.pub").write_text("kept")
    with pytest.raises(SignatureError, match="is there already"):
        make_key(tmp_path / "half.pem")
    assert not (tmp_path / "half.pem").exists()
    with pytest.raises(SignatureError, match="cannot write the key"):
        make_key(tmp_path / "nowhere" / "key.pem")


def test_no_private_key_is_written_into_a_run(tmp_path):
    (tmp_path / "receipt.json").write_text("{}")
    with pytest.raises(SignatureError, match=r"folder of a run.*write the key elsewhere"):
        make_key(tmp_path / "secret.pem")
    assert [path.name for path in tmp_path.iterdir()] == ["receipt.json"]


def test_two_new_keys_differ(tmp_path, key):
    assert read_keyid(make_key(tmp_path / "other.pem")) != read_keyid(key)


def test_the_points_of_small_order_are_those_that_three_doublings_lead_to_the_identity():
    for y in SMALL_ORDER_Y:
        assert double(double(double(y))) == 1
    # 8 points: y = 1 and -1 have x = 0, and each other y has two points.
    assert len(SMALL_ORDER_Y) == 5
    assert len({y for y in SMALL_ORDER_Y if double(double(y)) != 1}) == 2


def test_no_honest_key_has_small_order(tmp_path, key):
    raw = form.load_pem_public_key(public_path(key).read_bytes()).public_bytes_raw()
    assert not has_small_order(raw)
    assert read_ed25519_public(public_path(key)).public_bytes_raw() == raw


@pytest.mark.parametrize("raw", encode_small_orders(), ids=bytes.hex)
def test_a_key_of_small_order_is_refused_in_every_encoding(tmp_path, raw):
    assert has_small_order(raw)
    file = write_public(tmp_path / "small.pub", raw)
    for read in (read_ed25519_public, read_keyid):
        with pytest.raises(SignatureError, match="a point of small order"):
            read(file)


def test_a_signature_forged_for_the_identity_point_is_refused(tmp_path, key):
    """Negative control: the library alone accepts it, whatever the receipt says."""
    run = tmp_path / "run"
    run.mkdir()
    receipt = canonical_json({"_type": "https://in-toto.io/Statement/v1", "predicate": 1}) + b"\n"
    (run / RECEIPT).write_bytes(receipt)
    identity = (1).to_bytes(32, "little")
    forged = identity + bytes(32)
    public = ed25519.Ed25519PublicKey.from_public_bytes(identity)
    public.verify(forged, encode_pae("application/vnd.in-toto+json", receipt))
    # The envelope is as it should be, but for the key and the signature.
    envelope = json.loads(sign_receipt(run, key).read_bytes())
    keyid, text = hashlib.sha256(identity).hexdigest(), base64.b64encode(forged).decode()
    envelope["signatures"] = [{"keyid": keyid, "sig": text}]
    (run / ENVELOPE).write_bytes(canonical_json(envelope) + b"\n")
    with pytest.raises(SignatureError, match="a point of small order"):
        check_signature(run, write_public(tmp_path / "identity.pub", identity))
