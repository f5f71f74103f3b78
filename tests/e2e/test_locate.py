"""Two runs that part for a known reason: `seedless.diff(a, b, locate=True)` must name that reason.

A thread count and a flipped bit are located by real processes, four for each; for the other causes
the same answers are given in this one.
"""

import json
import re
import sys
from dataclasses import asdict

import numpy as np
import pytest
import torch
from torch import nn

import seedless
from seedless.cli.main import main
from seedless.core.config import parse_config
from seedless.runs.train import train_run
from tests.tiny import ENTRY, SETTINGS, answer_here, fit_run, flags_restored, give


@pytest.fixture(autouse=True)
def _leave_no_flags():
    with flags_restored():
        yield


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A run of three epochs of four steps."""
    with flags_restored():
        return fit_run(tmp_path_factory.mktemp("locate") / "plain")


@pytest.fixture
def in_process(monkeypatch):
    monkeypatch.setattr("seedless.audit.run_diff.run_worker", answer_here)


def locate(a, b, entry_b=None):
    return seedless.diff(a, b, locate=True, entry=ENTRY, entry_b=entry_b)


# In processes of their own


def test_another_thread_count_is_an_op_whose_inputs_match(plain, tmp_path):
    found = locate(plain, fit_run(tmp_path / "two", execution={"threads": 2}))
    assert [mismatch.field for mismatch in found.settings] == ["execution.threads"]
    assert (found.epoch, found.step, found.reproduced) == (1, 1, (True, True))
    assert found.tensors == ()  # before that step every bit agrees
    finding = found.finding
    assert (finding.kind, finding.names, finding.left, finding.right) == ("op", (), (), ())
    assert finding.op.startswith("aten.")
    assert finding.index > 0
    assert finding.downstream > 0
    assert (
        "its inputs and settings are equal to the bit, and its output is not" in finding.describe()
    )


def test_the_text_of_a_flipped_bit_names_step_weight_and_bit(plain, tmp_path, capfd, monkeypatch):
    run = fit_run(tmp_path / "flipped", control={"flip_bit": "4.weight:5:3", "at_step": 6})
    command = ["diff", str(plain), str(run), "--locate", "--entry", ENTRY]
    monkeypatch.setattr(sys, "argv", ["seedless", *command])
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capfd.readouterr()
    assert ended.value.code == 1
    assert "Traceback" not in err
    lines = out.splitlines()
    assert f"configuration: control.flip_bit is None in {plain}, '4.weight:5:3' in {run}" in lines
    parts = next(line for line in lines if line.startswith("THEY DIFFER"))
    assert parts.startswith("THEY DIFFER in epoch 2: model/")
    assert any(line.startswith("  first at step 7: model/") for line in lines)
    assert re.search(
        r"The difference comes from outside the operations: model/4\.weight differs already on "
        r"entering aten\.\S+ in module 4 \(forward",
        out,
    )
    assert re.search(
        r"before that step model/4\.weight differs in 1 of 48 elements, 1 bit: at \[0, 5\] "
        r"(\S+) against (?!\1)",
        out,
    )


class Forgetful(nn.Module):
    """A dropout that draws from torch's generator, within a larger model."""

    def __init__(self):
        super().__init__()
        self.entrance = nn.Linear(8, 16)
        self.forgetting = nn.Dropout(0.5)
        self.exit = nn.Linear(16, 3)

    def forward(self, x):
        return self.exit(self.forgetting(self.entrance(x).relu()))


def give_seeded(seed):
    torch.manual_seed(seed)
    return {**give(), "model": Forgetful}


def give_one():
    return give_seeded(1)


def give_two():
    return give_seeded(2)


def give_anything():
    torch.seed()
    return {**give(), "model": Forgetful}


HERE = "tests.e2e.test_locate:"


def check_dropout(found):
    finding = found.finding
    assert (finding.kind, finding.module, finding.phase) == ("op", "forgetting", "forward")
    assert re.match(r"aten\.(native_dropout|bernoulli)", finding.op)
    assert found.tensors == ()
    assert (found.epoch, found.step) == (1, 1)


# The same answers, in this process


def test_a_dropout_that_used_the_global_generator_is_found_in_its_module(tmp_path, in_process):
    guard = {"guard": "report"}
    runs = [fit_run(tmp_path / "a", give_one(), train=guard)]
    runs += [fit_run(tmp_path / "b", give_two(), train=guard)]
    found = seedless.diff(*runs, locate=True, entry=f"{HERE}give_one", entry_b=f"{HERE}give_two")
    check_dropout(found)
    assert (found.reproduced, found.notes) == ((True, True), ())
    assert (found.settings, found.environment, found.facts) == ((), (), ())


def test_one_that_was_never_seeded_does_not_even_repeat_itself(tmp_path, in_process):
    guard = {"guard": "report"}
    runs = [fit_run(tmp_path / name, give_anything(), train=guard) for name in "ab"]
    found = seedless.diff(*runs, locate=True, entry=f"{HERE}give_anything")
    check_dropout(found)
    assert found.reproduced == (False, False)
    assert [note.partition(" does not repeat")[0] for note in found.notes] == list(map(str, runs))
    assert "a generator" in found.notes[0]


@pytest.mark.parametrize(
    ("target", "shape", "at_step"),
    [("0.weight:17:0", (2, 1), 0), ("1.bias:3:22", (3,), 3), ("4.weight:47:31", (2, 15), 9)],
)
def test_a_flipped_bit_is_one_bit_of_one_element(
    plain, tmp_path, in_process, target, shape, at_step
):
    run = fit_run(tmp_path / "b", control={"flip_bit": target, "at_step": at_step})
    found = locate(plain, run)
    weight = "model/" + target.partition(":")[0]
    assert (found.epoch, found.step) == (at_step // 4 + 1, at_step + 1)
    assert (found.finding.kind, found.finding.names) == ("source", (weight,))
    assert found.finding.module == target[0]
    (row,) = found.tensors
    assert (row.name, row.differing, row.bits, row.first) == (weight, 1, 1, shape)
    assert row.left != row.right or row.left == 0  # 0.0 and -0.0 are two bit patterns


ORDERS = {
    "another offset": {"offset": 1},
    "a seeded order": {"name": "seeded", "seed": 1},
    "other batches": {"batch_size": 32},
}


@pytest.mark.parametrize("what", ORDERS)
def test_another_batch_order_comes_in_with_the_rows(plain, tmp_path, in_process, what):
    found = locate(plain, fit_run(tmp_path / "b", order=ORDERS[what]))
    assert (found.epoch, found.step, found.tensors) == (1, 1, ())
    assert (found.finding.kind, found.finding.names) == ("source", ("batch/rows",))
    assert found.finding.index == 0
    assert {mismatch.field.partition(".")[0] for mismatch in found.settings} == {"order"}
    assert "schedule" in found.names


@pytest.mark.parametrize(
    ("change", "epoch", "step"),
    [({"rate": 0.002}, 1, 1), ({"decay": "none"}, 2, 5), ({"warmup_steps": 2}, 1, 1)],
)
def test_another_learning_rate_is_the_optimizers(plain, tmp_path, in_process, change, epoch, step):
    found = locate(plain, fit_run(tmp_path / "b", train=change))
    assert (found.epoch, found.step, found.tensors) == (epoch, step, ())
    assert (found.finding.kind, found.finding.names) == ("source", ("optimizer/rate",))
    assert found.finding.phase == "optimizer"


def test_a_setting_of_the_optimizer_is_named_with_both_values(plain, tmp_path, in_process):
    found = locate(plain, fit_run(tmp_path / "b", train={"weight_decay": 0.01}))
    finding = found.finding
    assert (finding.kind, finding.phase) == ("setting", "optimizer")
    assert (finding.left, finding.right) == (("weight_decay=0.0",), ("weight_decay=0.01",))


def test_one_more_operation_is_another_program(plain, tmp_path, in_process):
    found = locate(plain, fit_run(tmp_path / "b", train={"clip_norm": 0.001}))
    assert (found.finding.kind, found.finding.phase) == ("program", "optimizer")
    assert found.finding.left != found.finding.right


def test_another_start_is_seen_in_the_weights(plain, tmp_path, in_process):
    found = locate(plain, fit_run(tmp_path / "b", init={"basis": "hadamard"}))
    assert (found.epoch, found.step) == (0, 1)
    assert (found.finding.kind, found.finding.names) == ("source", ("model/0.weight",))
    assert [row.name for row in found.tensors] == ["model/0.weight", "model/4.weight"]


def make_tanh():
    model = give()["model"]()
    model[2] = nn.Tanh()
    return model


def give_tanh():
    return {**give(), "model": make_tanh}


def test_another_function_between_the_same_weights_is_another_program(plain, tmp_path, in_process):
    run = fit_run(tmp_path / "b", give_tanh())
    found = locate(plain, run, entry_b=f"{HERE}give_tanh")
    assert found.finding.kind == "program"
    assert "relu" in found.finding.left[0] + found.finding.left[1]
    assert "tanh" in found.finding.right[0] + found.finding.right[1]


def give_nudged():
    samples, labels = give()["train"]
    samples = samples.copy()
    samples[3, 4] = np.nextafter(samples[3, 4], np.float32(9))
    return {**give(), "train": (samples, labels)}


def test_one_changed_sample_comes_in_with_the_data(plain, tmp_path, in_process):
    found = locate(plain, fit_run(tmp_path / "b", give_nudged()), entry_b=f"{HERE}give_nudged")
    fields = [mismatch.field for mismatch in found.facts]
    assert fields == ["data.content", "data.digest", "data.splits.train"]
    # The sample has another key now, and with it perhaps another place in the order.
    assert found.finding.kind == "source"
    assert {*found.finding.names} <= {"batch/rows", "data/samples", "data/keys", "data/labels"}
    assert "data/samples" in found.finding.names or found.finding.index == 0


def test_a_conformer_of_seedless_train_is_located_too(tmp_path, in_process):
    draw = np.random.default_rng(0)
    np.savez(
        tmp_path / "ours.npz",
        X=draw.normal(size=(40, 2, 500)).astype("f4"),
        Y=np.eye(2, dtype="u1")[np.arange(40) % 2],
        folds=np.arange(40) % 10 + 1,
    )
    settings = {
        **SETTINGS,
        "data": {"name": str(tmp_path / "ours.npz")},
        "model": {"name": "conformer", "small": True},
        "init": {},
        "train": {"epochs": 1},
    }
    config = parse_config(settings)
    runs = [train_run(config, tmp_path / "a").path]
    name = next(name for name, _ in seedless.load(runs[0]).model.named_parameters())
    flipped = config.change(control={"flip_bit": f"{name}:0:1", "at_step": 1})
    runs += [train_run(flipped, tmp_path / "b").path]
    found = seedless.diff(*runs, locate=True)
    assert (found.epoch, found.step) == (1, 2)
    assert (found.finding.kind, found.finding.names) == ("source", (f"model/{name}",))
    assert [(row.name, row.differing, row.bits) for row in found.tensors] == [
        (f"model/{name}", 1, 1)
    ]
    assert found.finding.downstream > 100
    assert json.loads(json.dumps(asdict(found)))["finding"]["kind"] == "source"
