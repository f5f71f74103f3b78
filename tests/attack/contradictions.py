"""One file changed and the run sealed again: another file of the run contradicts it."""

import json
import re
from dataclasses import replace

import numpy as np

from tests.attack.attack import REFUSALS, Attack
from tests.attack.forging import (
    change_checkpoint,
    change_claims,
    change_trail,
    list_checkpoints,
    read_lines,
    seal,
    write_lines,
)
from tests.attack.formats import hash_predictions, read_npz, write_json, write_npz


def _attack(name, change):
    return Attack(f"contradiction/{name}", "native", change)


def list_attacks(victims):
    """Return changes of one file, resealed, that another file of the run contradicts."""

    def metrics(name, change):
        def work(run):
            file = run / "metrics.json"
            values = json.loads(file.read_bytes())
            change(values)
            file.write_bytes(write_json(values) + b"\n")
            change_claims(run, lambda claims: claims.update(metrics=values))

        return _attack(f"metrics: {name}", work)

    def predictions(name, change):
        def work(run):
            file = run / "predictions.npz"
            arrays = read_npz(file.read_bytes())
            change(arrays)
            file.write_bytes(write_npz(arrays))
            digest = hash_predictions(arrays)
            change_claims(run, lambda claims: claims.update(predictions=digest))

        return _attack(f"predictions: {name}", work)

    def trail(name, change):
        return _attack(f"trail: {name}", lambda run: change_trail(run, change))

    def log(name, change):
        def work(run):
            lines = read_lines(run / "log.jsonl")
            change(lines)
            write_lines(run / "log.jsonl", lines)
            seal(run)

        return _attack(f"log: {name}", work)

    def config(name, pattern, new):
        def work(run):
            file = run / "config.toml"
            text, count = re.subn(pattern, new, file.read_text(), count=1)
            assert count == 1, pattern
            file.write_text(text)
            seal(run)

        return _attack(f"config: {name}", work)

    def better(values):
        values["test"]["macro_auc"] = 0.999

    attacks = [
        metrics("a better macro AUC", better),
        metrics("a split more", lambda v: v.update(holdout=v["test"])),
        metrics("no test split", lambda v: v.pop("test")),
        metrics("test is validation", lambda v: v.update(test=v["validation"])),
        metrics("another epoch selected", lambda v: v["selected"].update(epoch=2)),
        metrics("converged the other way", lambda v: v.update(converged=not v["converged"])),
        metrics("a list", lambda v: v.update(test=[])),
        metrics("a huge score", lambda v: v["selected"].update(score=10**400)),
        predictions("labels turned", lambda a: a.update(test_labels=1 - a["test_labels"])),
        predictions("perfect", lambda a: a.update(test_probabilities=a["test_labels"] * 1.0)),
        predictions("NaN", lambda a: a.update(test_probabilities=a["test_probabilities"] * np.nan)),
        predictions("ids all alike", lambda a: a.update(test_ids=np.full_like(a["test_ids"], "x"))),
        predictions("an array more", lambda a: a.update(extra=np.zeros(3))),
        predictions("an object", lambda a: a.update(test_ids=np.array([{}, []], dtype=object))),
        predictions(
            "float32", lambda a: a.update(test_probabilities=a["test_probabilities"].astype("f4"))
        ),
        predictions("no rows", lambda a: a.update({k: v[:0] for k, v in a.items() if v.ndim})),
        predictions("a split called ../../x", lambda a: a.update({"../../x_ids": a["test_ids"]})),
        predictions("of other weights", lambda a: a.update(weights=np.array("sha256:" + 64 * "a"))),
        predictions("other classes", lambda a: a.update(classes=a["classes"][::-1].copy())),
        trail("without the last epoch", lambda lines: lines[:-1]),
        trail("an epoch twice", lambda lines: [*lines, dict(lines[-1])]),
        trail("epochs swapped", lambda lines: [lines[0], lines[2], lines[1]]),
        trail("only line 0", lambda lines: lines[:1]),
        trail("another loss", lambda lines: lines[1].update(loss=0.1)),
        trail("another score", lambda lines: lines[2].update(score=1.0)),
        trail("a tensor less", lambda lines: lines[2]["state"].popitem() and None),
        trail("a tensor more", lambda lines: lines[2]["state"].update({"model/x": 64 * "a"})),
        trail("a field more", lambda lines: lines[1].update(note="x")),
        trail("another schema", lambda lines: lines[0].update(schema="seedless.trail/2")),
        trail("kind step", lambda lines: lines[1].update(kind="step")),
        trail("step -1", lambda lines: lines[1].update(step=-1)),
        trail("a step of 10^30", lambda lines: lines[1].update(step=10**30)),
        trail("a state that is a list", lambda lines: lines[1].update(state=[])),
        trail("other settings", lambda lines: lines[0].update(settings="sha256:" + 64 * "0")),
        log("another loss", lambda lines: lines[0].update(loss=0.5)),
        log("another rate", lambda lines: lines[0].update(rate=1.0)),
        log("a line less", lambda lines: lines.pop()),
        log("a field more", lambda lines: lines[0].update(note="\x1b[31m")),
        log("seconds as text", lambda lines: lines[0].update(seconds="soon")),
        log("negative seconds", lambda lines: lines[0].update(seconds=-5.0)),
        config("more epochs", r"epochs = 2", "epochs = 3"),
        config("another rate", r"rate = \S+", "rate = 0.5"),
        config("another dataset", r'name = "simulated-images"', 'name = "breastmnist"'),
        config("an unknown key", r"\[train\]", '[train]\nnote = "x"'),
        config("an unknown table", r"\A", "[note]\nx = 1\n"),
        config("threads", r"threads = 1", "threads = 1024"),
        config("a control", r"\[control\]", '[control]\nflip_bit = "conv1.weight:0:1"'),
    ]
    attacks += [
        _attack(f"checkpoint: {name}", _work_on_checkpoints(change))
        for name, change in {
            "another tensor": lambda meta, tensors: _flip_first(tensors, "model/"),
            "another optimizer state": lambda meta, tensors: _flip_first(tensors, "optimizer/"),
            "another best": lambda meta, tensors: _flip_first(tensors, "best/"),
            "a best score of 1": lambda meta, tensors: meta["best"].update(score=1.0),
            "a step more": lambda meta, tensors: meta.update(step=meta["step"] + 1),
            "a batch": lambda meta, tensors: meta.update(batch=1),
            "an epoch of 10^30": lambda meta, tensors: meta.update(epoch=10**30),
            "no best": lambda meta, tensors: meta.update(best=None),
            "best is a list": lambda meta, tensors: meta.update(best=[1]),
            "moved is a number": lambda meta, tensors: meta.update(moved=3),
            "moved generators": lambda meta, tensors: meta.update(moved=["\x1b[31mtorch"]),
            "a field more": lambda meta, tensors: meta.update(note="x"),
            "another configuration": lambda meta, tensors: meta.update(config="x"),
            "a tensor more": lambda meta, tensors: tensors.update(x=("F32", [1], bytes(4))),
            "a tensor less": lambda meta, tensors: tensors.popitem(),
        }.items()
    ]
    # Seconds are a claim about a clock that nothing can check.
    return [
        *attacks,
        replace(
            log("other seconds", lambda lines: lines[0].update(seconds=0.001)),
            allowed=REFUSALS | {"CONSISTENT"},
            reason="how long an epoch took is a claim that nothing can check; it changes no bit",
        ),
    ]


def _work_on_checkpoints(change):
    def work(run):
        change_checkpoint(list_checkpoints(run)[-1], change)
        seal(run)

    return work


def _flip_first(tensors, prefix):
    name = next(name for name in sorted(tensors) if name.startswith(prefix) and tensors[name][2])
    dtype, shape, data = tensors[name]
    tensors[name] = (dtype, shape, bytes([data[0] ^ 1]) + data[1:])
