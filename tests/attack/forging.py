"""What a forger does to a run folder so that all its digests are right again."""

import json

import numpy as np

from tests.attack.formats import (
    hash_bytes,
    hash_json,
    hash_predictions,
    hash_tensor,
    hash_tensors,
    read_npz,
    read_safetensors,
    write_json,
    write_npz,
    write_safetensors,
)

RECEIPT, WEIGHTS, TRAIL = "receipt.json", "weights.safetensors", "trail.jsonl"
# Without a digest in the receipt.
UNCOVERED = (RECEIPT, "receipt.dsse.json", "report.html", "light.json", ".lock")
SHARED = ("settings", "source", "environment", "data", "initialization", "model")
FIRST = "sha256:" + 64 * "0"


def read_receipt(run):
    return json.loads((run / RECEIPT).read_bytes())


def write_receipt(run, statement):
    """Write a receipt with the digest that its content has."""
    statement["predicate"].pop("digest", None)
    statement["predicate"]["digest"] = hash_json(statement)
    (run / RECEIPT).write_bytes(write_json(statement) + b"\n")


def list_files(run):
    """Return the digest of every plain file that a receipt covers, by POSIX path."""
    return {
        path.relative_to(run).as_posix(): hash_bytes(path.read_bytes())
        for path in sorted(run.rglob("*"))
        if path.is_file()
        and not path.is_symlink()
        and path.relative_to(run).as_posix() not in UNCOVERED
    }


def seal(run, statement=None):
    """Write a receipt that covers the files as they are now."""
    statement = statement or read_receipt(run)
    covered, left_out = statement["predicate"]["files"], {}
    if (run / "light.json").exists():
        note = json.loads((run / "light.json").read_bytes())
        left_out = {name: covered[name] for name in note["left_out"]}
    files = {**left_out, **list_files(run)}
    statement["predicate"]["files"] = files
    statement["subject"] = [
        {"name": WEIGHTS, "digest": {"sha256": files.get(WEIGHTS, "sha256:")[7:]}}
    ]
    write_receipt(run, statement)
    if left_out:
        seal_note(run)


def seal_note(run):
    """Write the note of a stripped run anew, for the receipt as it is now."""
    note = json.loads((run / "light.json").read_bytes())
    note["receipt"] = read_receipt(run)["predicate"]["digest"]
    (run / "light.json").write_bytes(write_json(note) + b"\n")


def change_claims(run, change):
    """Let ``change(predicate)`` work on the receipt, and seal it."""
    statement = read_receipt(run)
    change(statement["predicate"])
    seal(run, statement)


def read_lines(file):
    return [json.loads(line) for line in file.read_bytes().splitlines()]


def write_lines(file, lines):
    file.write_bytes(b"".join(write_json(line) + b"\n" for line in lines))


def rechain(run, lines, **claims):
    """Write a trail with an unbroken chain, and a receipt that says what the trail says."""
    previous = FIRST
    for line in lines:
        line.pop("digest", None)
        line["previous"] = previous
        line["digest"] = previous = hash_json(line)
    write_lines(run / TRAIL, lines)

    def claim(predicate):
        predicate.update({key: lines[0][key] for key in SHARED if key in lines[0]})
        predicate["trail"] = {"head": previous, "entries": len(lines)}
        predicate["schedule"] = hash_json([line.get("schedule") for line in lines[1:]])
        predicate.update(claims)

    change_claims(run, claim)


def change_trail(run, change):
    """Let ``change(lines)`` work on the lines of the trail, chain them and seal the run."""
    lines = read_lines(run / TRAIL)
    rechain(run, change(lines) or lines)


def list_checkpoints(run):
    return sorted((run / "checkpoints").glob("*.safetensors"))


def change_checkpoint(file, change):
    """Let ``change(meta, tensors)`` work on a checkpoint, and give it the digests it needs."""
    metadata, tensors = read_safetensors(file.read_bytes())
    meta = json.loads(metadata["seedless"])
    del meta["digest"]
    change(meta, tensors)
    meta["tensors"] = hash_tensors(tensors)
    meta["digest"] = hash_json(meta)
    metadata["seedless"] = write_json(meta).decode()
    file.write_bytes(write_safetensors(metadata, tensors))


def flip_weight(run):
    """Flip one bit of one selected weight everywhere it occurs, with all digests that follow.

    The files agree with each other afterwards; only executing the run shows the lie.
    """
    # [Step 1] The weights themselves.
    file = run / WEIGHTS
    metadata, tensors = read_safetensors(file.read_bytes())
    name = max(tensors, key=lambda key: len(tensors[key][2]))
    dtype, shape, data = tensors[name]
    changed = bytearray(data)
    changed[0] ^= 1
    tensors[name] = (dtype, shape, bytes(changed))
    file.write_bytes(write_safetensors(metadata, tensors))
    statement = read_receipt(run)
    epoch = statement["predicate"]["weights"]["epoch"]
    digest = hash_tensors(tensors)
    # [Step 2] Every checkpoint that holds them, as the state of its epoch or as the best so far.
    for checkpoint in list_checkpoints(run):

        def replace(meta, held):
            if meta["epoch"] == epoch:
                held[f"model/{name}"] = tensors[name]
            if meta["best"] and meta["best"]["epoch"] == epoch:
                held[f"best/{name}"] = tensors[name]

        change_checkpoint(checkpoint, replace)
    # [Step 3] The predictions name the weights they were made with.
    rename_weights(run, digest, statement)
    # [Step 4] The trail's line of that epoch, and the chain after it.
    lines = read_lines(run / TRAIL)
    lines[epoch]["state"][f"model/{name}"] = hash_tensor(f"model/{name}", tensors[name])
    claims = statement["predicate"]
    rechain(
        run,
        lines,
        weights={**claims["weights"], "digest": digest},
        predictions=claims["predictions"],
    )


def rename_weights(run, digest, statement):
    """Write into the predictions that other weights made them; update the claim about them."""
    file = run / "predictions.npz"
    arrays = read_npz(file.read_bytes())
    arrays["weights"] = np.array(digest)
    file.write_bytes(write_npz(arrays))
    statement["predicate"]["predictions"] = hash_predictions(arrays)


def reconfigure(run, section, key, value):
    """Change one setting in the configuration and in everything that names its digest."""
    # [Step 1] The file: the setting goes to the top of its table.
    file = run / "config.toml"
    head, table, rest = file.read_text().partition(f"[{section}]\n")
    here, bracket, after = rest.partition("\n[")
    lines = [line for line in here.splitlines() if not line.startswith(f"{key} =")]
    lines.insert(0, f"{key} = {json.dumps(value)}")
    file.write_text(head + table + "\n".join(lines) + "\n" + bracket + after)
    # [Step 2] The receipt, which leaves out where the data are.
    config = read_receipt(run)["predicate"]["config"]
    if (section, key) != ("data", "path"):
        config["values"][section][key] = str(value).split("/")[-1] if key == "name" else value
    config["digest"] = hash_json(config["values"])
    # [Step 3] Checkpoints and trail.
    for checkpoint in list_checkpoints(run):
        change_checkpoint(checkpoint, lambda meta, tensors: meta.update(config=config["digest"]))
    lines = read_lines(run / TRAIL)
    lines[0]["settings"] = config["digest"]
    rechain(run, lines, config=config)
