"""The ML-BOM: valid under the published schema, and nothing but what the receipt says."""

import copy
import json
import uuid

import pytest

from seedless.core.errors import RunError
from seedless.core.files import hash_file
from seedless.proof.receipt import read_receipt
from seedless.report.ml_bom import make_ml_bom
from tests.tiny import fit_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return fit_run(tmp_path_factory.mktemp("bom") / "run")


@pytest.fixture
def receipt(run):
    return read_receipt(run)


@pytest.fixture
def bom(receipt):
    return json.loads(make_ml_bom(receipt))


@pytest.fixture(scope="module")
def list_errors():
    """What the published schema of CycloneDX 1.6 says against a BOM; it allows no unknown field."""
    reason = "the schema comes with cyclonedx-python-lib[json-validation], which is not installed"
    validation = pytest.importorskip("cyclonedx.validation.json", reason=reason)
    schema = pytest.importorskip("cyclonedx.schema", reason=reason)
    validator = validation.JsonStrictValidator(schema.SchemaVersion.V1_6)

    def check(bom):
        found = validator.validate_str(json.dumps(bom))
        return None if found is None else str(found.data)

    return check


def test_it_is_valid_under_the_published_schema(bom, list_errors):
    assert list_errors(bom) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda bom: bom.update(serialNumber="5"),
        lambda bom: bom["metadata"]["component"].update(type="model"),
        lambda bom: bom["metadata"]["component"]["modelCard"].update(score=1),
        lambda bom: bom["formulation"][0]["workflows"][0].pop("uid"),
        lambda bom: bom["metadata"]["component"]["hashes"][0].update(content="5"),
    ],
)
def test_the_schema_refuses_what_is_not_a_bom(bom, list_errors, change):
    change(bom)
    assert list_errors(bom) is not None


def test_odd_names_stay_valid(receipt, list_errors):
    claims = receipt["predicate"]
    claims["data"]["classes"] = ["<script>", "\x1b[2J", "é\u2028"]
    claims["data"]["name"] = "a b/../c.npz"
    claims["environment"]["packages"] = {"torch": "2.0 beta#1"}
    claims["environment"]["variables"] = {}
    assert list_errors(json.loads(make_ml_bom(receipt))) is None


def test_the_model_is_the_weights_of_the_run(run, bom):
    model = bom["metadata"]["component"]
    assert model["type"] == "machine-learning-model"
    (found,) = model["hashes"]
    assert f"sha256:{found['content']}" == hash_file(run / "weights.safetensors")
    for one in model["externalReferences"]:
        assert f"sha256:{one['hashes'][0]['content']}" == hash_file(run / one["url"]), one["url"]
    assert {one["url"] for one in model["externalReferences"]} >= {"receipt.json", "config.toml"}


def test_the_scores_are_those_of_the_receipt(receipt, bom):
    card = bom["metadata"]["component"]["modelCard"]
    metrics = card["quantitativeAnalysis"]["performanceMetrics"]
    scores = receipt["predicate"]["metrics"]
    by_name = {(one["type"], one["slice"]): one for one in metrics}
    assert len(by_name) == len(metrics)
    for split in ("validation", "test"):
        macro = by_name["macro AUC", split]
        assert float(macro["value"]) == scores[split]["macro_auc"]
        interval = [
            float(macro["confidenceInterval"][side]) for side in ("lowerBound", "upperBound")
        ]
        assert interval == scores[split]["macro_auc_interval"]
        one = by_name["AUC", f"{split}, class class 1"]
        assert float(one["value"]) == scores[split]["classes"]["class 1"]["auc"]


def test_the_formulation_has_every_setting_and_the_inputs(receipt, bom):
    claims = receipt["predicate"]
    (workflow,) = bom["formulation"][0]["workflows"]
    training, check = workflow["tasks"]
    settings = {
        one["name"]: json.loads(one["value"])
        for entry in training["inputs"]
        for one in entry.get("parameters", [])
    }
    values = claims["config"]["values"]
    assert settings == {
        f"{section}.{name}": value for section in values for name, value in values[section].items()
    }
    assert {"resource": {"ref": "data"}} in training["inputs"]
    assert {"type": "artifact", "resource": {"ref": "model"}} in training["outputs"]
    assert training["uid"] == claims["digest"]
    assert check["steps"][0]["commands"] == [{"executed": "seedless verify RUN"}]


def test_the_components_are_the_data_and_the_packages(receipt, bom):
    claims = receipt["predicate"]
    parts = {one["name"]: one for one in bom["components"]}
    data = next(one for one in bom["components"] if one["type"] == "data")
    assert claims["data"]["digest"] in [one["value"] for one in data["properties"]]
    assert parts["torch"]["version"] == claims["environment"]["packages"]["torch"]
    assert parts["torch"]["purl"].startswith("pkg:pypi/torch@")
    assert claims["source"]["digest"] in [one["value"] for one in parts["seedless"]["properties"]]
    (dependencies,) = bom["dependencies"]
    assert {*dependencies["dependsOn"]} == {one["bom-ref"] for one in bom["components"]}


def test_the_same_run_has_the_same_bytes_and_number_and_no_time(receipt, bom):
    assert make_ml_bom(receipt) == make_ml_bom(copy.deepcopy(receipt))
    assert "timestamp" not in bom["metadata"]
    serial = uuid.UUID(bom["serialNumber"].removeprefix("urn:uuid:"))
    assert serial.version == 5
    receipt["predicate"]["digest"] = "sha256:" + 64 * "0"
    assert json.loads(make_ml_bom(receipt))["serialNumber"] != bom["serialNumber"]


def test_warnings_come_with_the_model(receipt):
    receipt["predicate"]["metrics"]["converged"] = False
    card = json.loads(make_ml_bom(receipt))["metadata"]["component"]["modelCard"]
    limits = card["considerations"]["technicalLimitations"]
    assert any(limit.startswith("Not converged: ") for limit in limits)


def test_a_receipt_of_another_form_is_an_error(receipt):
    receipt["predicate"]["environment"] = 5
    with pytest.raises(RunError, match="does not have the form it must have"):
        make_ml_bom(receipt)
