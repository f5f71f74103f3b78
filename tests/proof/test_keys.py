"""Key files: each kind of signature takes keys of one kind, and says so of any other."""

import hashlib
import stat

import pytest
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from seedless.proof.keys import (
    SignatureError,
    is_ecdsa_public,
    make_key,
    public_path,
    read_ecdsa_private,
    read_ecdsa_public,
    read_ed25519_private,
    read_ed25519_public,
    read_keyid,
)


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
