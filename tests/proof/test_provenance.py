"""SLSA Provenance: what the receipt says and nothing else, in the form of the specification."""

import json

import pytest

from seedless.core.digests import canonical_json
from seedless.core.errors import RunError
from seedless.core.files import hash_file
from seedless.proof.bundle import open_bundle
from seedless.proof.provenance import digest_receipt, list_packages, make_provenance
from seedless.proof.receipt import read_receipt
from seedless.report.ml_bom import make_ml_bom
from tests.conftest import ROOT
from tests.tiny import fit_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return fit_run(tmp_path_factory.mktemp("provenance") / "run")


@pytest.fixture
def receipt(run):
    return read_receipt(run)


@pytest.fixture
def provenance(receipt):
    return json.loads(make_provenance(receipt))


def test_it_has_the_form_of_slsa_provenance(provenance):
    """The fields that https://slsa.dev/spec/v1.2/build-provenance requires, and no others."""
    assert provenance["_type"] == "https://in-toto.io/Statement/v1"
    assert provenance["predicateType"] == "https://slsa.dev/provenance/v1"
    predicate = provenance["predicate"]
    assert {*predicate} == {"buildDefinition", "runDetails"}
    assert {*predicate["buildDefinition"]} == {
        "buildType",
        "externalParameters",
        "internalParameters",
        "resolvedDependencies",
    }
    assert {*predicate["runDetails"]} == {"builder", "metadata", "byproducts"}
    for uri in (
        predicate["buildDefinition"]["buildType"],
        predicate["runDetails"]["builder"]["id"],
    ):
        assert uri.startswith("urn:seedless:")
    for one in predicate["buildDefinition"]["resolvedDependencies"]:
        assert "uri" in one or "digest" in one, "a resource needs one of the two"


def test_every_file_of_the_run_is_named_once_with_its_hash(run, provenance):
    predicate = provenance["predicate"]
    listed = [*provenance["subject"], *predicate["runDetails"]["byproducts"]]
    named = {one["name"]: f"sha256:{one['digest']['sha256']}" for one in listed}
    files = {path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file()}
    assert len(listed) == len(named)
    assert {*named} == files - {".lock"}
    assert all(hash_file(run / name) == digest for name, digest in named.items())
    assert provenance["subject"][0]["name"] == "weights.safetensors"


def test_the_inputs_are_those_of_the_receipt(receipt, provenance):
    claims, definition = receipt["predicate"], provenance["predicate"]["buildDefinition"]
    assert definition["externalParameters"]["configuration"] == claims["config"]["values"]
    assert definition["externalParameters"]["kind"] == "fit"
    inputs = {one["name"]: one for one in definition["resolvedDependencies"]}
    data = inputs["data"]["digest"]["seedless_data_" + claims["schema"].partition(".")[0]]
    assert f"sha256:{data}" == claims["data"]["digest"]
    source = inputs["seedless"]["digest"]["seedless_source"]
    assert f"sha256:{source}" == claims["source"]["digest"]
    version = claims["environment"]["packages"]["torch"].replace("+", "%2B")
    assert inputs["torch"] == {"name": "torch", "uri": f"pkg:pypi/torch@{version}"}
    assert {*claims["environment"]["packages"]} < {*inputs}
    assert inputs["python"]["uri"].startswith("pkg:generic/python@3.")


def test_it_claims_no_time_no_place_and_no_builder_it_does_not_know(provenance, run, receipt):
    details = provenance["predicate"]["runDetails"]
    assert details["builder"]["id"] == "urn:seedless:builder:self-reported"
    assert details["metadata"] == {"invocationId": receipt["predicate"]["digest"]}
    assert str(run) not in json.dumps(provenance)


def test_the_same_receipt_gives_the_same_bytes_and_another_gives_others(receipt):
    first = make_provenance(receipt)
    assert first == make_provenance(json.loads(canonical_json(receipt)))
    assert first == canonical_json(json.loads(first)) + b"\n"
    receipt["predicate"]["data"]["digest"] = "sha256:" + 64 * "0"
    assert make_provenance(receipt) != first


def test_the_digest_of_a_receipt_is_that_of_its_file(run, receipt):
    assert digest_receipt(receipt) == hash_file(run / "receipt.json")


def test_a_run_of_schema_1_has_provenance_and_a_bill_of_materials(tmp_path):
    old = open_bundle(ROOT / "tests" / "golden" / "old" / "fit.bundle.zip", tmp_path / "old")
    receipt = read_receipt(old)
    assert receipt["predicate"]["schema"] == "1.0"
    definition = json.loads(make_provenance(receipt))["predicate"]["buildDefinition"]
    data = definition["resolvedDependencies"][0]
    assert {*data["digest"]} == {"seedless_data_1"}
    assert {*data["annotations"]} == {"name", "records"}
    assert json.loads(make_ml_bom(receipt))["bomFormat"] == "CycloneDX"


def test_package_urls_are_escaped(receipt):
    environment = receipt["predicate"]["environment"]
    environment["packages"] = {"a/b": "1?x=#y"}
    assert list_packages(receipt["predicate"])[1] == (
        "a/b",
        "1?x=#y",
        "pkg:pypi/a%2Fb@1%3Fx%3D%23y",
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda claims: claims["environment"].update(packages=5),
        lambda claims: claims["environment"]["packages"].update(torch=5),
        lambda claims: claims["environment"].pop("python"),
        lambda claims: claims["data"].pop("digest"),
        lambda claims: claims.update(files=[]),
        lambda claims: claims["files"].update({"weights.safetensors": None}),
        lambda claims: claims.update(source=None),
    ],
)
def test_a_receipt_of_another_form_is_an_error(receipt, change):
    change(receipt["predicate"])
    with pytest.raises(RunError, match="does not have the form it must have"):
        make_provenance(receipt)
