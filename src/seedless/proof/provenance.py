"""SLSA Provenance of a run: its receipt in the form that supply-chain tools read.

An in-toto Statement with the predicate of https://slsa.dev/spec/v1.2/build-provenance. Everything
in it comes from the receipt and nothing from this machine, so the same run gives the same bytes,
and `validate` compares a file next to the receipt with them. What the receipt does not know is not
in it: no times, and no digest of an installed package.

The page docs/reference/attestations.md documents the build type, the builder and the two digests.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from seedless.core.digests import canonical_json, digest_bytes, get_hex
from seedless.core.errors import RunError
from seedless.proof.receipt import FILE as RECEIPT
from seedless.proof.receipt import STATEMENT, WEIGHTS, describe_file
from seedless.proof.schemas import has_weights_file

FILE = "provenance.json"
ENVELOPE = "provenance.dsse.json"
PREDICATE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "urn:seedless:build:1"
# Nobody but the maker of a run says what it was run on. A signature says who the maker is.
BUILDER = "urn:seedless:builder:self-reported"
# Both are SHA-256 over an encoding of ours, not over the bytes of a file, which "sha256" would
# mean. The encoding of the data depends on the receipt's schema, so its major version is added.
DATA_DIGEST = "seedless_data"
SOURCE_DIGEST = "seedless_source"
# What the receipt states of the data besides; the last three are not in receipts of schema 1.
DATA_FACTS = ("name", "records", "protocol", "splits", "repeated")
# What a run produces, predictions only with a loss of the configuration's; the other files that its
# receipt covers tell how it went.
PREDICTIONS = "predictions.npz"
OUTPUTS = (WEIGHTS, "metrics.json", PREDICTIONS)


def make_provenance(receipt: Mapping[str, Any]) -> bytes:
    """Return the provenance of a run as canonical JSON, ended by a newline.

    Args:
        receipt: the whole statement of its receipt, which was validated.

    Example:
        >>> make_provenance(open_validated("runs/demo").receipt)
    """
    try:
        statement = _describe_run(receipt["predicate"], digest_receipt(receipt))
    except (LookupError, TypeError, AttributeError) as error:
        raise RunError(
            f"the receipt does not have the form it must have ({error!r}); get the run again"
        ) from None
    return canonical_json(statement) + b"\n"


def digest_receipt(receipt: Mapping[str, Any]) -> str:
    """Return "sha256:..." of the file receipt.json, which has one form for each statement."""
    return digest_bytes(canonical_json(receipt) + b"\n")


def list_packages(claims: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return (name, version, package URL) of Python and each package, as the receipt names them.

    Package URLs: https://github.com/package-url/purl-spec.
    """
    environment = claims["environment"]
    versions = {"python": environment["python"], **dict(sorted(environment["packages"].items()))}
    for name, version in versions.items():
        if not isinstance(version, str):
            raise TypeError(f"the version of {name!r} is not text")
    return [
        (name, version, _make_package_url("generic" if name == "python" else "pypi", name, version))
        for name, version in versions.items()
    ]


def describe_source_package(claims: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return (name, version, package URL) of this package, as the receipt names it.

    The URL is a generic one: a digest, not a registry, says which source it was.
    """
    source = claims["source"]
    name, version = str(source["name"]), str(source["version"])
    return name, version, _make_package_url("generic", name, version)


def _describe_run(claims: Mapping[str, Any], receipt: str) -> dict[str, Any]:
    files = claims["files"]
    outputs = [name for name in OUTPUTS if name != PREDICTIONS or name in files]
    byproducts = {name: files[name] for name in sorted(files) if name not in OUTPUTS}
    return {
        "_type": STATEMENT,
        "subject": [describe_file(name, files[name]) for name in outputs],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {
                    "kind": claims["kind"],
                    "configuration": claims["config"]["values"],
                },
                "internalParameters": {
                    "environment": claims["environment"],
                    "initialization": claims["initialization"],
                    "schedule": claims["schedule"],
                },
                "resolvedDependencies": _list_dependencies(claims),
            },
            "runDetails": {
                "builder": {
                    "id": BUILDER,
                    "version": {claims["source"]["name"]: claims["source"]["version"]},
                },
                "metadata": {"invocationId": claims["digest"]},
                "byproducts": [
                    describe_file(RECEIPT, receipt),
                    *(describe_file(name, digest) for name, digest in byproducts.items()),
                ],
            },
        },
    }


def _list_dependencies(claims: Mapping[str, Any]) -> list[dict[str, Any]]:
    data, schema = claims["data"], str(claims["schema"]).partition(".")[0]
    name, _, url = describe_source_package(claims)
    return [
        {
            "name": "data",
            "digest": {f"{DATA_DIGEST}_{schema}": get_hex(data["digest"])},
            "annotations": {name: data[name] for name in DATA_FACTS if name in data},
        },
        *_list_weights_file(claims),
        {
            "name": name,
            "uri": url,
            "digest": {SOURCE_DIGEST: get_hex(claims["source"]["digest"])},
        },
        *({"name": name, "uri": url} for name, _, url in list_packages(claims)),
    ]


def _list_weights_file(claims: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the weights file that the run began with; none where it began with a start."""
    if not has_weights_file(claims):
        return []
    file = claims["initialization"]["file"]
    return [describe_file(str(file["name"]), file["digest"])]


def _make_package_url(kind: str, name: str, version: str) -> str:
    return f"pkg:{kind}/{quote(name.lower(), safe='')}@{quote(version, safe='')}"
