"""What someone with an editor and this package at hand can do to a run folder."""

import copy
import dataclasses
import json
import shutil

from safetensors import safe_open
from safetensors.torch import save_file

from seedless.core.digests import canonical_json, digest, digest_value
from seedless.evaluate.predictions import parse_predictions, serialize
from seedless.evaluate.scores import score_predictions
from seedless.proof.receipt import (
    RESERVED,
    WEIGHTS,
    cover_files,
    is_script,
    list_subject,
    state_data,
)
from seedless.proof.stripped_run import describe_stripped, is_stripped
from seedless.proof.trail import GENESIS, chain


def read_statement(run):
    return json.loads((run / "receipt.json").read_bytes())


def write_statement(run, statement):
    (run / "receipt.json").write_bytes(canonical_json(statement) + b"\n")


def seal(run, statement=None, files=True):
    """Write a receipt whose own digest is right, and whose list of files is, if asked for."""
    statement = read_statement(run) if statement is None else copy.deepcopy(statement)
    predicate = statement["predicate"]
    if files:
        predicate["files"] = cover_files(run)
        weights = predicate["files"].get(WEIGHTS, "")
        statement["subject"] = [{"name": WEIGHTS, "digest": {"sha256": weights[7:]}}]
        if is_script(predicate):
            statement["subject"] = list_subject(predicate)
    predicate.pop("digest", None)
    predicate["digest"] = digest_value(statement)
    write_statement(run, statement)


def read_entries(run):
    return [json.loads(line) for line in (run / "trail.jsonl").read_bytes().splitlines()]


def write_entries(run, entries):
    (run / "trail.jsonl").write_bytes(b"".join(canonical_json(e) + b"\n" for e in entries))


def rechain(run, entries):
    """Write a trail whose chain is unbroken, whatever is in it; return the lines."""
    chained, previous = [], GENESIS
    for entry in entries:
        content = {k: v for k, v in entry.items() if k not in ("digest", "previous")}
        chained.append(chain(content, previous))
        previous = chained[-1]["digest"]
    write_entries(run, chained)
    return chained


def forge(run, entries, **claims):
    """Rebuild a run around other trail lines: chain, head, what line 0 and the receipt share."""
    chained = rechain(run, entries)
    statement = read_statement(run)
    predicate = statement["predicate"]
    shared = ("settings", "source", "environment", "data", "initialization", "model")
    predicate.update({key: chained[0][key] for key in shared if key in chained[0]})
    predicate["trail"] = {"head": chained[-1]["digest"], "entries": len(chained)}
    predicate["schedule"] = digest_value([entry.get("schedule") for entry in chained[1:]])
    predicate.update(claims)
    seal(run, statement)


def forge_predictions(run, split, change):
    """Put other probabilities into a run, with the scores and digests that follow from them."""
    path = run / "predictions.npz"
    predictions = parse_predictions(path.read_bytes(), path.name)
    part = predictions.splits[split]
    part = dataclasses.replace(part, probabilities=change(part.probabilities))
    splits = {**predictions.splits, split: part}
    predictions = dataclasses.replace(predictions, splits=splits)
    path.write_bytes(serialize(predictions))
    statement = read_statement(run)
    metrics = {**statement["predicate"]["metrics"], **score_predictions(predictions)}
    (run / "metrics.json").write_text(json.dumps(metrics))
    statement["predicate"] |= {"metrics": metrics, "predictions": predictions.digest}
    seal(run, statement)


def relabel_as_schema_1(run):
    """Make a run of schema 2 one of schema 1: drop what only schema 2 states."""
    statement = read_statement(run)
    statement["predicateType"] = "urn:seedless:receipt:1"
    statement["predicate"]["schema"] = "1.0"
    for name in RESERVED:
        del statement["predicate"][name]
    seal(run, statement)
    entries = read_entries(run)
    entries[0]["data"] = state_data(entries[0]["data"], "1.0")
    forge(run, entries)


def rewrite_checkpoint(path, change):
    """Let ``change(meta, tensors)`` work on a checkpoint, and give it the digests it then needs."""
    with safe_open(path, framework="pt") as file:
        meta = json.loads(file.metadata()["seedless"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    del meta["digest"]
    change(meta, tensors)
    meta["tensors"] = digest(tensors)
    sealed = canonical_json({**meta, "digest": digest_value(meta)}).decode()
    save_file(tensors, path, metadata={"seedless": sealed})


def reconfigure(run, config, devices=({"name": "a GPU"},)):
    """Rebuild a run as if it had been made with another configuration; on a GPU, with one."""
    (run / "config.toml").write_text(config.to_toml())
    for path in (run / "checkpoints").iterdir():
        rewrite_checkpoint(path, lambda meta, tensors: meta.update(config=config.digest))
    entries = read_entries(run)
    entries[0]["settings"] = config.digest
    if config.execution.device == "cuda":
        entries[0]["environment"]["devices"] = list(devices)
    promise = read_statement(run)["predicate"]["promise"]
    forge(
        run,
        entries,
        config={"digest": config.digest, "values": config.identity()},
        promise={**promise, "control": config.control.flip_bit},
    )


def list_leaves(value, path=()):
    """Yield the path of every leaf of plain values; an empty list or mapping is one."""
    items = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    if not items:
        yield path
    for key, item in items:
        yield from list_leaves(item, (*path, key))


def look_up(value, path):
    for key in path:
        value = value[key]
    return value


def replace(value, path, new):
    """Return a copy with the value at a path replaced."""
    changed = copy.deepcopy(value)
    if not path:
        return new
    look_up(changed, path[:-1])[path[-1]] = new
    return changed


def remove(value, path):
    """Return a copy without what lies at a path."""
    changed = copy.deepcopy(value)
    del look_up(changed, path[:-1])[path[-1]]
    return changed


def alter(leaf):
    """Return another value of the same type: one character, one more, the other truth."""
    if isinstance(leaf, bool):
        return not leaf
    if isinstance(leaf, int | float):
        return leaf + 1
    if isinstance(leaf, str):
        middle = len(leaf) // 2
        other = "1" if leaf[middle : middle + 1] == "0" else "0"
        return leaf[:middle] + other + leaf[middle + 1 :]
    return "something" if leaf is None else ["something"]


def pun(leaf):
    """Return a value that Python holds equal and JSON does not, or None where there is none."""
    if isinstance(leaf, bool):
        return int(leaf)
    if isinstance(leaf, int):
        return float(leaf)
    if isinstance(leaf, float) and leaf.is_integer():
        return int(leaf)
    return None


def list_mappings(value, path=()):
    """Yield the path of every mapping within plain values, the outermost first."""
    items = ()
    if isinstance(value, dict):
        yield path
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, item in items:
        yield from list_mappings(item, (*path, key))


def strip_run(run, statement=None, weights=False):
    """Remove the large files of a run and write the note on it, as an archive does."""
    statement = read_statement(run) if statement is None else statement
    names = [n for n in statement["predicate"]["files"] if is_stripped(n, weights=weights)]
    for name in names:
        (run / name).unlink(missing_ok=True)
    shutil.rmtree(run / "checkpoints", ignore_errors=True)
    (run / "light.json").write_bytes(describe_stripped(statement, names))
    return names
