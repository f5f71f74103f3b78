"""Which minor version of the schema a receipt has, and what each allows."""

import pytest

from seedless.proof.schemas import RESERVED, check_schema, choose_schema

FUNCTION = {"role": "loss", "name": "mine", "digest": f"sha256:{64 * '0'}"}
TWO = {"count": 2, "backend": "gloo", "devices": ["cpu", "cpu"]}
FILE = {
    "name": "base.safetensors",
    "digest": f"sha256:{64 * '1'}",
    "tensors": f"sha256:{64 * '2'}",
    "taken": ["weight"],
    "started": [],
    "kept": [],
}
PARTS = {
    "callables": {"callables": [FUNCTION]},
    "processes": {"processes": TWO},
    "file": {"initialization": {"basis": "file", "file": FILE}},
}
NEEDED = {
    (): "2.0",
    ("callables",): "2.2",
    ("processes",): "2.3",
    ("callables", "processes"): "2.3",
    ("file",): "2.4",
    ("callables", "file"): "2.4",
    ("processes", "file"): "2.4",
    ("callables", "processes", "file"): "2.4",
}


def make_claims(parts):
    claims = {"kind": "fit", **RESERVED, "initialization": {"basis": "dct"}}
    for part in parts:
        claims |= PARTS[part]
    return claims


@pytest.mark.parametrize("parts", NEEDED, ids="+".join)
def test_a_receipt_has_the_schema_that_it_needs_and_no_lower_one_allows_it(parts):
    claims = make_claims(parts)
    assert choose_schema(claims) == NEEDED[parts]
    for schema in ("2.0", "2.2", "2.3", "2.4"):
        problems = check_schema({**claims, "schema": schema}, "receipt.json")
        allowed = schema == NEEDED[parts]
        assert allowed == (not problems), (schema, problems)


@pytest.mark.parametrize("schema", ["2.2", "2.3", "2.4"])
@pytest.mark.parametrize("wrong", [None, {}, [1], [{**FUNCTION, "role": "boss"}]])
def test_functions_have_their_form_in_every_schema_that_has_them(schema, wrong):
    parts = {"2.2": (), "2.3": ("processes",), "2.4": ("file",)}[schema]
    claims = {**make_claims(parts), "schema": schema, "callables": wrong}
    assert check_schema(claims, "receipt.json")


def test_functions_belong_to_runs_of_fit():
    claims = {**make_claims(("callables", "file")), "schema": "2.4", "kind": "train"}
    assert "belong to runs of fit()" in " ".join(check_schema(claims, "receipt.json"))


@pytest.mark.parametrize("start", [None, [], "file", {"file": None}, {"file": []}])
def test_a_start_of_another_form_is_refused(start):
    claims = {**make_claims(("file",)), "schema": "2.4", "initialization": start}
    assert "does not state name, digest" in " ".join(check_schema(claims, "receipt.json"))
