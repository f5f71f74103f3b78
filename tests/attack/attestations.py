"""What others read beside a receipt: provenance, summaries and model signatures, forged."""

import base64
import json
import os
import shutil
from dataclasses import replace

from tests.attack.attack import DETECTED, REFUSALS, UNDECIDED, VALIDATE, VERIFY, Attack
from tests.attack.forging import change_claims, flip_weight
from tests.attack.formats import write_json

FILES = ("provenance.json", "provenance.dsse.json", "verification.dsse.json", "model.sig")
SUMMARY = ("--summary", "{out}/summary.json", "--key", "{keys}/key.pem")


def list_attacks(victims):
    """Return the attacks on the files that are made from a run for others."""
    attacks = []
    for name in FILES:
        attacks += [
            _edit(name, "one bit", _flip),
            _edit(name, "emptied", lambda content: b""),
            _edit(name, "a list", lambda content: b"[]\n"),
            _edit(name, "200,000 brackets", lambda content: b"[" * 200_000),
            _edit(name, "10^6 keys", lambda content: b"{" + b'"x":1,' * 10**6 + b'"y":1}'),
            _move(name, victims),
            _link(name),
        ]
    signed = _edit("model.sig", "another payload, with its key", _change_payload)
    unknown = _edit("verification.dsse.json", "another payload", _change_payload)
    attacks += [
        _edit("provenance.dsse.json", "another payload", _change_payload),
        replace(signed, command=(*VALIDATE, "--public-key", "{keys}/model.pem.pub")),
        replace(
            unknown,
            allowed=REFUSALS | {"CONSISTENT"},
            reason="whoever uses a summary checks its signature, with the key of its signer",
        ),
    ]
    return [
        *attacks,
        _edit("provenance.json", "another builder", lambda c: c.replace(b'"id":"', b'"id":"x', 1)),
        Attack("attestations/a receipt changed after all", "attested", _change_receipt),
        # A summary of a run that is not identical must not say that it passed.
        Attack(
            "attestations/a summary of a forged run, executed",
            "native",
            flip_weight,
            (*VERIFY, *SUMMARY),
            DETECTED,
            inspect=_look_for_passed,
        ),
        Attack(
            "attestations/a summary of a part of a run, executed",
            "native",
            flip_weight,
            (*VERIFY, "--segment", "2", *SUMMARY),
            UNDECIDED,
            inspect=_look_for_passed,
        ),
    ]


def _edit(name, what, change):
    def work(run):
        (run / name).write_bytes(change((run / name).read_bytes()))

    return Attack(f"attestations/{name}: {what}", "attested", work)


def _flip(content):
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def _change_payload(content):
    """Change what an envelope says, and leave its signature."""
    envelope = json.loads(content)
    inner = envelope.get("dsseEnvelope", envelope)
    payload = json.loads(base64.b64decode(inner["payload"]))
    payload["predicate"]["note"] = "x"
    inner["payload"] = base64.b64encode(write_json(payload)).decode()
    return write_json(envelope) + b"\n"


def _move(name, victims):
    def work(run):
        shutil.copyfile(victims / "attested" / name, run / name)

    return Attack(f"attestations/{name}: of another run", "other", work)


def _link(name):
    def work(run):
        (run / name).unlink()
        os.mkfifo(run / name)

    return Attack(f"attestations/{name}: a pipe", "attested", work)


def _change_receipt(run):
    change_claims(run, lambda claims: claims["weights"].update(md5=32 * "b"))


def _look_for_passed(folder):
    for file in (folder / "out").iterdir():
        payload = base64.b64decode(json.loads(file.read_bytes())["payload"])
        if b"PASSED" in payload:
            return f"{file.name} says PASSED"
    return None
