"""Stripped runs: a finished run without its large files, and with a note that lists them.

The note, ``light.json``, names files that the receipt covers and that were left out: the trail, the
checkpoints and usually the weights. Their digests stay in the receipt, so a stripped run can be
executed again and compared as strictly as a complete one: every line of the trail enters the digest
of the last.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from seedless.core.bounded_reading import MAX_JSON_BYTES, parse_json, read_file
from seedless.core.digests import canonical_json
from seedless.core.errors import RunError
from seedless.proof.receipt import STRIPPED_NOTE, WEIGHTS
from seedless.proof.trail import FILE as TRAIL
from seedless.train.checkpoint import CHECKPOINT_FOLDER as CHECKPOINTS

SCHEMA = "seedless.light/1"
# The fields that both line 0 of a trail and the receipt have.
FACTS = ("settings", "source", "environment", "data", "initialization", "model")


def list_facts(claims: Mapping[str, Any]) -> tuple[str, ...]:
    """Return `FACTS`, and "callables" for a run with user-defined functions."""
    return (*FACTS, "callables") if claims.get("callables") else FACTS


def is_stripped(name: str, *, weights: bool = False) -> bool:
    """Whether a stripped run leaves a file out; with ``weights`` it keeps those."""
    return name == TRAIL or name.startswith(f"{CHECKPOINTS}/") or (name == WEIGHTS and not weights)


def describe_stripped(receipt: Mapping[str, Any], names: Iterable[str]) -> bytes:
    """Return the content of the note that lists the files left out."""
    claims = receipt["predicate"]
    note = {"schema": SCHEMA, "receipt": claims["digest"], "left_out": sorted(names)}
    return canonical_json(note) + b"\n"


def read_left_out(run: Path, receipt: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the files that a run's note lists as left out; none for a complete run."""
    path = run / STRIPPED_NOTE
    try:
        content = read_file(path, MAX_JSON_BYTES)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror}") from None
    try:
        names = tuple(parse_json(content, str(path))["left_out"])
        canonical = describe_stripped(receipt, names) == content
        large = {name for name in receipt["predicate"]["files"] if is_stripped(name)}
        valid = canonical and {*names} in (large, large - {WEIGHTS})
    except (ValueError, LookupError, TypeError, AttributeError):
        valid = False
    if not valid:
        raise RunError(
            f"{path} does not fit this run: expected a list of the trail and the checkpoints that "
            "its receipt covers, with or without the weights. Get the run again"
        )
    return names
