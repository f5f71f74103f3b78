"""Two parties with different trails of one run: the referee finds who is right, or that nobody is.

benchmarks/referee.py does the same for a hundred faults; here is one of each way to be settled.
"""

import dataclasses
import json
import sys
from pathlib import Path

import pytest

from benchmarks import faulty_party
from benchmarks.faulty_party import (
    ENTRY,
    Fault,
    answer_with,
    make_faulty_run,
    make_preparer,
)
from seedless.audit.dispute.op_call import describe_tensor, read_tensor
from seedless.audit.dispute.party import LocalParty
from seedless.audit.dispute.party_process import PartyError
from seedless.audit.dispute.referee import check_pair, referee, settle_pair
from seedless.cli.main import main
from seedless.core.errors import ConfigError, RunError
from seedless.runs.validation import validate
from tests.forgery import (
    forge,
    forge_predictions,
    read_entries,
    replace,
    rewrite_checkpoint,
    strip_run,
)
from tests.tiny import copy_run, fit_run, flags_restored

HONEST = Fault("none", 0)


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    """Return a function that makes the run of a fault, once each."""
    folder, made = tmp_path_factory.mktemp("referee"), {}

    def make_once(fault=HONEST):
        if fault not in made:
            with flags_restored():
                made[fault] = make_faulty_run(fault, folder / str(len(made)))
        return made[fault]

    return make_once


@pytest.fixture(autouse=True)
def _leave_no_flags():
    with flags_restored():
        yield


class Liar(LocalParty):
    """A party that answers some requests with something else than it executed."""

    def __init__(self, run, **lies):
        super().__init__(run)
        self.lies = lies

    def ask(self, request, max_bytes=0):
        answer = super().ask(request, 2**30)
        return self.lies.get(request["ask"], lambda _request, right: right)(request, answer)


def settle(make, a, b, a_party=None, b_party=None):
    """Let a referee judge between the parties of two faults."""
    runs = [validate(make(fault)) for fault in (a, b)]
    assert [run.problems for run in runs] == [(), ()]
    assert check_pair(*runs) is None
    made = [LocalParty(answer_with(make(fault), fault)) for fault in (a, b)]
    return settle_pair(runs, [a_party or made[0], b_party or made[1]], make_preparer(HONEST))


# One party is wrong

CASES = [
    (Fault("operation", 6, 324), "one operation", {"step": 6, "op": "aten.relu.default"}),
    (Fault("operation", 7, 63), "one operation", {"step": 7, "op": "aten._fused_adam_.tensor_lr"}),
    (Fault("operation", 8, 13), "one operation", {"step": 8, "op": "aten.neg.default"}),
    (Fault("gradient", 3, 5), "one step", {"epoch": 1, "step": 3, "kind": "source"}),
    (Fault("learning rate", 5, 3), "one step", {"step": 5, "names": ["optimizer/rate"]}),
    (Fault("weight decay", 11, 0), "one step", {"epoch": 3, "step": 11, "kind": "setting"}),
    (Fault("swapped sample", 9, 107), "one step", {"step": 9, "names": ["batch/rows"]}),
    (Fault("weight after the step", 2, 4), "one step", {"epoch": 1, "step": 2}),
    (Fault("first weight", 0, 3), "the start", {"epoch": 0}),
    (Fault("score", 7, 0), "one epoch", {"epoch": 2, "names": ["score"]}),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_a_fault_is_found_where_it_is_and_the_other_party_is_right(make, case):
    fault, settled_by, place = CASES[case]
    if case % 2:
        ruling, right = settle(make, HONEST, fault), "A"
    else:
        ruling, right = settle(make, fault, HONEST), "B"
    assert (ruling.outcome, ruling.code) == (f"{right} is right", 10 + (right == "B"))
    assert ruling.settled_by == settled_by
    assert {key: ruling.place[key] for key in place} == place
    assert f"it is as {right} states, and not as " in ruling.sentence


def test_what_one_operation_takes_is_little(make):
    """Digests, and the inputs of one operation: not the weights, and not the data."""
    ruling = settle(make, HONEST, CASES[0][0])
    assert ruling.settled_by == "one operation"
    assert all(0 < ruling.exchanged[name] < 60_000 for name in ("a", "b"))
    assert ruling.exchanged["trail"] == 2 * 2 * 71  # four entries: two halvings


# Both, or neither


def test_two_runs_that_agree_are_no_dispute(make):
    ruling = settle(make, HONEST, HONEST)
    assert (ruling.outcome, ruling.code, ruling.place) == ("no dispute", 0, {})
    assert ruling.exchanged["a"] == ruling.exchanged["b"] == 0  # nobody was asked


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (Fault("operation", 6, 324), Fault("operation", 6, 420)),
        (Fault("learning rate", 5, 3), Fault("learning rate", 5, 4)),
        (Fault("first weight", 0, 3), Fault("first weight", 0, 9)),
    ],
)
def test_two_faults_in_one_place_leave_neither_right(make, a, b):
    ruling = settle(make, a, b)
    assert (ruling.outcome, ruling.code) == ("neither is right", 12)


def test_of_two_faults_the_first_is_judged(make):
    ruling = settle(make, Fault("weight", 8, 1), Fault("gradient", 3, 5))
    assert (ruling.outcome, ruling.place["step"]) == ("A is right", 3)


# Parties that lie about what they did


def lie_about_operations(make, fault):
    """Return a faulty party that shows the operations of an honest one."""
    honest = LocalParty(answer_with(make(), HONEST))
    return Liar(
        answer_with(make(fault), fault),
        operations=lambda request, right: honest.ask(request),
        operation=lambda request, right: honest.ask(request),
    )


def clear_tensor(request, right):
    """Return the arguments of an operation, the first tensor of them with zeros for elements."""
    first = next(value for value in right["arguments"] if isinstance(value, dict))
    tensor = read_tensor(first["tensor"])
    first["tensor"] = describe_tensor(tensor.zero_())
    return right


def test_operations_of_an_honest_run_do_not_excuse_the_state_after_them(make):
    fault = Fault("gradient", 3, 5)
    ruling = settle(make, HONEST, fault, b_party=lie_about_operations(make, fault))
    assert (ruling.outcome, ruling.settled_by) == ("A is right", "one step")
    assert "the operations agree" in ruling.sentence


def test_false_inputs_of_an_operation_are_not_used(make):
    fault = CASES[0][0]
    liar = Liar(answer_with(make(fault), fault), inputs=clear_tensor)
    ruling = settle(make, fault, HONEST, a_party=liar)
    assert (ruling.outcome, ruling.settled_by) == ("B is right", "one operation")


def test_without_agreed_inputs_the_step_is_executed(make):
    fault = CASES[0][0]
    liars = [Liar(answer_with(make(f), f), inputs=clear_tensor) for f in (fault, HONEST)]
    ruling = settle(make, fault, HONEST, *liars)
    assert (ruling.outcome, ruling.settled_by) == ("B is right", "one step")


def test_a_false_state_is_not_used(make):
    fault = Fault("gradient", 10, 5)
    runs = [answer_with(make(f), f) for f in (fault, HONEST)]
    liar = Liar(
        runs[0], state=lambda request, right: {**right, "model/0.bias": right["model/1.bias"]}
    )
    ruling = settle(make, fault, HONEST, a_party=liar)
    assert (ruling.outcome, ruling.settled_by) == ("B is right", "one step")


@pytest.mark.parametrize(
    ("lies", "reason"),
    [
        (
            {"steps": lambda request, right: [*right[:-1], "sha256:" + 64 * "a"]},
            "the record of step 4 does not have the digest it gave before",
        ),
        ({"steps": lambda request, right: right[1:]}, "expected 4 digests of steps"),
        ({"record": lambda request, right: {**right, "rate": 1}}, "does not have the digest"),
        ({"record": lambda request, right: [["state"]]}, "does not have the digest"),
        ({"operations": lambda request, right: [1, 2]}, "expected digests of the operations"),
        ({"operation": lambda request, right: {"op": "\x1b[2J"}}, "expected the record of an op"),
        ({"operation": lambda request, right: {**right, "phase": "forward "}}, "does not have the"),
    ],
)
def test_a_party_that_contradicts_itself_is_judged_by_its_trail(make, lies, reason):
    fault = Fault("gradient", 3, 5)
    liar = Liar(answer_with(make(fault), fault), **lies)
    ruling = settle(make, HONEST, fault, b_party=liar)
    assert (ruling.outcome, ruling.settled_by) == ("A is right", "one epoch")
    assert ruling.details[0].startswith("B: ")
    assert reason in ruling.details[0]


def test_a_right_trail_is_right_whoever_answers_for_it(make):
    liar = Liar(answer_with(make(), HONEST), steps=lambda request, right: [])
    ruling = settle(make, Fault("gradient", 3, 5), HONEST, b_party=liar)
    assert (ruling.outcome, ruling.settled_by) == ("B is right", "one epoch")


def test_an_honest_execution_does_not_lead_to_a_faulty_trail(make):
    fault = Fault("gradient", 3, 5)
    honest = LocalParty(answer_with(make(fault), HONEST))
    ruling = settle(make, HONEST, fault, b_party=honest)
    assert (ruling.outcome, ruling.settled_by) == ("A is right", "one epoch")
    assert ruling.details == ("B: the steps do not lead to the state that its own trail has",)


def test_a_party_that_does_not_answer_is_judged_by_its_trail(make):
    class Mute:
        exchanged = 0

        def ask(self, request, max_bytes=0):
            raise PartyError("it ended without an answer")

    ruling = settle(make, Fault("gradient", 3, 5), HONEST, Mute(), Mute())
    assert (ruling.outcome, ruling.settled_by) == ("B is right", "one epoch")


# Folders alone


def test_two_folders_are_settled_by_one_epoch(make):
    ruling = referee(make(), make(Fault("gradient", 3, 5)), entry=ENTRY)
    assert (ruling.outcome, ruling.settled_by) == ("A is right", "one epoch")
    assert ruling.place["epoch"] == 1
    assert ruling.exchanged["a"] == 0


def test_results_of_one_trail_are_settled_by_computing_them(make, tmp_path):
    run = copy_run(make(), tmp_path / "run")
    forge_predictions(run, "validation", lambda values: values * (1 - 2**-40))  # ranks stay
    ruling = referee(run, make(), entry=ENTRY)
    assert (ruling.outcome, ruling.settled_by) == ("B is right", "the scores")


def test_a_checkpoint_that_is_changed_after_the_validation_is_not_used(make, tmp_path):
    run = copy_run(make(), tmp_path / "run")
    opened = validate(run)

    def change(meta, tensors):
        tensors["model/0.bias"] += 1

    rewrite_checkpoint(run / "checkpoints" / "epoch-0001.safetensors", change)
    other = validate(make(Fault("gradient", 6, 5)))
    with pytest.raises(RunError, match=r"epoch-0001\.safetensors was changed"):
        settle_pair([opened, other], [None, None], make_preparer(HONEST))


# What cannot be judged


def test_a_folder_that_does_not_validate_is_2(make, tmp_path):
    run = copy_run(make(), tmp_path / "run")
    (run / "metrics.json").write_text("{}")
    ruling = referee(make(), run, entry=ENTRY)
    assert (ruling.outcome, ruling.code) == ("invalid", 2)
    assert "metrics.json was changed" in ruling.sentence
    assert referee(make(), tmp_path / "nowhere", entry=ENTRY).code == 2


def test_runs_of_different_configurations_are_2(make, tmp_path):
    other = fit_run(tmp_path / "other", execution={"arithmetic": "portable"})
    ruling = referee(make(), other, entry=ENTRY)
    assert (ruling.outcome, ruling.code) == ("invalid", 2)
    assert "different configurations" in ruling.sentence


def test_receipts_of_different_schemas_are_2(make):
    run = validate(make())
    older = dataclasses.replace(run, receipt={"predicate": {**run.claims, "schema": "1.0"}})
    assert check_pair(run, older).code == 2


def test_native_arithmetic_cannot_be_judged(tmp_path):
    run = fit_run(tmp_path / "native")
    ruling = referee(run, run, entry="tests.tiny:give")
    assert (ruling.outcome, ruling.code) == ("cannot judge", 3)
    assert "native arithmetic" in ruling.sentence


def test_other_versions_cannot_be_judged_where_there_is_a_dispute(make, tmp_path):
    older = copy_run(make(Fault("gradient", 3, 5)), tmp_path / "older")
    forge(older, replace(read_entries(older), (0, "environment", "packages", "torch"), "1.0"))
    ruling = referee(make(), older, entry=ENTRY)
    assert (ruling.outcome, ruling.code) == ("cannot judge", 3)
    assert ruling.details[0].startswith("B: packages.torch: 1.0 there, ")
    same = copy_run(make(), tmp_path / "same")
    forge(same, replace(read_entries(same), (0, "environment", "packages", "torch"), "1.0"))
    assert referee(make(), same, entry=ENTRY).outcome == "no dispute"


def test_a_stripped_run_cannot_be_judged(make, tmp_path):
    run = copy_run(make(), tmp_path / "run")
    strip_run(run, weights=True)
    assert referee(make(), run, entry=ENTRY).outcome == "cannot judge"


def test_a_run_of_fit_needs_its_entry(make):
    with pytest.raises(ConfigError, match=r"is a run of fit\(\): use --entry package\.module:func"):
        referee(make(), make())


# The command


def test_the_command_asks_processes_and_ends_with_the_code_of_the_ruling(make, capsys, monkeypatch):
    fault = CASES[0][0]
    a, b = make(), make(fault)
    python = f"{sys.executable} -P -m"
    commands = (
        f"{python} seedless referee --answer {a} --entry {ENTRY}",
        f"{python} benchmarks.faulty_party {b} '{json.dumps(vars(fault))}'",
    )
    line = ["referee", str(a), str(b), "--entry", ENTRY, "--json"]
    options = ["--a-command", commands[0], "--b-command", commands[1]]
    monkeypatch.setattr(sys, "argv", ["seedless", *line, *options])
    monkeypatch.setenv("PYTHONPATH", str(Path(faulty_party.__file__).parents[1]))
    with pytest.raises(SystemExit) as ended:
        main()
    found = json.loads(capsys.readouterr().out)
    assert (ended.value.code, found["code"], found["outcome"]) == (10, 10, "A is right")
    assert found["settled_by"] == "one operation"
    assert found["place"]["step"] == 6
    assert found["exchanged"]["b"] > 10_000


@pytest.mark.parametrize("command", ["", "echo 'one"])
def test_a_command_that_is_none_is_refused(make, command):
    with pytest.raises(ConfigError, match="expected a command, got"):
        referee(make(), make(), entry=ENTRY, b_command=command)


@pytest.mark.parametrize("line", [("referee", "a"), ("referee", "a", "b", "--answer")])
def test_a_command_with_another_number_of_runs_is_2(line, capsys, monkeypatch, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["seedless", *line])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "expected `seedless referee A" in capsys.readouterr().err


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf"), 1e300])
def test_seconds_that_no_clock_can_wait_are_refused(tmp_path, seconds):
    with pytest.raises(ConfigError, match=r"at most 1,000,000 seconds"):
        referee(tmp_path / "a", tmp_path / "b", seconds=seconds)
