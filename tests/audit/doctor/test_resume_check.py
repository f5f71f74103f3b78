"""What a checkpoint left out, from the steps of an unbroken and of a resumed run."""

import pytest

from seedless.audit.doctor.recorded_run import read_run
from seedless.audit.doctor.resume_check import check_resume
from tests.audit.doctor.records import make_end, make_process, make_step, write_process

WRITTEN = {"kind": "files", "read": [], "written": [{"path": "last.pt", "line": "train.py:50"}]}
READ = {"kind": "files", "read": [{"path": "last.pt", "line": "train.py:20"}], "written": []}


def make_steps(first, last, start=1, **changed):
    """Steps whose weights and data follow from their number; ``changed`` is of the first one."""
    return [
        make_step(
            start + index,
            **{
                "weights_before": f"w{number - 1}",
                "weights": f"w{number}",
                "batch": f"b{number}",
                "input": f"b{number}",
                **(changed if index == 0 else {}),
            },
        )
        for index, number in enumerate(range(first, last + 1))
    ]


@pytest.fixture
def check(tmp_path):
    """Compare a run of six steps, ended after the fourth, with what it resumed to."""

    def check(steps, files=READ, generators=None, whole=None):
        whole, part = whole or make_steps(1, 6), steps
        if generators is not None:
            part = [{**step, "generators": generators} for step in part]
        write_process(tmp_path / "a", [make_process(), *whole, make_end(6)])
        write_process(tmp_path / "b", [make_process(), *whole[:4], WRITTEN, make_end(4)])
        write_process(tmp_path / "c", [make_process(), *part, *[files][: bool(files)]])
        runs = [read_run(tmp_path / name) for name in "abc"]
        return check_resume(*runs, 4)

    return check


def test_an_exact_resume(check):
    found = check(make_steps(4, 6))
    assert (found.cause, found.after, found.steps) == ("", 3, 3)


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("optimizer_state_before", "resume-optimizer"),
        ("rate", "resume-scheduler"),
        ("scale", "resume-scaler"),
        ("indices", "resume-sampler"),
    ],
)
def test_each_value_stands_for_what_was_left_out(check, name, cause):
    found = check(make_steps(5, 6, **{name: "other", "weights": "other"}))
    assert (found.cause, found.step, found.what) == (cause, 5, name)
    assert (found.line, found.confidence) == ("train.py:50", "certain")
    assert any("is read at train.py:20" in sentence for sentence in found.evidence)


def test_the_scale_explains_the_loss_that_it_scales(check):
    found = check(make_steps(5, 6, scale="x", loss="x", gradients="x"))
    assert found.cause == "resume-scaler"


def test_further_causes_are_named(check):
    found = check(make_steps(5, 6, rate="x", optimizer_state_before="x"))
    assert found.cause == "resume-optimizer"
    assert "further causes: resume-scheduler" in found.evidence


def test_the_generator_that_the_step_drew_from_is_named(check):
    """Every generator has another state in another process; dropout drew from torch's alone."""
    whole = [
        {**step, "generators": {"python": "p", "torch": f"t{step['step']}", "numpy": "n"}}
        for step in make_steps(1, 6)
    ]
    resumed = make_steps(5, 6, output="x", loss="x")
    found = check(
        resumed, whole=whole, generators={"python": "p2", "torch": "other", "numpy": "n2"}
    )
    assert found.cause == "resume-generator"
    assert found.words["generator"] == "the torch generator"


@pytest.mark.parametrize("name", ["output", "batch", "input"])
def test_a_generator_that_was_not_restored(check, name):
    steps = make_steps(5, 6, **{name: "other", "weights": "other"})
    found = check(steps, generators={"torch": "other"})
    assert (found.cause, found.confidence) == ("resume-generator", "likely")
    assert "torch.set_rng_state" in found.words["call"]


def read_ahead(steps, first):
    """Give each step the indices of the batch after its own, and the first one those before too."""
    for place, step in enumerate(steps, start=first):
        step["values"]["indices"] = [f"i{place + 1}"] if place < 6 else []
    ahead = [f"i{place}" for place in range(first + 1)]  # from a skipped batch on
    steps[0]["values"] |= {"indices": [*ahead, f"i{first + 1}"], "batch": f"b{first + 1}"}
    return steps


def test_a_loader_that_reads_ahead_or_skips_batches_is_no_difference(check):
    found = check(read_ahead(make_steps(5, 6), 5), whole=read_ahead(make_steps(1, 6), 1))
    assert (found.cause, found.steps) == ("", 2)


def test_nor_is_it_the_cause_of_one(check):
    resumed = read_ahead(make_steps(5, 6, loss="other", weights="other"), 5)
    unbroken = read_ahead(make_steps(1, 6), 1)
    found = check(resumed, whole=unbroken, generators={"torch": "other"})
    assert (found.cause, found.what) == ("resume-generator", "loss")
    resumed[-2]["values"]["indices"][-1] = "another sample"
    found = check(resumed, whole=unbroken, generators={"torch": "other"})
    assert (found.cause, found.what) == ("resume-sampler", "indices")


def test_data_of_another_step_are_a_lost_position(check):
    found = check(make_steps(5, 6, batch="b1", input="b1"), generators={"torch": "other"})
    assert found.cause == "resume-sampler"
    assert "its data are those of step 1 of the unbroken run" in found.evidence


def test_an_epoch_that_begins_again_is_a_lost_position_though_the_last_batches_agree(check):
    """Epochs of three: the samples from the epoch's start to the end are those of the other run."""
    whole = make_steps(1, 6)
    for place, step in enumerate(whole, start=1):
        step["values"] |= {"indices": f"i{place}", "input": f"b{place}, changed at random"}
    resumed = make_steps(5, 7, input="b4, changed otherwise", weights="other")
    for place, step in enumerate(resumed, start=4):
        step["values"] |= {"indices": f"i{place}", "batch": f"b{place}, changed otherwise"}
    found = check(resumed, whole=whole, generators={"torch-generator:1": "other"})
    assert (found.cause, found.confidence, found.step) == ("resume-sampler", "certain", 5)
    assert "its data are those of step 4 of the unbroken run" in found.evidence


def write_ranks(folder, *processes):
    for rank, steps in enumerate(processes):
        write_process(folder, [make_process(rank), *steps, make_end(len(steps))])
    return read_run(folder)


def test_every_rank_of_a_resumed_run_is_compared(tmp_path):
    whole = write_ranks(tmp_path / "a", make_steps(1, 6), make_steps(1, 6))
    ended = write_ranks(tmp_path / "b", make_steps(1, 4), make_steps(1, 4))
    resumed = write_ranks(tmp_path / "c", make_steps(5, 6), make_steps(5, 6, rate="other"))
    found = check_resume(whole, ended, resumed, 4)
    assert (found.cause, found.step, found.ranks) == ("resume-scheduler", 5, (1,))
    alone = write_ranks(tmp_path / "d", make_steps(5, 6))
    found = check_resume(whole, ended, alone, 4)
    assert (found.cause, found.what, found.ranks) == ("unknown", "processes", (1,))


def test_values_that_nothing_explains_are_unknown(check):
    assert check(make_steps(5, 6, output="other")).cause == "unknown"


def test_initial_weights_were_not_loaded(check):
    found = check(make_steps(1, 6))
    assert (found.cause, found.after, found.line) == ("resume-not-loaded", 0, "train.py:20")


def test_weights_of_no_step_were_not_loaded(check):
    found = check(make_steps(1, 6, weights_before="x"), files=None)
    assert (found.cause, found.after) == ("resume-not-loaded", None)
    assert "it reads no file that the run before it wrote" in found.evidence
