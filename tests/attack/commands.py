"""Every other command on a run that is not what its receipt says: none may use it unsaid."""

import json

from tests.attack.attack import Attack
from tests.attack.forging import read_receipt, write_receipt
from tests.attack.formats import (
    read_npz,
    read_safetensors,
    write_json,
    write_npz,
    write_safetensors,
)

KEY = ("--key", "{keys}/key.pem")
COMMANDS = {
    "evaluate": ("evaluate", "{run}"),
    "evaluate --data": ("evaluate", "{run}", "--data", "simulated-images"),
    "report": ("report", "{run}", "--out", "{out}/page.html"),
    "report in place": ("report", "{run}"),
    "card": ("card", "{run}"),
    "export": ("export", "{run}", "--onnx", "{out}/model.onnx"),
    "export --cyclonedx": ("export", "{run}", "--cyclonedx", "{out}/bom.json"),
    "sign": ("sign", "{run}", *KEY),
    "sign --model-signing": ("sign", "{run}", "--model-signing", *KEY),
    "provenance": ("provenance", "{run}", "--out", "{out}/provenance.json"),
    "bundle": ("bundle", "{run}", "--out", "{out}/bundle.zip"),
    "bundle --with-data": ("bundle", "{run}", "--with-data", "--out", "{out}/bundle.zip"),
    "compare": ("compare", "{run}", "{other}"),
    "churn": ("churn", "{run}", "{other}"),
    "churn, second": ("churn", "{other}", "{run}"),
    "diff": ("diff", "{run}", "{other}", "--no-replay"),
    "diff, second": ("diff", "{other}", "{run}", "--no-replay"),
    "attribute": ("attribute", "{run}", "--out", "{out}/maps.npz"),
    "robustness": ("robustness", "{run}"),
    "resume": ("resume", "{run}"),
    "referee": ("referee", "{run}", "{other}"),
    "verify --sample": ("verify", "{run}", "--sample", "1"),
}


def list_attacks(victims):
    """Return each command on each kind of damage."""
    damages = {
        "tampered weights": _change_weights,
        "tampered predictions": _change_predictions,
        "tampered metrics": _change_metrics,
        "a receipt edited": _change_receipt,
        "an added file": lambda run: (run / "notes.txt").write_text("x"),
    }
    attacks = []
    for turn, (name, command) in enumerate(COMMANDS.items()):
        for step in (0, 1, 2) if name.startswith(("sign", "evaluate")) else (0, 2):
            what, change = list(damages.items())[(turn + step) % len(damages)]
            attacks.append(Attack(f"commands/{name}: {what}", "native", change, command))
    return attacks


def _change_weights(run):
    file = run / "weights.safetensors"
    metadata, tensors = read_safetensors(file.read_bytes())
    name = max(tensors, key=lambda key: len(tensors[key][2]))
    dtype, shape, data = tensors[name]
    tensors[name] = (dtype, shape, bytes(len(data)))
    file.write_bytes(write_safetensors(metadata, tensors))


def _change_predictions(run):
    file = run / "predictions.npz"
    arrays = read_npz(file.read_bytes())
    arrays["test_probabilities"] = arrays["test_labels"].astype("f8")
    file.write_bytes(write_npz(arrays))


def _change_metrics(run):
    values = json.loads((run / "metrics.json").read_bytes())
    values["test"]["macro_auc"] = 0.999
    (run / "metrics.json").write_bytes(write_json(values) + b"\n")


def _change_receipt(run):
    """Raise the score in the receipt alone, and seal it."""
    statement = read_receipt(run)
    statement["predicate"]["metrics"]["test"]["macro_auc"] = 0.999
    write_receipt(run, statement)
