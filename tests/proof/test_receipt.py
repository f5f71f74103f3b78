"""The receipt: its form to the byte, and no field of it that can be changed unseen."""

import hashlib
import json

import pytest
import torch

import seedless
from seedless.core.digests import canonical_json
from seedless.core.errors import RunError
from seedless.proof.receipt import check_fields, cover_files, list_unknown, read_receipt
from seedless.runs.validation import validate
from tests.forgery import (
    alter,
    list_leaves,
    list_mappings,
    look_up,
    pun,
    read_statement,
    relabel_as_schema_1,
    remove,
    replace,
    seal,
    write_statement,
)
from tests.tiny import copy_run, fit_run, flags_restored, give, make_arrays


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    with flags_restored():
        return fit_run(tmp_path_factory.mktemp("receipt") / "run", train={"checkpoint_every": 3})


@pytest.fixture
def run(finished, tmp_path):
    with flags_restored():
        yield copy_run(finished, tmp_path / "run")


def refuse(run):
    """Return the explanation of a run that must be invalid."""
    verdict = seedless.verify(run, validate_only=True)
    assert verdict.code == 2
    assert not verdict.ok
    explanation = " ".join([verdict.sentence, *verdict.details])
    assert explanation.strip()
    return explanation


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_it_is_a_statement_about_the_weights_in_canonical_json(run):
    content = (run / "receipt.json").read_bytes()
    statement = json.loads(content)
    text = json.dumps(statement, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert content == text.encode() + b"\n"
    assert {*statement} == {"_type", "subject", "predicateType", "predicate"}
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "urn:seedless:receipt:2"
    digest = {"sha256": sha256(run / "weights.safetensors")}
    assert statement["subject"] == [{"name": "weights.safetensors", "digest": digest}]


def test_its_digest_is_that_of_the_statement_without_it(run):
    statement = read_statement(run)
    claimed = statement["predicate"].pop("digest")
    text = json.dumps(statement, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert claimed == f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def test_it_covers_every_file_but_itself_and_what_is_made_from_it(run):
    for name in ("report.html", "receipt.dsse.json", ".lock"):
        (run / name).write_bytes(b"made later")
    (run / "checkpoints" / "report.html").write_bytes(b"not the page")
    covered = cover_files(run)
    found = {p.relative_to(run).as_posix(): p for p in run.rglob("*") if p.is_file()}
    left_out = {"report.html", "receipt.dsse.json", ".lock", "receipt.json"}
    assert covered.keys() == found.keys() - left_out
    assert covered == {name: f"sha256:{sha256(found[name])}" for name in covered}


def test_as_written_it_has_exactly_the_fields_of_its_schema(run):
    statement = read_receipt(run)
    assert check_fields(statement) == list_unknown(statement) == []
    assert seedless.verify(run, validate_only=True).outcome == "consistent"


# Any field, changed by an editor


def test_no_leaf_can_be_changed(run):
    statement = read_statement(run)
    leaves = list(list_leaves(statement))
    assert len(leaves) > 100
    for path in leaves:
        leaf = look_up(statement, path)
        for new in (alter(leaf), pun(leaf)):
            if new is not None:
                write_statement(run, replace(statement, path, new))
                assert refuse(run), path


def test_no_list_can_be_shortened_and_no_field_removed_or_added(run):
    statement = read_statement(run)
    for path in list_leaves(statement):
        write_statement(run, remove(statement, path))
        assert refuse(run), path
    for path in list_mappings(statement):
        write_statement(run, replace(statement, (*path, "added"), "something"))
        assert refuse(run), path
        if path:
            write_statement(run, remove(statement, path))
            assert refuse(run), path


def test_another_spelling_is_a_change(run):
    statement = read_statement(run)
    for text in (json.dumps(statement), json.dumps(statement, indent=2, sort_keys=True)):
        (run / "receipt.json").write_text(text)
        assert "not in canonical form" in refuse(run)
    content = canonical_json(statement)
    for changed in (content, content + b"\n\n", content + b" \n", b"\xef\xbb\xbf" + content):
        (run / "receipt.json").write_bytes(changed)
        assert refuse(run)


NOT_RECEIPTS = {
    "nothing": b"",
    "no JSON": b"receipt",
    "a list": b"[1]\n",
    "a number": b"7\n",
    "null": b"null\n",
    "an empty object": b"{}\n",
    "a predicate that is a list": b'{"predicate":[]}\n',
    "a predicate that is text": b'{"predicate":"schema"}\n',
    "no UTF-8": b"\xff\xfe",
    "very deep": b"[" * 100_000,
    "NaN": b'{"_type":NaN,"predicate":{"schema":"1.0"}}\n',
    "half a character": b'{"_type":"\\ud800","predicate":{"schema":"1.0"}}\n',
    "a long number": b'{"predicate":{"schema":' + b"1" * 5000 + b"}}\n",
}


@pytest.mark.parametrize("content", NOT_RECEIPTS.values(), ids=NOT_RECEIPTS)
def test_what_is_no_receipt_is_invalid_and_no_crash(run, content):
    (run / "receipt.json").write_bytes(content)
    assert "is not a receipt" in refuse(run)


def test_a_folder_in_its_place_is_invalid(run):
    (run / "receipt.json").unlink()
    (run / "receipt.json").mkdir()
    assert "'receipt.json' is a folder" in refuse(run)


@pytest.mark.parametrize("wrong", [None, 7, "text", [], ["a"], {"config.toml": 3}, {"a": None}])
def test_a_list_of_files_that_is_none_is_invalid_and_no_crash(run, wrong):
    statement = read_statement(run)
    seal(run, replace(statement, ("predicate", "files"), wrong), files=False)
    assert "list of files" in refuse(run)


@pytest.mark.parametrize("wrong", [None, 7, "text", [], {}])
def test_any_part_of_another_type_is_invalid_and_no_crash(run, wrong):
    statement = read_statement(run)
    for path in list_mappings(statement):
        if path and path != ("predicate",) and wrong != look_up(statement, path):
            seal(run, replace(statement, path, wrong), files=False)
            assert refuse(run), path


# Versions


@pytest.mark.parametrize("schema", ["3.0", "0.9", "10.0"])
def test_another_major_schema_is_refused_with_advice(run, schema):
    statement = read_statement(run)
    seal(run, replace(statement, ("predicate", "schema"), schema), files=False)
    explanation = refuse(run)
    assert f"has schema {schema}; this version reads 1.x and 2.x" in explanation
    assert "the release that wrote it, or a newer one" in explanation


@pytest.mark.parametrize(
    "schema", ["", "2", "two", "2.", "2.0.0", "2.0\n", "02.x", 2, 2.0, None, ["2.0"]]
)
def test_a_schema_that_is_no_version_is_refused(run, schema):
    statement = read_statement(run)
    seal(run, replace(statement, ("predicate", "schema"), schema), files=False)
    assert "expected a schema such as 2.0, got" in refuse(run)


def test_schema_and_predicate_type_must_agree(run):
    statement = read_statement(run)
    seal(run, replace(statement, ("predicateType",), "urn:seedless:receipt:1"), files=False)
    assert "one of them was changed" in refuse(run)
    seal(run, replace(statement, ("predicate", "schema"), "1.0"), files=False)
    assert "one of them was changed" in refuse(run)


RESERVED = {
    "script": ["train.py", {}, False, 0],
    "callables": [None, {}, ["sha256:0"], False],
    "processes": [None, {}, {"count": 2}, {"count": True}, {"count": 1.0}, {"count": 1, "gpu": 1}],
}


@pytest.mark.parametrize("schema", ["2.0", "2.7"])
def test_a_reserved_field_has_the_one_value_it_can_have(run, schema):
    statement = replace(read_statement(run), ("predicate", "schema"), schema)
    assert {name: statement["predicate"][name] for name in RESERVED} == {
        "script": None,
        "callables": [],
        "processes": {"count": 1},
    }
    for name, values in RESERVED.items():
        for wrong in values:
            seal(run, replace(statement, ("predicate", name), wrong), files=False)
            assert f"as predicate.{name} in receipt.json, got something else" in refuse(run)


def test_a_run_relabelled_as_schema_1_says_so_in_its_first_line(run):
    relabel_as_schema_1(run)
    for verdict in (seedless.verify(run, validate_only=True), seedless.verify(run, **give())):
        assert verdict.ok, verdict.details
        first_line = verdict.as_text().splitlines()[0]
        assert "; schema 1: its receipt does not bind which records are for training" in first_line
    differing = seedless.verify(run, **{**give(), "val": make_arrays(32, 5)})
    (run / "metrics.json").write_text("{}")
    for verdict in (differing, seedless.verify(run, validate_only=True)):
        assert not verdict.ok
        assert "; schema 1: " in verdict.as_text().splitlines()[0]


def test_schema_1_does_not_have_the_fields_of_schema_2(run):
    relabel_as_schema_1(run)
    statement = read_statement(run)
    seal(run, replace(statement, ("predicate", "script"), None), files=False)
    assert "has predicate.script, which schema 1.0 does not have" in refuse(run)


@pytest.mark.parametrize(("field", "wrong"), [("_type", "v0.1"), ("predicateType", "urn:other:1")])
def test_another_kind_of_statement_is_refused(run, field, wrong):
    seal(run, replace(read_statement(run), (field,), wrong), files=False)
    explanation = refuse(run)
    assert "expected a https://in-toto.io/Statement/v1 with predicate urn:seedless" in explanation
    assert wrong in explanation


def test_a_later_minor_schema_may_have_more_and_says_what_was_not_checked(run):
    statement = replace(read_statement(run), ("predicate", "schema"), "2.7")
    seal(run, statement, files=False)
    assert seedless.verify(run, validate_only=True).outcome == "consistent"
    seal(run, replace(statement, ("predicate", "approved_by"), "everyone"), files=False)
    assert seedless.verify(run, validate_only=True).outcome == "consistent"
    verdict = seedless.verify(run, **give())
    assert verdict.outcome == "identical"
    assert "did not check, predicate.approved_by" in " ".join(verdict.details)


def test_this_schema_has_no_more_even_under_a_new_seal(run):
    statement = read_statement(run)
    for path in ((), ("predicate",), ("predicate", "config"), ("predicate", "weights")):
        seal(run, replace(statement, (*path, "approved_by"), "everyone"), files=False)
        name = ".".join((*path, "approved_by"))
        assert f"has {name}, which schema 2.0 does not have" in refuse(run)


# Why there is none


def test_a_missing_receipt_is_an_error_that_says_why(run, tmp_path):
    assert "no run at" in refuse(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    assert "is not a run folder: it has no receipt.json" in refuse(tmp_path / "empty")
    (tmp_path / "file").write_text("text")
    assert "neither a run folder nor a bundle" in refuse(tmp_path / "file")
    seedless.record(tmp_path / "own", torch.nn.Linear(1, 1)).close()
    assert "nothing can verify it" in refuse(tmp_path / "own")
    (run / "receipt.json").unlink()
    assert f"not finished; `seedless resume {run}` finishes it" in refuse(run)
    with pytest.raises(RunError, match="not finished"):
        validate(run)


def test_several_processes_need_their_schema_and_portable_arithmetic(run):
    statement = read_statement(run)
    several = {"count": 2, "backend": "gloo", "devices": ["cpu", "cpu"]}
    seal(run, replace(statement, ("predicate", "processes"), several), files=False)
    assert "as predicate.processes in receipt.json, got something else" in refuse(run)
    labelled = replace(statement, ("predicate", "schema"), "2.3")
    seal(run, labelled, files=False)
    assert "does not state count, backend and devices" in refuse(run)
    seal(run, replace(labelled, ("predicate", "processes"), several), files=False)
    assert "the receipt names several processes, and native arithmetic allows one" in refuse(run)
