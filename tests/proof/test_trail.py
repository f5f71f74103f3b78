"""The trail: a chain nobody can cut unseen, and what a receipt adds where the chain is rebuilt."""

import hashlib
import json

import pytest
import torch

from seedless.core.errors import RunError
from seedless.proof.trail import (
    GENESIS,
    chain,
    compare_trails,
    digest_each,
    read_trail,
)
from seedless.runs.validation import validate
from tests.forgery import forge, read_entries, read_statement, rechain, seal, write_entries
from tests.tiny import copy_run, fit_run, flags_restored


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    with flags_restored():
        return fit_run(tmp_path_factory.mktemp("trail") / "run")


@pytest.fixture
def run(finished, tmp_path):
    with flags_restored():
        yield copy_run(finished, tmp_path / "run")


def plain_digest(value):
    """The digest of a plain value, by the standard library alone."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


# The chain


def test_every_line_is_hashed_with_the_one_before(run):
    previous = "sha256:" + 64 * "0"
    lines = (run / "trail.jsonl").read_bytes().splitlines()
    assert len(lines) == 4
    for line in lines:
        entry = json.loads(line)
        claimed = entry.pop("digest")
        assert entry["previous"] == previous
        assert claimed == plain_digest(entry)
        previous = claimed
    assert read_statement(run)["predicate"]["trail"] == {"head": previous, "entries": 4}


def test_a_lines_state_is_the_sha256_of_every_tensor(run):
    tensors = {"model/w": torch.tensor([[1.0, -2.0]]), "optimizer/step/w": torch.tensor(3)}
    header = b'{"dtype":"float32","name":"model/w","shape":[1,2]}\n'
    content = header + bytes.fromhex("0000803f000000c0")
    found = digest_each(tensors)
    assert found["model/w"] == hashlib.sha256(content).hexdigest()
    assert found["model/w"] != digest_each({"model/v": tensors["model/w"]})["model/v"]
    recorded = read_trail(run)[3]["state"]
    kinds = {name.rpartition("/")[0] for name in recorded}
    assert kinds == {"model", "optimizer/exp_avg", "optimizer/exp_avg_sq", "optimizer/step"}
    assert {"model/0.weight", "model/1.running_var", "optimizer/exp_avg/4.bias"} <= {*recorded}


def test_line_0_says_what_the_run_began_with(run):
    begun, claims = read_trail(run)[0], read_statement(run)["predicate"]
    assert (begun["kind"], begun["epoch"], begun["step"]) == ("start", 0, 0)
    assert begun["schema"] == "seedless.trail/1"
    for fact in ("settings", "source", "environment", "data", "initialization", "model"):
        assert begun[fact] == claims[fact]
    assert [entry["step"] for entry in read_trail(run)] == [0, 4, 8, 12]


@pytest.mark.parametrize("cut", [1, 10, 200])
def test_a_torn_last_line_is_refused_or_dropped(run, cut):
    file = run / "trail.jsonl"
    whole = read_trail(run)
    file.write_bytes(file.read_bytes()[:-cut])
    with pytest.raises(RunError, match="line 4 is incomplete"):
        read_trail(run)
    assert read_trail(run, allow_incomplete=True) == whole[:3]


def test_torn_allows_nothing_but_the_last_line(run):
    lines = (run / "trail.jsonl").read_bytes().splitlines(keepends=True)
    (run / "trail.jsonl").write_bytes(b"".join([lines[0], lines[1][:-20] + b"\n", *lines[2:]]))
    with pytest.raises(RunError, match="line 2 is not valid JSON"):
        read_trail(run, allow_incomplete=True)


SPELLINGS = {
    "white space": lambda line: line.replace(b'":', b'": ', 1),
    "key order": lambda line: json.dumps(dict(reversed(json.loads(line).items()))).encode(),
    "escapes": lambda line: line.replace(b'"kind"', b'"\\u006bind"'),
    "carriage return": lambda line: line + b"\r",
    "a key twice": lambda line: line.replace(b"{", b'{"epoch":7,', 1),
    "exponents": lambda line: line.replace(b'"epoch":2', b'"epoch":2e0'),
    "byte order mark": lambda line: b"\xef\xbb\xbf" + line,
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_other_spellings_of_a_line_are_changes(run, spelling):
    lines = (run / "trail.jsonl").read_bytes().splitlines()
    changed = SPELLINGS[spelling](lines[2])
    assert changed != lines[2]
    (run / "trail.jsonl").write_bytes(b"\n".join([*lines[:2], changed, lines[3], b""]))
    with pytest.raises(RunError, match="line 3 "):
        read_trail(run)


NOT_ENTRIES = {
    "nothing": b"",
    "no JSON": b"digest",
    "a list": b"[1]",
    "a number": b"7",
    "no digest": b'{"kind":"epoch"}',
    "no UTF-8": b"\xff\xfe{}",
    "very deep": b"[" * 100_000,
    "no state": b'{"digest":"x","previous":"x","schema":"seedless.trail/1"}',
    "a state that is none": b'{"digest":"x","previous":"x","schema":"seedless.trail/1","state":1}',
    "half a character": b'{"digest":"x","name":"\\ud800","previous":"x"}',
    "no number": b'{"digest":"x","loss":NaN,"previous":"x"}',
}


@pytest.mark.parametrize("line", NOT_ENTRIES.values(), ids=NOT_ENTRIES)
@pytest.mark.parametrize("number", [1, 3])
def test_what_is_no_entry_is_refused_by_its_line(run, line, number):
    lines = (run / "trail.jsonl").read_bytes().splitlines()
    lines[number - 1] = line
    (run / "trail.jsonl").write_bytes(b"\n".join([*lines, b""]))
    with pytest.raises(RunError, match=f"line {number} is (not an entry|not valid JSON|nested)"):
        read_trail(run)


def test_another_schema_is_refused(run):
    entries = read_entries(run)
    rechain(run, [{**entries[0], "schema": "seedless.trail/2"}, *entries[1:]])
    with pytest.raises(RunError, match=r"schema seedless.trail/2; this version reads .*trail/1"):
        read_trail(run)


@pytest.mark.parametrize("place", [0, 1, 2, 3])
@pytest.mark.parametrize("field", ["epoch", "step", "loss", "previous", "digest"])
def test_a_changed_entry_is_refused_by_its_line(run, place, field):
    entries = read_entries(run)
    entries[place][field] = 9 if field in ("epoch", "step", "loss") else GENESIS[:-1] + "1"
    write_entries(run, entries)
    with pytest.raises(RunError, match=f"line {place + 1} does not match its own digest"):
        read_trail(run)


def test_one_changed_tensor_is_refused_by_its_line(run):
    entries = read_entries(run)
    entries[2]["state"]["model/0.weight"] = 64 * "0"
    write_entries(run, entries)
    with pytest.raises(RunError, match="line 3 does not match its own digest; it was changed"):
        read_trail(run)


OWN = {"kind": "epoch", "epoch": 7, "state": {}}
MOVES = {
    "removed at the start": (lambda e: e[1:], 1),
    "removed within": (lambda e: [*e[:1], *e[2:]], 2),
    "swapped": (lambda e: [e[0], e[2], e[1], e[3]], 2),
    "swapped at the end": (lambda e: [*e[:2], e[3], e[2]], 3),
    "duplicated": (lambda e: [*e[:3], e[2], e[3]], 4),
    "duplicated at the end": (lambda e: [*e, e[3]], 5),
    "inserted": (lambda e: [*e[:2], chain(OWN, e[1]["digest"]), *e[2:]], 4),
    "inserted from elsewhere": (lambda e: [*e[:2], chain(OWN, GENESIS), *e[2:]], 3),
    "begun twice": (lambda e: [e[0], *e], 2),
}


@pytest.mark.parametrize("move", MOVES)
def test_removed_swapped_duplicated_or_inserted_entries_are_refused(run, move):
    change, line = MOVES[move]
    entries = read_entries(run)
    write_entries(run, change(entries))
    with pytest.raises(RunError, match=f"line {line} "):
        read_trail(run)


def test_a_cut_at_the_end_leaves_a_chain_and_only_the_receipt_tells(run):
    entries = read_entries(run)
    write_entries(run, entries[:-1])
    assert read_trail(run) == entries[:-1]
    seal(run)
    problems = " ".join(validate(run).problems)
    assert "expected a trail of epochs 0 to 3, found 3 entries" in problems
    assert "last digest is not the head that the receipt names" in problems


# The chain rebuilt by someone who knows how


@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_a_dropped_entry_is_missed_after_the_chain_is_rebuilt(run, place):
    entries = read_entries(run)
    kept = [*entries[:place], *entries[place + 1 :]]
    rechain(run, kept)
    seal(run)
    assert validate(run).problems
    if place > 0:
        assert any("head" in problem for problem in validate(run).problems)
        forge(run, kept)  # now with the head, and all that follows from the trail
        assert any("epochs 0 to 3" in problem for problem in validate(run).problems)


def test_a_dropped_entry_is_missed_after_the_epochs_are_counted_anew(run):
    entries = read_entries(run)
    renumbered = [*entries[:2], {**entries[3], "epoch": 2}]
    forge(run, renumbered)
    assert any("epochs 0 to 3" in problem for problem in validate(run).problems)


ALTERED = {
    "a tensor of the weights": (1, ("state", "model/0.weight"), "weights"),
    "a tensor of a checkpoint": (2, ("state", "optimizer/exp_avg/0.weight"), "epoch-0002"),
    "a loss": (2, ("loss",), "log.jsonl"),
    "a score": (2, ("score",), "best recorded score"),
    "steps": (3, ("step",), "log.jsonl"),
    "the kind of a line": (1, ("kind",), "line 2 of the trail"),
    "the first step": (0, ("step",), "does not have step 0"),
}


@pytest.mark.parametrize("what", ALTERED)
def test_an_altered_entry_contradicts_the_other_files(run, what):
    place, path, complaint = ALTERED[what]
    entries = read_entries(run)
    if what == "a tensor of the weights":
        place = read_statement(run)["predicate"]["weights"]["epoch"]
    target = entries[place]
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = {"loss": 0.5, "score": 1.0, "step": 99, "kind": "step"}.get(path[-1], "0")
    forge(run, entries)
    assert read_trail(run)
    assert any(complaint in problem for problem in validate(run).problems)


# Where two trails part


def test_the_first_difference_names_place_and_tensor():
    def entry(**values):
        return {"state": {"model/w": "a", "model/b": "b"}, "loss": 1.0, "step": 1, **values}

    trail = [entry(), entry(), entry()]
    assert compare_trails(trail, trail) is None
    other = [entry(), entry(state={"model/w": "a", "model/b": "c"}, loss=2.0), entry(score=1)]
    assert compare_trails(trail, other) == (1, ["model/b", "loss"])
    assert compare_trails(other, trail) == (1, ["model/b", "loss"])
    assert compare_trails(trail, trail[:2]) == (2, ["length"])
    alone = [entry(state={"model/w": "a"})]
    assert compare_trails(trail, alone) == compare_trails(alone, trail) == (0, ["model/b"])


# Limits


def test_a_run_whose_trail_could_not_be_read_again_is_refused_before_it_trains(tmp_path):
    with flags_restored(), pytest.raises(RunError, match="train fewer epochs"):
        fit_run(tmp_path / "run", train={"epochs": 200_000})
    assert not (tmp_path / "run" / "trail.jsonl").exists()


def test_a_trail_is_read_up_to_its_limit(run, monkeypatch):
    values = sum(
        line.count(b",") + line.count(b"{") + line.count(b"[") + 1
        for line in (run / "trail.jsonl").read_bytes().splitlines()
    )
    monkeypatch.setattr("seedless.proof.trail.MAX_TRAIL_VALUES", values)
    assert len(read_trail(run)) == 4
    monkeypatch.setattr("seedless.proof.trail.MAX_TRAIL_VALUES", values - 1)
    with pytest.raises(RunError, match="values up to line 4"):
        read_trail(run)
