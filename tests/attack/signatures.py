"""Envelopes that are forged, copied, or signed with a key that signs everything."""

import base64
import hashlib
import json
import shutil

from tests.attack.attack import SIGNED, VALIDATE, Attack, leave
from tests.attack.forging import RECEIPT, change_claims, flip_weight, seal
from tests.attack.formats import write_json

ENVELOPE = "receipt.dsse.json"
# The head of an ed25519 public key in DER, before its 32 bytes.
DER = bytes.fromhex("302a300506032b6570032100")


def list_attacks(victims):
    """Return the attacks on signatures."""
    keys = victims / "keys"

    def edit(change):
        def work(run):
            envelope = json.loads((run / ENVELOPE).read_bytes())
            envelope = change(envelope) or envelope
            (run / ENVELOPE).write_bytes(write_json(envelope) + b"\n")

        return work

    def sign_with(**fields):
        return edit(lambda envelope: envelope["signatures"][0].update(fields))

    def signature(content):
        return base64.b64encode(content).decode()

    def forge_then(change):
        def work(run):
            change(run)
            payload = base64.b64encode((run / RECEIPT).read_bytes()).decode()
            edit(lambda envelope: envelope.update(payload=payload))(run)

        return work

    def claim(run):
        change_claims(run, lambda claims: claims["weights"].update(md5=32 * "b"))

    def duplicate(envelope):
        envelope["signatures"] *= 2

    changes = {
        "removed": lambda run: (run / ENVELOPE).unlink(),
        "of another receipt": _sign_other(victims),
        "a receipt changed after it": claim,
        "a receipt changed, payload too": forge_then(claim),
        "a flipped weight, payload too": forge_then(flip_weight),
        "zeros": sign_with(sig=signature(bytes(64))),
        "the identity point": sign_with(sig=signature(b"\x01" + bytes(63))),
        "empty": sign_with(sig=""),
        "too long": sign_with(sig=signature(bytes(10**6))),
        "no base64": sign_with(sig="\x1b[31m"),
        "another key's id": sign_with(keyid=64 * "a"),
        "an id with an escape": sign_with(keyid="\x1b[2J" + 60 * "a"),
        "an id that is a number": sign_with(keyid=1),
        "another payload type": edit(lambda envelope: envelope.update(payloadType="x")),
        "a payload that is a list": edit(lambda envelope: envelope.update(payload=[])),
        "no signatures": edit(lambda envelope: envelope.update(signatures=[])),
        "two signatures": edit(duplicate),
        "10^5 signatures": edit(lambda envelope: envelope.update(signatures=[{}] * 10**5)),
        "a field more": edit(lambda envelope: envelope.update(note="x")),
        "a list": edit(lambda envelope: [envelope]),
    }
    attacks = [
        Attack(f"signatures/{name}", "signed", change, SIGNED) for name, change in changes.items()
    ]

    def key_attack(name, content, change=leave):
        def work(run):
            change(run)
            (run.parents[1] / "work" / "key.pub").write_bytes(content)

        command = (*VALIDATE, "--public-key", "key.pub")
        return Attack(f"signatures/public key: {name}", "signed", work, command)

    def sign_by_identity(run):
        """Sign nothing: under the identity point, R = identity and S = 0 verify every message."""
        claim(run)
        point = b"\x01" + bytes(31)
        payload = base64.b64encode((run / RECEIPT).read_bytes()).decode()
        fields = {"keyid": hashlib.sha256(point).hexdigest(), "sig": signature(point + bytes(32))}
        edit(lambda envelope: envelope.update(payload=payload, signatures=[fields]))(run)

    private = (keys / "key.pem").read_bytes()
    return [
        *attacks,
        key_attack("a stranger's", (keys / "stranger.pem.pub").read_bytes()),
        key_attack("the private one", private),
        key_attack("no key", b"x"),
        key_attack("empty", b""),
        key_attack("a million lines", b"-----BEGIN PUBLIC KEY-----\n" + b"A\n" * 10**6),
        key_attack("the identity point", _pem(b"\x01" + bytes(31)), sign_by_identity),
        key_attack("a point of order 2", _pem(b"\xec" + b"\xff" * 30 + b"\x7f"), sign_by_identity),
        key_attack("zeros", _pem(bytes(32))),
        key_attack("two keys", (keys / "stranger.pem.pub").read_bytes() * 2),
        Attack(
            "signatures/public key: /dev/zero",
            "signed",
            leave,
            (*VALIDATE, "--public-key", "/dev/zero"),
        ),
        Attack(
            "signatures/public key: missing", "signed", leave, (*VALIDATE, "--public-key", "none")
        ),
        Attack("signatures/a resealed run, unsigned", "native", seal, SIGNED),
    ]


def _pem(point):
    body = base64.b64encode(DER + point).decode()
    return f"-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----\n".encode()


def _sign_other(victims):
    """Put the signed receipt of a run, and its signature, into the folder of another."""

    def work(run):
        shutil.rmtree(run)
        shutil.copytree(victims / "other", run)
        shutil.copyfile(victims / "signed" / ENVELOPE, run / ENVELOPE)

    return work
