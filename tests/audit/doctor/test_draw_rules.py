"""Draws: who drew, from which generator, and why its state differs."""

from dataclasses import replace

import pytest

from seedless.audit.doctor.diagnosis import fill_remedy
from seedless.audit.doctor.draw_rules import (
    choose_draw,
    judge_draw,
    judge_random_sources,
    judge_states,
)
from seedless.audit.doctor.random_sources import list_sources
from seedless.audit.doctor.step_ops import StepOp
from tests.audit.doctor.records import make_case, write_run

DRAW = StepOp(
    kind="op",
    op="aten.uniform_.default",
    line="train.py:12",
    module="",
    phase="",
    note="",
    device="cpu",
    draws="torch",
    generator_given=False,
    names=(),
    left=(),
    right=(),
    unwritten=False,
    description="The runs begin to differ at aten.uniform_.default.",
    agreed=7,
)


def seed(generator, value, line="train.py:5", call="seed"):
    return {"kind": "seed", "generator": generator, "call": call, "value": value, "line": line}


def draws(generator, line="data.py:9", call="random.random"):
    return {"kind": "draws", "generator": generator, "call": call, "line": line, "count": 8}


@pytest.fixture
def make(tmp_path):
    """Return a function that makes the case of two runs with these lines and this difference."""

    def make(name, lines=((), ()), op=None, workers=((), ()), state=1):
        runs = [
            write_run(
                tmp_path / str(index),
                list(lines[index]),
                workers=workers[index],
                generators={"torch": str(index), "python": str(index * state), "numpy": str(index)},
                step1={name: str(index)},
            )
            for index in range(2)
        ]
        return make_case(*runs, op=op)

    return make


@pytest.mark.parametrize(
    ("name", "op", "cause"),
    [
        ("weights_before", "aten.uniform_.default", "unseeded-weights"),
        ("indices", "aten.randperm.default", "unseeded-shuffle"),
        ("input", "aten.randperm.default", "unseeded-shuffle"),
        ("batch", "np.random.permutation at data.py:3", "unseeded-shuffle"),
        ("batch", "random.random at data.py:3", "augmentation-draws"),
        ("batch", "aten.normal_.default", "augmentation-draws"),
        ("input", "aten.normal_.default", "unseeded-draws"),
        ("output", "aten.native_dropout.default", "dropout-draws"),
        ("output", "aten.randn.default", "unseeded-draws"),
        ("loss", "aten.rand.default", "unseeded-draws"),
    ],
)
def test_a_draw_is_named_by_what_it_is_for(make, name, op, cause):
    found = judge_draw(make(name, op=replace(DRAW, op=op)))
    assert (found.cause, found.line, found.experiment) == (cause, "train.py:12", "seed-torch")
    assert found.words["call"] == "torch.manual_seed(0)"
    assert "no call seeds torch's generator" in found.evidence[-1]


def test_dropout_is_recognised_by_its_name_or_by_its_mask(make):
    for call, module in (("aten.bernoulli_.float", "head.2"), ("aten.rand.default", "drop_path")):
        op = replace(DRAW, op=call, module=module)
        assert judge_draw(make("output", op=op)).cause == "dropout-draws"


def test_a_seed_that_changes_is_the_line_to_change(make):
    lines = ([seed("torch", "17")], [seed("torch", "18")])
    found = judge_draw(make("weights_before", lines, DRAW))
    assert (found.cause, found.line) == ("time-seed", "train.py:5")
    assert found.experiment == "seed-torch-values"
    assert "17 in one run and 18 in the other" in found.evidence[-1]


def test_a_seed_from_entropy_is_the_line_to_change(make):
    lines = ([seed("torch", None)], [seed("torch", None)])
    found = judge_draw(make("weights_before", lines, DRAW))
    assert (found.cause, found.line) == ("unseeded-weights", "train.py:5")


def test_a_seed_that_a_sampler_draws_follows_from_the_first(make):
    op = replace(DRAW, op="aten.randperm.generator", draws="torch-generator")
    lines = [
        [seed("torch-generator", None, "train.py:8"), seed("torch-generator", value, "train.py:30")]
        for value in "12"
    ]
    found = judge_draw(make("indices", lines, op))
    assert (found.cause, found.line) == ("unseeded-shuffle", "train.py:8")


@pytest.mark.parametrize(
    ("values", "cause"),
    [(("12838605543004328221", "6666404800022655024"), "unseeded-shuffle"), ("12", "time-seed")],
)
def test_seeds_of_a_torch_generator_that_are_far_apart_are_entropy(make, values, cause):
    op = replace(DRAW, op="aten.random_.default", draws="torch-generator")
    lines = [[seed("torch-generator", value, "train.py:92")] for value in values]
    found = judge_draw(make("indices", lines, op))
    assert (found.cause, found.experiment) == (cause, "seed-torch-values")


def test_a_seed_that_comes_too_late_is_said(make):
    lines = ([seed("torch", "0")], [seed("torch", "0")])
    found = judge_draw(make("weights_before", lines, DRAW))
    assert found.cause == "unseeded-weights"
    assert "seeded with the same value in both runs" in found.evidence[-1]


def test_an_operation_that_does_not_draw_is_no_draw(make):
    assert judge_draw(make("output", op=replace(DRAW, draws=""))) is None
    assert judge_draw(make("output")) is None


def test_draws_in_a_worker_explain_a_batch(make):
    worker = [draws("numpy", "data.py:9", "np.random.normal")]
    found = next(judge_random_sources(make("batch", workers=([worker], [worker]))))
    assert (found.cause, found.line, found.experiment) == (
        "worker-draws",
        "data.py:9",
        "seed-numpy",
    )


def test_seeded_workers_are_no_source(make):
    worker = [seed("numpy", "1"), seed("numpy", "5"), draws("numpy")]
    case = make("batch", workers=([worker], [worker]))
    assert list_sources(case) == []


def test_a_generator_object_from_entropy_is_found(make):
    lines = ([seed("numpy-generator", None, "data.py:4", "np.random.default_rng")],) * 2
    (found,) = judge_random_sources(make("batch", lines))
    assert (found.cause, found.line) == ("augmentation-draws", "data.py:4")
    assert found.experiment == "seed-numpy"


def test_what_happens_after_the_difference_is_not_its_cause(tmp_path):
    late = {**draws("python")}
    runs = []
    for index in range(2):
        run = write_run(tmp_path / str(index), step1={"loss": str(index)})
        file = run.folder / "process-0-100.jsonl"
        import json

        file.write_text(file.read_text() + json.dumps(late) + "\n")
        from seedless.audit.doctor.recorded_run import read_run

        runs.append(read_run(run.folder))
    assert list(judge_random_sources(make_case(*runs))) == []


@pytest.mark.parametrize(
    ("name", "chosen"),
    [
        ("weights_before", "aten.uniform_.default"),
        ("indices", "np.random.permutation"),
        ("batch", "aten.randn.default"),
        ("output", "aten.native_dropout.default"),
    ],
)
def test_the_draw_that_explains_the_value_is_chosen(make, name, chosen):
    order = replace(DRAW, op="np.random.permutation", draws="numpy", line="train.py:3")
    noise = replace(DRAW, op="aten.randn.default", line="train.py:4")
    mask = replace(DRAW, op="aten.native_dropout.default", module="drop", phase="forward")
    case = replace(make(name, op=order), draws=(order, noise, DRAW, mask))
    if name == "batch":  # the indices agree, so an order of the data explains nothing
        assert "indices" not in case.first.names
    assert choose_draw(case).op == chosen


def test_the_seeds_that_torch_gives_its_workers_are_no_cause(make):
    """They follow from a draw of the main process, and stand at the line of the loop."""
    loop = "train.py:50"
    workers = [
        [[seed("python", f"{run}"), seed("torch", f"{run}", loop), seed("numpy", f"{run}", loop)]]
        for run in range(2)
    ]
    for run in workers:
        run[0][0]["line"] = loop
        run[0].append(draws("numpy"))
    assert list_sources(make("batch", workers=workers)) == []
    for index, run in enumerate(workers):
        run[0].append(seed("numpy", f"7{index}", "train.py:9"))  # in a worker_init_fn
    (found,) = list_sources(make("batch", workers=workers))
    assert (found.line, found.worker) == ("train.py:9", True)


def test_draws_of_workers_whose_seed_was_drawn_unseeded(make):
    base = replace(DRAW, op="aten.random_.from", line="train.py:50")
    worker = [seed("numpy", "1", "train.py:50"), draws("numpy", "data.py:9")]
    found = judge_draw(make("batch", op=base, workers=([worker], [worker])))
    assert (found.cause, found.line, found.experiment) == (
        "worker-draws",
        "data.py:9",
        "seed-torch",
    )


def test_a_shuffle_of_other_data_is_no_draw_that_differs(make):
    """The generator's states agree after the step: what was shuffled is not the same."""
    op = replace(DRAW, op="random.shuffle", draws="python")
    assert judge_draw(make("input", op=op)).cause == "unseeded-shuffle"
    assert judge_draw(make("input", op=op, state=0)) is None


def test_weights_are_seeded_before_the_line_that_makes_the_model(make):
    op = replace(DRAW, line="model.py:7", maker="train.py:26")
    found = judge_draw(make("weights_before", op=op))
    assert (found.cause, found.line) == ("unseeded-weights", "train.py:26")
    assert any("model.py:7" in sentence for sentence in found.evidence)
    assert judge_draw(make("loss", op=op)).line == "model.py:7"


def test_a_draw_before_the_weights_is_named_with_them(make):
    """A seed behind that line would leave the first draw as it is."""
    noise = replace(DRAW, op="aten.randn.default", line="train.py:3")
    weights = replace(DRAW, line="model.py:7", maker="train.py:5")
    case = replace(make("weights_before", op=noise), draws=(noise, weights))
    found = judge_draw(case)
    _, remedy = fill_remedy(found, found.line)
    assert remedy.endswith("drawn: best before train.py:3, the first line that draws from it")
    alone = judge_draw(make("weights_before", op=weights))
    assert fill_remedy(alone, alone.line)[1].endswith("train.py:5, where the weights are drawn")


def test_a_state_that_differs_has_the_line_of_the_first_draw(make):
    lines = [draws("numpy", line="split.py:4", call="np.random.permutation")]
    found = {one.words["generator"]: one for one in judge_states(make("input", (lines, lines)))}
    assert found["numpy's global generator"].line == "split.py:4"
    assert found["torch's generator"].line == "", "its draws are not counted"
