"""The receipt of a script's run: its form, and no field of it that can be changed unseen."""

import json

import pytest

import seedless
from seedless.proof.receipt import check_fields, list_subject
from seedless.proof.script_claims import EMPTY_FIELDS, check_claims, is_inner_path, is_outer_path
from tests.forgery import (
    alter,
    list_leaves,
    list_mappings,
    look_up,
    read_statement,
    remove,
    replace,
    seal,
    write_statement,
)
from tests.script_runs import write_script_run


@pytest.fixture
def run(tmp_path):
    return write_script_run(tmp_path / "run")


def refuse(run):
    """Return the explanation of a run that must be invalid."""
    verdict = seedless.verify(run)
    assert verdict.code == 2
    return " ".join([verdict.sentence, *verdict.details])


def test_it_is_a_statement_about_what_the_script_wrote(run):
    statement = read_statement(run)
    claims = statement["predicate"]
    output = claims["script"]["outputs"]["out/model.pt"]
    assert statement["subject"] == [
        {"name": "out/model.pt", "digest": {"sha256": output["digest"].removeprefix("sha256:")}}
    ]
    assert statement["predicateType"] == "urn:seedless:receipt:2"
    assert (claims["schema"], claims["kind"]) == ("2.1", "script")
    assert all(claims[name] is None for name in EMPTY_FIELDS)
    assert {*claims["files"]} == {"trail.jsonl", "data.jsonl"}


def test_a_script_that_wrote_nothing_has_its_trail_as_subject(tmp_path):
    run = write_script_run(tmp_path / "run", script={"outputs": {}})
    assert [one["name"] for one in read_statement(run)["subject"]] == ["trail.jsonl"]
    assert seedless.verify(run, validate_only=True).outcome == "consistent"


@pytest.mark.parametrize(
    ("path", "inner", "outer"),
    [
        ("train.py", True, False),
        ("a/b c/ü.py", True, False),
        ("/data/x.npy", False, True),
        *((text, False, False) for text in ("", ".", "..", "a/../b", "../a", "./a", "a//b", "a/")),
        *(
            (text, False, False)
            for text in ("/", "//host/x", "/a/../b", "a\\b", "a\nb", "a\x1b[2J")
        ),
        ("x" * 1_025, False, False),
    ],
)
def test_paths_cannot_lead_out_of_their_folder(path, inner, outer):
    assert (is_inner_path(path), is_outer_path(path)) == (inner, outer)


WRONG = {
    "script.command": [[], "sh -c x", ["/usr/bin/python", "x.py"], ["./python"], ["a\x00"], [1]],
    "script.exit_code": [1, None, False],
    "script.sources": [{"../x.py": "sha256:" + 64 * "0"}, {"x.py": "md5:0"}, []],
    "script.outputs": [{"/etc/x": {}}, {"x": {"size": -1}}, None],
    "script.data": [{"files": 2}, {"files": 1, "bytes": 4}, {"files": 2.0, "bytes": 4}],
    "script.changed": [None, ["../x"]],
    "script.unobserved": [[1], None],
    "script.outputs_named": [0, None],
    "environment.variables": [
        {"MKL_CBWR": "a\nb"},
        {"MKL_CBWR": "\x1b[2J"},
        {"LD_PRELOAD": "/x.so"},
    ],
    "environment.threads": [{"intraop": "x"}, {"intraop": True, "interop": 1}],
    "environment.packages": [None, {"torch": 2}],
    "processes": [{"count": 0}, {"count": 2}, {}, None],
    "callables": [None, ["x"]],
    "trail": [None, {"head": "sha256:0", "entries": 4}],
    "source": [None, {}],
}


@pytest.mark.parametrize(
    ("field", "value"), [(field, value) for field, values in WRONG.items() for value in values]
)
def test_a_field_of_another_form_is_refused_under_a_new_seal(run, field, value):
    path = ("predicate", *field.split("."))
    seal(run, replace(read_statement(run), path, value), files=False)
    assert refuse(run)


@pytest.mark.parametrize("field", EMPTY_FIELDS)
def test_fields_of_this_package_s_own_runs_stay_empty(run, field):
    seal(run, replace(read_statement(run), ("predicate", field), {}), files=False)
    assert f"expected null as predicate.{field}" in refuse(run)


def test_no_leaf_can_be_changed(run):
    statement = read_statement(run)
    for path in list_leaves(statement):
        write_statement(run, replace(statement, path, alter(look_up(statement, path))))
        assert refuse(run), path


def test_no_field_can_be_removed_or_added_under_a_new_seal(run):
    statement = read_statement(run)
    for path in list_mappings(statement):
        for name in look_up(statement, path):
            if (*path, name) not in (("predicate",), ("predicate", "digest")):  # `seal` needs them
                seal(run, remove(statement, (*path, name)), files=False)
                assert refuse(run), (path, name)
        seal(run, replace(statement, (*path, "approved_by"), "everyone"), files=False)
        assert refuse(run), path


def test_it_needs_the_schema_that_has_scripts(run):
    statement = read_statement(run)
    seal(run, replace(statement, ("predicate", "schema"), "2.0"), files=False)
    assert "schema 2.0 has no such runs" in refuse(run)


def test_a_later_minor_schema_may_have_more(run):
    statement = replace(read_statement(run), ("predicate", "schema"), "2.7")
    seal(run, replace(statement, ("predicate", "approved_by"), "everyone"), files=False)
    assert seedless.verify(run, validate_only=True).outcome == "consistent"


def test_an_honest_receipt_has_no_problems(run):
    statement = read_statement(run)
    assert check_fields(statement) == []
    assert check_claims(statement["predicate"]) == []
    assert list_subject(statement["predicate"]) == statement["subject"]
    assert look_up(statement, ("predicate", "script", "data")) == {"files": 2, "bytes": 4}
    assert json.dumps(statement)
