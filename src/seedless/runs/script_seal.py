"""What was recorded of a script becomes a run folder: trail.jsonl, data.jsonl and receipt.json."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from seedless.core.digests import canonical_json, digest_value, get_hex
from seedless.core.errors import RunError
from seedless.proof.loop_lines import name_trail_file
from seedless.proof.receipt import write_receipt
from seedless.proof.run_files import DATA_LIST
from seedless.proof.script_claims import EMPTY_FIELDS, KIND, SCHEMA, check_claims
from seedless.proof.source_digest import describe_source
from seedless.proof.trail import GENESIS, TrailEntry, chain
from seedless.runs.script_run import describe_end, describe_start, write_data_list

# A trail of so many lines is within the limits of what is read of one. A longer run has a line for
# every second step, or every third, ... and digests of the steps between them.
MAX_STEP_LINES = 100_000

Steps = Sequence[Mapping[str, Any]]


def seal_script(
    run: Path,
    script: Mapping[str, Any],
    environment: Mapping[str, Any],
    processes: Sequence[Steps],
    data: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Write the run folder of a script, complete or not at all; return its receipt.

    Args:
        run: a folder that does not exist.
        script: the receipt's field of that name, without ``data``.
        environment: the receipt's field of that name.
        processes: for each process that trained, its steps as the recorder wrote them: "step",
            "optimizer", "values" and "shown".
        data: path, size and digest of each file that was read.
    """
    # [Step 1] The claims, which must have the form that is read again.
    counted = {"files": len(data), "bytes": sum(file["size"] for file in data)}
    claims: dict[str, Any] = {
        "schema": SCHEMA,
        "kind": KIND,
        **dict.fromkeys(EMPTY_FIELDS),
        "source": describe_source(),
        "environment": dict(environment),
        "script": {**script, "data": counted},
        "callables": [],
    }
    # [Step 2] The trails, and the place where each of them ends.
    claims["processes"] = {"count": len(processes)}
    every = max(1, math.ceil(sum(map(len, processes)) / MAX_STEP_LINES))
    trails = [list(make_trail(claims, n, steps, every)) for n, steps in enumerate(processes)]
    claims["processes"]["trails"] = [describe_end(trail) for trail in trails]
    claims["trail"] = claims["processes"]["trails"][0]
    if problems := check_claims(claims):
        raise RunError(f"no receipt can be written: {problems[0]}")
    # [Step 3] The files, in a folder that gets its name once all of them are there.
    temporary = run.with_name(f".{run.name}.{os.getpid()}.part")
    try:
        temporary.mkdir(parents=True)
        for rank, trail in enumerate(trails):
            content = b"".join(canonical_json(entry) + b"\n" for entry in trail)
            (temporary / name_trail_file(rank)).write_bytes(content)
        (temporary / DATA_LIST).write_bytes(write_data_list(data))
        statement = write_receipt(temporary, claims)
        temporary.rename(run)
    except OSError as error:
        raise RunError(f"cannot write {run}: {error.strerror}") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return statement


def make_trail(
    claims: Mapping[str, Any], rank: int, steps: Steps, every: int = 1
) -> Iterator[TrailEntry]:
    """Yield the entries of the trail of one process, chained: the start, then its steps."""
    entry = chain(describe_start(claims, rank), GENESIS)
    yield entry
    for content in list_step_lines(steps, every):
        entry = chain(content, entry["digest"])
        yield entry


def list_step_lines(steps: Steps, every: int = 1) -> Iterator[dict[str, Any]]:
    """Yield the lines of the steps of one process, not chained.

    With ``every`` above 1 only each such step has a line, and the last one; the digest "between" in
    its state is then that of the states since the line before.
    """
    skipped: list[dict[str, str]] = []
    for count, step in enumerate(steps, start=1):
        state = flatten_values(step["values"])
        if count % every and count < len(steps):
            skipped.append(state)
            continue
        shown = step.get("shown") or {}
        between = {"between": get_hex(digest_value(skipped))[:16]} if skipped else {}
        yield {
            "kind": "step",
            "step": step["step"],
            "optimizer": step["optimizer"],
            "loss": _average(shown.get("loss")),
            "rate": _average(_first(shown.get("rate"))),
            "state": {**state, **between},
        }
        skipped = []


def flatten_values(values: Mapping[str, Any]) -> dict[str, str]:
    """Return digests by name, where a name can have several.

    >>> flatten_values({"weights": "a", "batch": ["b", "c"]})
    {'weights': 'a', 'batch/0': 'b', 'batch/1': 'c'}
    """
    state: dict[str, str] = {}
    for name, value in values.items():
        digests = [value] if isinstance(value, str) else list(value)
        if len(digests) == 1:
            state[name] = digests[0]
        else:
            state |= {f"{name}/{place}": one for place, one in enumerate(digests)}
    return state


def _first(value: Any) -> Any:
    return value[:1] if isinstance(value, list | tuple) else value


def _average(value: Any) -> float | None:
    """Return the mean of one or several numbers; None where there is none, or it is not finite."""
    numbers = value if isinstance(value, list | tuple) else [value]
    kept = [float(one) for one in numbers if isinstance(one, int | float)]
    mean = math.fsum(kept) / len(kept) if kept and all(map(math.isfinite, kept)) else math.nan
    return mean if math.isfinite(mean) else None
