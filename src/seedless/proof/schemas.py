"""The minor versions of a receipt's schema: which one a run needs, and what each allows.

Fields are only added: 2.2 adds functions of the user, 2.3 several processes, 2.4 the weights file
that a run began with. Each later version may have the fields of the earlier ones.
"""

import json
from collections.abc import Mapping
from typing import Any

from seedless.core.mismatch import is_same_json
from seedless.proof import script_claims
from seedless.proof.callable_claims import check_callables
from seedless.proof.process_claims import check_processes
from seedless.proof.weights_claims import FILE_FIELD, check_weights_file

SCHEMA = "2.0"  # of the receipts that this version writes for its own runs
CALLABLES_SCHEMA = "2.2"  # of the receipts of runs with user-defined functions, in `callables`
PROCESSES_SCHEMA = "2.3"  # of the receipts of runs on several processes; they may have `callables`
WEIGHTS_SCHEMA = "2.4"  # of runs that began with the weights of a file; they may have both of these
# The schemas whose fields this version knows, all of them. A later one may have more.
KNOWN_SCHEMAS = (
    *("1.0", SCHEMA, script_claims.SCHEMA, CALLABLES_SCHEMA, PROCESSES_SCHEMA, WEIGHTS_SCHEMA),
)
# Fields of schema 2 with the value that each has in most runs of this package's own: the script a
# run was recorded from, digests of the user's functions, and the processes it was finished on.
RESERVED: dict[str, Any] = {"script": None, "callables": [], "processes": {"count": 1}}
# Which of them may have other values in a schema.
_ALLOWED_FIELDS = {
    CALLABLES_SCHEMA: ("callables",),
    PROCESSES_SCHEMA: ("callables", "processes"),
    WEIGHTS_SCHEMA: ("callables", "processes"),
}


def choose_schema(claims: Mapping[str, Any]) -> str:
    """Return the schema that the receipt of a run of this package's own needs."""
    if has_weights_file(claims):
        return WEIGHTS_SCHEMA
    if _has(claims, "processes"):
        return PROCESSES_SCHEMA
    return CALLABLES_SCHEMA if _has(claims, "callables") else SCHEMA


def has_weights_file(claims: Mapping[str, Any]) -> bool:
    """Whether a receipt says that its run began with the weights of a file."""
    start = claims.get("initialization")
    return isinstance(start, dict) and FILE_FIELD in start


def check_schema(claims: Mapping[str, Any], file: str) -> list[str]:
    """Return what a receipt of schema 2 states and its minor version does not allow, in sentences.

    Args:
        claims: the predicate; not that of a script.
        file: the name of the receipt, for messages.
    """
    schema, problems = claims["schema"], []
    free = _ALLOWED_FIELDS.get(schema, ())
    # [Step 1] What a minor version is for must be there.
    if schema == CALLABLES_SCHEMA and not _has(claims, "callables"):
        problems.append(f"schema {schema} is for runs of fit() with user-defined functions")
    if schema == PROCESSES_SCHEMA and not _has(claims, "processes"):
        problems += check_processes(claims.get("processes"))
    if schema == WEIGHTS_SCHEMA:
        start = claims.get("initialization")
        problems += check_weights_file(start.get(FILE_FIELD) if isinstance(start, dict) else None)
    elif schema in KNOWN_SCHEMAS and has_weights_file(claims):
        problems.append(
            f"{file} has initialization.{FILE_FIELD}, which schema {schema} does not have"
        )
    # [Step 2] What it has, it has in the right form.
    if "callables" in free and _has(claims, "callables"):
        problems += check_callables(claims["callables"])
        if claims.get("kind") != "fit":
            problems.append("user-defined functions belong to runs of fit()")
    if "processes" in free and _has(claims, "processes"):
        problems += check_processes(claims["processes"])
    # [Step 3] The rest has the one value that it can have.
    problems += [
        f"expected {json.dumps(value)} as predicate.{name} in {file}, got something else: this "
        "version can neither make nor verify such a run"
        for name, value in RESERVED.items()
        if name in claims and not is_same_json(claims[name], value) and name not in free
    ]
    return problems


def _has(claims: Mapping[str, Any], name: str) -> bool:
    """Whether a field has another value than in most runs."""
    return name in claims and not is_same_json(claims[name], RESERVED[name])
