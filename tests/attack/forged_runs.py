"""Forgeries whose files agree with each other in every byte, so that only executing them tells.

Each is made the way a forger would: a change that is carried through every file and digest, or an
honest run under another's name.
"""

import shutil
from dataclasses import replace

from tests.attack.attack import DETECTED, UNDECIDED, VERIFY, Attack
from tests.attack.forging import (
    TRAIL,
    change_checkpoint,
    change_claims,
    change_trail,
    flip_weight,
    list_checkpoints,
    read_lines,
    read_receipt,
    rechain,
    rename_weights,
    seal,
    seal_note,
    write_lines,
    write_receipt,
)
from tests.attack.formats import (
    alter,
    hash_json,
    hash_predictions,
    hash_tensor,
    look_up,
    read_npz,
    set_at,
    write_npz,
)


def list_attacks(victims):
    """Return the forgeries, each executed again."""
    forgeries = {
        "one bit of a weight, everywhere": flip_weight,
        "predictions and scores of another run": _graft(victims / "other"),
        "another run under this configuration": _rename(victims / "other"),
        "another initialization": _claim("initialization", "weights"),
        "another plan of the initialization": _claim("initialization", "plan"),
        "other samples": _claim_data("content"),
        "other test records": _claim_data("splits", "test"),
        "another scale": _claim("data", "scale", "mean", 0),
        "other counts of records": _claim("data", "records", "train"),
        "another type of model": _claim("model", "type"),
        "the batches of another order": _claim_schedule,
        "one bit of the optimizer's state": _flip_optimizer,
        "the MD5 of other weights": _claim_md5,
        "predictions with their ids in another order": _reverse_ids,
    }
    attacks = [_execute(name, "native", change) for name, change in forgeries.items()]
    attacks += [
        _execute("one bit of a weight, everywhere", "portable", flip_weight),
        replace(
            _execute("one bit of a weight, everywhere", "own", flip_weight),
            command=(*VERIFY, "--data", "{victims}/own.npz"),
        ),
        _execute("weights of another file", "stripped", _claim_weights_file),
        _execute("a checkpoint of another file", "stripped", _claim_checkpoint_file),
        _execute("the configuration of another run", "stripped", _take_config(victims)),
    ]
    # Whoever claims another machine cannot be judged from here, which is no verdict in favour.
    attacks += [
        _execute(
            "a flipped weight, another source", "native", _also("source", "digest"), UNDECIDED
        ),
        _execute("a flip, another torch", "native", _also_torch, UNDECIDED),
        replace(
            _execute("an honest run, another source", "native", _claim("source", "digest")),
            allowed=DETECTED | {"IDENTICAL"},
            reason="the bits are the same here, and the verdict names the other source",
            says=("identical although source.digest",),
        ),
    ]
    # A part of a run is judged as a part: not by the word IDENTICAL, and not by exit code 0.
    segments = {"1": _flip_last, "2": flip_weight, "99": flip_weight, "0": flip_weight}
    attacks += [
        replace(
            _execute(f"a lie, --segment {number}", "native", change),
            command=(*VERIFY, "--segment", number),
            allowed=DETECTED | {"SEGMENT 1 OF 2 IDENTICAL"},
        )
        for number, change in segments.items()
    ]
    return attacks


def _execute(name, victim, change, allowed=DETECTED):
    return Attack(f"forged/{victim}: {name}", victim, change, VERIFY, allowed)


def _claim(*path):
    """Change what line 0 of the trail and the receipt say of the beginning."""

    def change(run):
        lines = read_lines(run / TRAIL)
        lines[0] = set_at(lines[0], path, alter(look_up(lines[0], path)))
        rechain(run, lines)

    return change


def _claim_data(*path):
    """Change one digest of the data, and the digest of all of them."""

    def change(run):
        lines = read_lines(run / TRAIL)
        data = set_at(lines[0]["data"], path, alter(look_up(lines[0]["data"], path)))
        covered = ("classes", "content", "protocol", "splits", "task")
        data["digest"] = hash_json({name: data[name] for name in covered})
        lines[0]["data"] = data
        rechain(run, lines)

    return change


def _also(*path):
    def change(run):
        flip_weight(run)
        _claim(*path)(run)

    return change


def _also_torch(run):
    flip_weight(run)
    lines = read_lines(run / TRAIL)
    path = next(
        path
        for path in (("environment", "packages", "torch"), ("environment", "torch"))
        if _has(lines[0], path)
    )
    lines[0] = set_at(lines[0], path, "9.9.9")
    rechain(run, lines)


def _has(value, path):
    try:
        return bool(look_up(value, path))
    except (KeyError, TypeError):
        return False


def _claim_schedule(run):
    def change(lines):
        lines[1]["schedule"] = alter(lines[1]["schedule"])

    change_trail(run, change)


def _claim_md5(run):
    change_claims(run, lambda claims: claims["weights"].update(md5=32 * "a"))


def _claim_weights_file(run):
    """Let the statement be about another file than the weights that were trained."""
    statement = read_receipt(run)
    digest = 64 * "a"
    statement["subject"][0]["digest"]["sha256"] = digest
    statement["predicate"]["files"]["weights.safetensors"] = f"sha256:{digest}"
    write_receipt(run, statement)
    seal_note(run)


def _claim_checkpoint_file(run):
    statement = read_receipt(run)
    files = statement["predicate"]["files"]
    name = next(name for name in files if name.startswith("checkpoints/"))
    files[name] = "sha256:" + 64 * "a"
    write_receipt(run, statement)
    seal_note(run)


def _take_config(victims):
    """Give a stripped run the configuration of another run of its study, with its digests."""

    def change(run):
        others = sorted((victims / "unpacked" / "runs").iterdir())
        theirs = read_receipt(others[1])["predicate"]
        shutil.copyfile(others[1] / "config.toml", run / "config.toml")
        statement = read_receipt(run)
        statement["predicate"].update(config=theirs["config"], settings=theirs["settings"])
        seal(run, statement)

    return change


def _reverse_ids(run):
    """Let each test sample have the prediction of another; no score depends on their names."""
    file = run / "predictions.npz"
    arrays = read_npz(file.read_bytes())
    arrays["test_ids"] = arrays["test_ids"][::-1].copy()
    file.write_bytes(write_npz(arrays))
    digest = hash_predictions(arrays)
    change_claims(run, lambda claims: claims.update(predictions=digest))


def _flip_optimizer(run):
    _flip_state(run, 0)


def _flip_last(run):
    _flip_state(run, -1)


def _flip_state(run, place):
    """Flip a bit of the optimizer's state after one epoch, in checkpoint and trail."""
    file = list_checkpoints(run)[place]
    changed = {}

    def change(meta, tensors):
        name = next(name for name in sorted(tensors) if name.startswith("optimizer/"))
        dtype, shape, data = tensors[name]
        tensors[name] = (dtype, shape, bytes([data[0] ^ 1]) + data[1:])
        changed[name] = hash_tensor(name, tensors[name])

    change_checkpoint(file, change)
    change_trail(run, lambda lines: lines[1:][place]["state"].update(changed))


def _graft(other):
    """Put the predictions and scores of the other run into this one."""

    def change(run):
        # [Step 1] Predictions and scores, under the name of this run's weights.
        theirs, statement = read_receipt(other)["predicate"], read_receipt(run)
        for name in ("predictions.npz", "metrics.json"):
            shutil.copyfile(other / name, run / name)
        rename_weights(run, statement["predicate"]["weights"]["digest"], statement)
        # [Step 2] The scores of every epoch, in trail and log.
        lines, log = read_lines(run / TRAIL), read_lines(run / "log.jsonl")
        for line, entry, scored in zip(lines[1:], log, read_lines(other / TRAIL)[1:], strict=True):
            line["score"] = entry["score"] = scored["score"]
        write_lines(run / "log.jsonl", log)
        # [Step 3] The best score so far, in every checkpoint.
        for file in list_checkpoints(run):

            def take_best(meta, tensors):
                best = max(lines[1 : meta["epoch"] + 1], key=lambda line: line["score"])
                meta["best"] = {"epoch": best["epoch"], "score": best["score"]}

            change_checkpoint(file, take_best)
        claims = {
            "metrics": theirs["metrics"],
            "predictions": statement["predicate"]["predictions"],
        }
        rechain(run, lines, **claims)

    return change


def _rename(other):
    """Give the other run, made with another learning rate, this run's configuration."""

    def work(run):
        statement = read_receipt(run)
        claims = statement["predicate"]
        config = (run / "config.toml").read_bytes()
        rates = [line["rate"] for line in read_lines(run / "log.jsonl")]
        shutil.rmtree(run)
        shutil.copytree(other, run)
        (run / "config.toml").write_bytes(config)
        log = read_lines(run / "log.jsonl")
        for line, rate in zip(log, rates, strict=True):
            line["rate"] = rate
        write_lines(run / "log.jsonl", log)
        for file in list_checkpoints(run):
            digest = claims["config"]["digest"]
            change_checkpoint(file, lambda meta, tensors, digest=digest: meta.update(config=digest))
        lines = read_lines(run / TRAIL)
        lines[0]["settings"] = claims["settings"]
        rechain(run, lines, config=claims["config"])

    return work
