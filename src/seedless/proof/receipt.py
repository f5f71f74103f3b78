"""The receipt: what a run began with and what it produced, as an in-toto Statement on its weights.

docs/receipt.md specifies it to the byte. Without a signature it shows that a run is consistent with
itself and, once the run is executed again, that it is true; a signature says who made it.
"""

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from seedless.core.bounded_reading import MAX_JSON_BYTES, parse_json, read_file
from seedless.core.digests import canonical_json, digest_value, get_hex
from seedless.core.errors import RunError
from seedless.core.files import hash_file, say_no_run, write_atomic
from seedless.proof import script_claims
from seedless.proof.schemas import KNOWN_SCHEMAS, RESERVED, SCHEMA, check_schema, choose_schema

FILE = "receipt.json"
SIGNATURE = "receipt.dsse.json"
PAGE = "report.html"
STRIPPED_NOTE = "light.json"
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATES = {"1": "urn:seedless:receipt:1", "2": "urn:seedless:receipt:2"}  # by major version
WEIGHTS = "weights.safetensors"

# What schema 2 states of the data and schema 1 does not.
_NEW_DATA_FACTS = ("content", "protocol", "splits", "repeated")

_PREDICATE_FIELDS = (
    *("schema", "kind", "config", "settings", "source", "environment", "data", "model"),
    *("initialization", "schedule", "trail", "promise", "weights", "metrics", "predictions"),
    *("files", "digest"),
)

# The fields of a receipt by major version and path. A later minor version may have more.
FIELDS: dict[str, dict[tuple[str, ...], tuple[str, ...]]] = {
    major: {
        (): ("_type", "predicate", "predicateType", "subject"),
        ("predicate",): names,
        ("predicate", "config"): ("digest", "values"),
        ("predicate", "weights"): ("digest", "epoch", "md5"),
    }
    for major, names in (("1", _PREDICATE_FIELDS), ("2", (*_PREDICATE_FIELDS, *RESERVED)))
}

# What commands write next to a receipt for other tools.
ATTESTATIONS = (
    "provenance.json",  # the receipt's facts in the words of SLSA
    "provenance.dsse.json",  # the same, signed
    "verification.dsse.json",  # what a verifier found, signed with the verifier's key
    "model.sig",  # an OpenSSF signature over the files of the run
)
# Files that a run folder may hold and that have no digest in the receipt. All of them but the lock
# are made after the receipt, and nothing but the two notes on the run itself is read from them.
UNCOVERED = (
    FILE,
    ".lock",  # empty; the run was locked with it while it was written
    STRIPPED_NOTE,  # which files a study's archive left out; checked against the receipt
    SIGNATURE,  # over the bytes of the receipt
    *ATTESTATIONS,  # checked to be about this run
    PAGE,  # for people
    "progress.png",  # for people
)


def cover_files(run: Path) -> dict[str, str]:
    """Return the SHA-256 of every file of a run folder that a receipt covers, by POSIX path."""
    return {
        path.relative_to(run).as_posix(): hash_file(path)
        for path in sorted(run.rglob("*"))
        if path.is_file() and path.relative_to(run).as_posix() not in UNCOVERED
    }


def describe_file(name: str, digest: str) -> dict[str, Any]:
    """Return name and digest of a file, as the statements of in-toto list files."""
    return {"name": name, "digest": make_digest_set(digest)}


def make_digest_set(digest: str) -> dict[str, str]:
    """Return "sha256:..." as in-toto writes digests."""
    return {"sha256": get_hex(digest)}


def write_receipt(run: Path, claims: Mapping[str, Any]) -> dict[str, Any]:
    """Write receipt.json over all files of a finished run."""
    files = cover_files(run)
    # The claims of a script name a schema of their own.
    schema = choose_schema(claims)
    predicate: dict[str, Any] = {"schema": schema, **RESERVED, **claims, "files": files}
    statement = {
        "_type": STATEMENT,
        "subject": list_subject(predicate),
        "predicateType": PREDICATES[get_major(SCHEMA)],
        "predicate": predicate,
    }
    predicate["digest"] = digest_value(statement)
    write_atomic(run / FILE, canonical_json(statement) + b"\n")
    return statement


def list_subject(claims: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the files that a receipt is about: the weights, or what a script wrote."""
    files = claims["files"]
    made = (
        {WEIGHTS: files[WEIGHTS]} if not is_script(claims) else script_claims.list_outputs(claims)
    )
    return [describe_file(name, digest) for name, digest in made.items()]


def is_script(claims: Mapping[str, Any]) -> bool:
    """Whether a receipt says that its run is that of a script."""
    return claims.get("kind") == script_claims.KIND


def read_receipt(run: Path) -> dict[str, Any]:
    """Return the receipt of a run folder; its form is checked, its content is not.

    Example:
        >>> read_receipt(Path("runs/demo"))["predicate"]["weights"]["digest"]
    """
    path, known = run / FILE, [*PREDICATES.values()]
    try:
        content = read_file(path, MAX_JSON_BYTES)
    except FileNotFoundError:
        raise RunError(explain_missing(run)) from None
    except NotADirectoryError:
        raise RunError(f"{run} is a file, and neither a run folder nor a bundle of one") from None
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror}") from None
    try:
        statement = parse_json(content, FILE)
        predicate = statement["predicate"]
        schema = predicate["schema"]
        written = canonical_json(statement) + b"\n"
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(
            f"{path} is not a receipt: expected an in-toto Statement in JSON ({error})"
        ) from None
    if statement.get("_type") != STATEMENT or statement.get("predicateType") not in known:
        raise RunError(
            f"{path}: expected a {STATEMENT} with predicate {' or '.join(known)}, got "
            f"{statement.get('_type')!r} with {statement.get('predicateType')!r}"
        )
    if not isinstance(schema, str) or not re.fullmatch(r"[0-9]{1,3}\.[0-9]{1,3}", schema):
        raise RunError(f"{path}: expected a schema such as {SCHEMA}, got {schema!r}")
    if get_major(schema) not in PREDICATES:
        raise RunError(
            f"{path} has schema {schema}; this version reads {'.x and '.join(PREDICATES)}.x. Use "
            "the release that wrote it, or a newer one"
        )
    if statement["predicateType"] != PREDICATES[get_major(schema)]:
        raise RunError(
            f"{path} has schema {schema} and predicate {statement['predicateType']!r}; expected "
            f"{PREDICATES[get_major(schema)]!r}: one of them was changed"
        )
    if written != content:
        raise RunError(f"{path} is not in canonical form: it was edited")
    return dict(statement)


def explain_missing(run: Path) -> str:
    """Return a sentence on why there is no receipt where one was expected."""
    if not run.exists():
        return say_no_run(run)
    if (run / "config.toml").exists():
        return f"{run} has no receipt: the run is not finished; `seedless resume {run}` finishes it"
    if (run / "trail.jsonl").exists():
        return (
            f"{run} holds the trail of a loop of your own, without a receipt: `seedless diff` can "
            "compare it, but nothing can verify it. `seedless run -- COMMAND` writes a receipt"
        )
    return f"{run} is not a run folder: it has no {FILE}"


def get_major(schema: str) -> str:
    """Return the major version of a schema: "2" for "2.0"."""
    return schema.split(".")[0]


def list_unknown(statement: Mapping[str, Any]) -> list[str]:
    """Return the fields that this version does not know, and so does not check."""
    return [
        ".".join((*path, name))
        for path, known in FIELDS[get_major(statement["predicate"]["schema"])].items()
        for name in sorted({*_get_fields(statement, path)} - {*known})
    ]


def check_fields(statement: Mapping[str, Any]) -> list[str]:
    """Return the fields that a receipt lacks or that its schema does not have, a sentence each.

    A reserved field must have the one value that it can have in this version.
    """
    claims = statement["predicate"]
    schema, major = claims["schema"], get_major(claims["schema"])
    problems = [
        f"{FILE} lacks {'.'.join((*path, name))}"
        for path, known in FIELDS[major].items()
        for name in known
        if name not in _get_fields(statement, path) and not (is_script(claims) and len(path) > 1)
    ]
    if schema in KNOWN_SCHEMAS:
        problems += [
            f"{FILE} has {name}, which schema {schema} does not have: it was added"
            for name in list_unknown(statement)
        ]
    if is_script(claims):
        if schema in KNOWN_SCHEMAS and schema != script_claims.SCHEMA:
            return [*problems, f"{FILE} is of a script, and schema {schema} has no such runs"]
        return problems or script_claims.check_claims(claims)
    return problems if major == "1" else problems + check_schema(claims, FILE)


def state_data(facts: Mapping[str, Any], schema: str) -> dict[str, Any]:
    """Return the facts of a run's data as a receipt of a schema states them.

    Schema 1 has fewer, and the digest of the content alone as the digest.
    """
    if get_major(schema) != "1":
        return dict(facts)
    kept = {name: value for name, value in facts.items() if name not in _NEW_DATA_FACTS}
    return {**kept, "digest": facts["content"]}


def get_content_digest(claims: Mapping[str, Any]) -> str:
    """Return the digest of the content of a run's data, `Dataset.digest`, from its receipt."""
    data = claims["data"]
    return str(data["digest"] if get_major(claims["schema"]) == "1" else data["content"])


def describe_schema(claims: Mapping[str, Any]) -> str:
    """Return in words what a receipt of an old schema does not bind; "" for the newest."""
    if get_major(claims["schema"]) != "1":
        return ""
    return (
        "schema 1: its receipt does not bind which records are for training and which for "
        "testing, nor count those that are in two splits"
    )


def _get_fields(statement: Mapping[str, Any], path: tuple[str, ...]) -> Mapping[str, Any]:
    """Return the fields at a path of a receipt; none where it has no fields there."""
    place: Any = statement
    for name in path:
        place = place.get(name) if isinstance(place, dict) else None
    return place if isinstance(place, dict) else {}


def check_receipt(
    run: Path, statement: Mapping[str, Any], left_out: Collection[str] = ()
) -> list[str]:
    """Return what is wrong between a receipt and the files it covers, a sentence each.

    ``left_out``: the files of a stripped run that must be missing.
    """
    # [Step 1] The fields the receipt must have.
    predicate = dict(statement["predicate"])
    problems = check_fields(statement)
    # [Step 2] The digest of every file, and no file more or less.
    covered, found = predicate.get("files"), cover_files(run)
    if not isinstance(covered, dict) or not all(isinstance(v, str) for v in covered.values()):
        return [*problems, f"the list of files in {FILE} does not give a digest for each"]
    for name in sorted({*covered, *found}):
        if name in left_out:
            if name in found:
                problems.append(f"{name} is here, and {STRIPPED_NOTE} says that it was left out")
        elif name not in found:
            problems.append(f"{name} is missing")
        elif name not in covered:
            problems.append(f"{name} is not covered by the receipt: it was added later")
        elif covered[name] != found[name]:
            problems.append(
                f"{name} was changed: expected {covered[name][:23]}..., found {found[name][:23]}..."
            )
    # [Step 3] The statement is about the weights of this folder, or the outputs of a script.
    if not is_script(predicate):
        weights = (covered if WEIGHTS in left_out else found).get(WEIGHTS, "")
        subject = [{"name": WEIGHTS, "digest": {"sha256": weights[7:]}}]
        if statement.get("subject") != subject:
            problems.append(f"the receipt's subject is not {WEIGHTS} as it is in this folder")
    elif not problems and statement.get("subject") != list_subject(predicate):
        problems.append("the receipt's subject is not what the script wrote")
    # [Step 4] The receipt's own digest, which covers all of its other fields.
    claimed = predicate.pop("digest", None)
    if digest_value({**statement, "predicate": predicate}) != claimed:
        problems.append(f"{FILE} does not match its own digest: a field of it was changed")
    return problems
