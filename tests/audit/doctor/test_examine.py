"""The whole procedure, with a command that only writes records."""

import json

import pytest

from seedless.audit.doctor import pair as pairs
from seedless.audit.doctor.examine import examine
from seedless.audit.doctor.op_pass import MAX_PAIRS
from seedless.audit.doctor.pair import Runner
from seedless.cli.doctor import describe
from seedless.core.errors import RunError
from tests.audit.doctor.records import (
    Script,
    make_end,
    make_process,
    make_step,
    write_process,
    write_steps,
)

DRAW = {
    "phase": "",
    "module": "",
    "op": "aten.uniform_.default",
    "inputs": [],
    "sources": [],
    "settings": [],
    "shapes": [[2]],
    "note": "",
    "line": "train.py:12",
    "draws": "torch",
}


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Examine a script; return the answer and what the script was called with."""

    def run(write, runs=2, **options):
        script = Script(write)
        monkeypatch.setattr(pairs, "execute", script.execute)
        found = examine(Runner(["python", "train.py"], tmp_path / "runs", **options), runs)
        return found.diagnosis, script.calls

    return run


def write_ops(records, step, *ops):
    text = "".join(json.dumps(op) + "\n" for op in ops)
    (records / f"ops-0-100-{step}.jsonl").write_text(text)


def test_equal_runs_are_identical_after_two_runs(run):
    found, calls = run(lambda records, *_: write_steps(records, make_step(1), make_step(2)))
    assert (found.identical, found.steps) == (True, 2)
    assert len(calls) == 2


def test_an_evaluation_of_other_samples_that_changes_nothing_is_no_difference(run):
    def write(records, number, settings, variables):
        seen = {"input": f"run {number}", "output": f"run {number}"}
        write_steps(records, make_step(1), make_step(2, **seen), make_step(3))

    found, calls = run(write)
    assert (found.identical, len(calls)) == (True, 2)
    (sentence,) = found.evidence
    assert "at step 2 input, output differ" in sentence
    assert (found.step, found.what) == (2, "input")
    text = describe(found, 200)
    assert "IDENTICAL: every loss, gradient and weight recorded in 3 steps agrees" in text
    assert sentence in text


def test_an_evaluation_that_changes_a_later_step_is_a_difference(run):
    def write(records, number, settings, variables):
        seen = {"input": f"run {number}", "output": f"run {number}"}
        write_steps(records, make_step(1, **seen), make_step(2), make_step(3, rate=f"{number}"))

    found, _ = run(write)
    assert (found.identical, found.step, found.what) == (False, 1, "input")


def write_unseeded(records, number, settings, variables):
    """Weights that differ from run to run unless torch is seeded."""
    value = "same" if "torch" in settings.seeds else f"run {number}"
    write_steps(records, make_step(1, weights_before=value), make_step(2))
    if settings.ops_at:
        write_ops(records, settings.ops_at, {**DRAW, "outputs": [value]})


def test_unseeded_weights_are_certain_after_an_experiment(run):
    found, calls = run(write_unseeded)
    assert found.identical is False
    assert (found.step, found.what) == (1, "initial weights")
    assert (found.cause, found.confidence) == ("unseeded-weights", "certain")
    assert (found.op, found.line) == ("aten.uniform_.default", "train.py:12")
    assert "torch.manual_seed(0) before train.py:12" in found.remedy
    assert [one["name"] for one in found.experiments] == ["seed-torch"]
    assert [settings.ops_at for settings, _ in calls] == [None, None, 1, 1, None, None]
    assert [settings.end_after for settings, _ in calls] == [None, None, 1, 1, 2, 2]


def test_an_experiment_that_changes_nothing_confirms_nothing(run):
    def write(records, number, settings, variables):
        write_unseeded(records, number, pairs.Settings("", ops_at=settings.ops_at), variables)

    found, _ = run(write)
    assert (found.cause, found.confidence) == ("unseeded-weights", "likely")
    assert not any(one["removed"] for one in found.experiments)


def test_a_difference_that_hash_seeds_remove_is_hash_order(run):
    def write(records, number, settings, variables):
        value = "same" if variables.get("PYTHONHASHSEED") == "0" else f"run {number}"
        write_steps(records, make_step(1), make_step(2, input=value, loss=value))

    found, _ = run(write)
    assert (found.cause, found.confidence, found.step) == ("hash-order", "certain", 2)


def test_a_difference_that_nothing_explains_is_unknown(run):
    def write(records, number, settings, variables):
        write_steps(records, make_step(1, loss=f"run {number}"))

    found, _ = run(write)
    assert (found.identical, found.cause, found.confidence) == (False, "unknown", "possible")
    assert len(found.experiments) == 3


def test_weights_that_agree_are_no_weights_in_another_order(run):
    def write(records, number, settings, variables):
        write_steps(records, make_step(1, loss=f"run {number}"))
        if settings.ops_at:
            tensors = json.dumps({"weights_before": {"fc.weight": "w"}})
            (records / "tensors-0-100-1.json").write_text(tensors)

    assert len(run(write)[0].experiments) == 3


def test_a_difference_that_does_not_come_again_is_intermittent(run):
    found, calls = run(write_once(2))
    assert found.identical is False
    assert found.intermittent
    assert found.confidence == "possible"
    assert found.experiments == (), "an experiment shows nothing where the difference is rare"
    assert any("did not differ" in sentence for sentence in found.evidence)
    assert len(calls) == 2 + 2 * MAX_PAIRS


def test_operations_that_cannot_be_recorded_are_no_intermittent_difference(run):
    def write(records, number, settings, variables):
        if settings.ops_at:
            error = {"kind": "error", "where": "start", "error": "ModuleNotFoundError: gone"}
            write_process(records, [make_process(), error])
        else:
            write_unseeded(records, number, settings, variables)

    found, _ = run(write)
    assert not found.intermittent
    assert any("ModuleNotFoundError: gone" in sentence for sentence in found.evidence)


def test_a_file_that_changed_once_is_the_cause_though_it_does_not_change_again(run):
    def write(records, number, settings, variables):
        content = "old" if number == 1 else "new"
        read = [{"path": "data.csv", "size": 3, "sha256": content, "line": "train.py:3"}]
        files = {"kind": "files", "read": read, "written": []}
        write_steps(records, make_step(1, batch=content, loss=content), lines=[files])

    found, _ = run(write)
    assert (found.cause, found.line, found.confidence) == ("data-changed", "train.py:3", "likely")


def test_the_step_is_that_of_the_recorded_pair(run):
    """The pair whose operations are recorded differs earlier than the first pair did."""

    def write(records, number, settings, variables):
        early, late = (number > 2) * f"run {number}", f"run {number}"
        write_steps(records, make_step(1, loss=early), make_step(2, loss=late))

    found, calls = run(write)
    assert found.step == 1
    assert [settings.ops_at for settings, _ in calls][:6] == [None, None, 2, 2, 1, 1]


def write_once(different):
    """A script of which one run alone differs."""

    def write(records, number, settings, variables):
        write_steps(records, make_step(1, loss=f"{number == different}"))

    return write


@pytest.mark.parametrize(("runs", "identical"), [(2, True), (3, True), (4, False)])
def test_every_run_is_compared_with_the_first(run, runs, identical):
    assert run(write_once(4), runs=runs)[0].identical is identical


def test_a_difference_that_an_experiment_misses_by_chance_is_not_explained_by_it(run):
    """It comes in all runs but two, which are by chance those with PYTHONHASHSEED=0."""

    def write(records, number, settings, variables):
        write_steps(records, make_step(1, loss=f"{0 if number in (5, 6) else number}"))

    found, _ = run(write)
    assert found.cause == "unknown"


def test_varied_variables_are_the_cause_if_a_control_agrees(run):
    def write(records, number, settings, variables):
        write_steps(records, make_step(1, loss=variables["OMP_NUM_THREADS"]))

    found, calls = run(write, varied={"OMP_NUM_THREADS": ("1", "2")})
    assert found.cause == "threads"
    assert [one["OMP_NUM_THREADS"] for _, one in calls][:3] == ["1", "2", "1"]


def test_varied_variables_are_not_blamed_for_another_difference(run):
    found, _ = run(write_unseeded, varied={"OMP_NUM_THREADS": ("1", "2")})
    assert found.cause == "unseeded-weights"
    assert any("nothing was varied" in sentence for sentence in found.evidence)


INDEX_PUT = {**DRAW, "op": "aten.index_put_.default", "draws": "", "device": "cuda:0"}


def write_nondeterministic(warning=None):
    """Gradients that differ, from an operation that the switch makes deterministic, or warns of."""

    def write(records, number, settings, variables):
        is_fixed = settings.deterministic and warning is None
        value = "same" if is_fixed else f"run {number}"
        write_steps(records, make_step(1, gradients=value), make_step(2))
        if settings.ops_at:
            write_ops(records, settings.ops_at, {**INDEX_PUT, "outputs": [value]})
        if settings.deterministic and warning:
            (records.parent / "stderr.txt").write_text(f"train.py:3: UserWarning: {warning}\n")

    return write


def test_an_operation_that_the_switch_makes_deterministic_is_certain(run):
    found, calls = run(write_nondeterministic())
    assert (found.cause, found.confidence) == ("nondeterministic-op", "certain")
    assert [one["name"] for one in found.experiments] == ["deterministic"]
    assert calls[-1][1]["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"


@pytest.mark.parametrize(
    ("op", "confidence"), [("index_put_with_sort_kernel", "certain"), ("cumsum", "likely")]
)
def test_an_operation_that_torch_warns_of_is_certain(run, op, confidence):
    warning = f"{op} does not have a deterministic implementation, but you set ..."
    found, _ = run(write_nondeterministic(warning))
    assert (found.cause, found.confidence) == ("nondeterministic-op", confidence)
    assert not found.experiments[0]["removed"]


def test_behind_a_draw_without_effect_the_cause_is_found(run):
    """A thread draws how long it sleeps; what differs is the order in which threads write."""
    read = {**DRAW, "op": "aten.add.Tensor", "draws": "", "sources": [""], "line": "train.py:20"}

    def write(records, number, settings, variables):
        write_steps(records, make_step(1, input=f"run {number}", loss=f"run {number}"))
        if settings.ops_at:
            drawn = "same" if "python" in settings.seeds else f"run {number}"
            draw = {"kind": "draw", "generator": "python", "call": "random.random"}
            write_ops(
                records,
                1,
                {"kind": "thread", "line": "train.py:11"},
                {**draw, "line": "train.py:8", "value": drawn},
                {**read, "inputs": [f"run {number}"], "outputs": [f"run {number}"]},
            )

    found, _ = run(write)
    assert (found.cause, found.line) == ("thread-order", "train.py:11")
    assert any("generators seeded, the runs still differ" in one for one in found.evidence)


def test_no_step_is_an_error_that_says_why(run):
    with pytest.raises(RunError, match="no process imported torch"):
        run(lambda records, *_: None)
    with pytest.raises(RunError, match=r"exit code 1.*\nthe last line"):
        run(lambda records, *_: 1)
    with pytest.raises(RunError, match="no optimizer made a step"):
        run(lambda records, *_: write_steps(records))


def test_a_run_that_failed_before_the_other_cannot_be_told(run):
    def write(records, number, settings, variables):
        steps = [make_step(1), make_step(2)][: 3 - number]
        end = make_end(1, "exception", "RuntimeError: gone") if number == 2 else None
        write_steps(records, *steps, end=end)
        return int(number == 2)

    found, _ = run(write)
    assert found.identical is None
    assert "failed after step 1 (RuntimeError: gone)" in found.reason


def test_runs_of_different_length_that_both_ended_well_differ(run):
    def write(records, number, settings, variables):
        write_steps(records, *[make_step(1), make_step(2)][: 1 + number % 2])

    found, _ = run(write)
    assert (found.identical, found.what) == (False, "number of steps")
    assert "one-thread" not in [one["name"] for one in found.experiments]


def test_ranks_that_drift_apart_are_reported_though_the_runs_agree(run):
    def write(records, number, settings, variables):
        write_process(records, [make_process(0), make_step(1), make_end(1)])
        write_process(records, [make_process(1), make_step(1, weights="x"), make_end(1)])

    found, _ = run(write)
    assert (found.identical, found.cause, found.ranks) == (False, "rank-differs", (1,))
