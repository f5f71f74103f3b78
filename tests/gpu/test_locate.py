"""The first operation that differs, on a CUDA device: backward runs in another thread."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import seedless
from seedless.audit.first_difference import find_first_difference
from seedless.script_recorder.op_recorder import OpRecorder

pytestmark = pytest.mark.gpu

PRODUCTS = ("aten.mm.", "aten.addmm.", "aten.bmm.", "aten.baddbmm.")


@pytest.fixture(autouse=True)
def deterministic():
    seedless.make_deterministic(threads=4)
    yield
    seedless.make_deterministic(threads=4)
    torch.use_deterministic_algorithms(False)


def record(name="conformer", dropout=None, tf32=False, steps=1):
    """Record training steps of a small model, and return them with its digest afterwards."""
    seedless.make_deterministic(threads=4, tf32=tf32)
    model = seedless.build(name, small=True).cuda()
    seedless.initialize(model, "mixed")
    if dropout is not None:
        model.neck[1] = nn.Dropout(0.5)
        torch.cuda.manual_seed(dropout)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    x = torch.arange(8 * 12 * 1000.0).sin().view(8, 12, 1000).cuda()
    keys = torch.arange(8).cuda()
    with OpRecorder(model, {"batch/samples": x, "batch/keys": keys}) as seen:
        for step in range(steps):
            train_step(model, optimizer, x, keys, step, seen.phase)
    return seen.records, seedless.digest(model)


def train_step(model, optimizer, x, keys, epoch, phase):
    optimizer.zero_grad()
    with phase("forward"), seedless.dropout_keys(samples=keys, epoch=epoch):
        logits = model(x)
        loss = F.binary_cross_entropy_with_logits(logits, torch.ones_like(logits))
    with phase("backward"):
        loss.backward()
    with phase("optimizer"):
        optimizer.step()


@pytest.mark.parametrize("name", ["conformer", "baseline"])
def test_the_same_steps_agree_and_backward_knows_its_modules(name):
    (one, first), (two, second) = record(name, steps=2), record(name, steps=2)
    assert find_first_difference(one, two) is None
    assert first == second
    backward = [row for row in one if row.phase == "backward"]
    assert len(backward) > 200
    products = {row.module for row in backward if row.op.startswith(PRODUCTS)}
    assert {"stem.0", "head"} <= products
    assert "" not in products


def test_recording_changes_no_bit():
    model = seedless.build("baseline", small=True).cuda()
    seedless.initialize(model, "mixed")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    x = torch.arange(8 * 12 * 1000.0).sin().view(8, 12, 1000).cuda()
    for step in range(2):
        train_step(model, optimizer, x, torch.arange(8).cuda(), step, lambda _: torch.enable_grad())
    assert seedless.digest(model) == record("baseline", steps=2)[1]


def test_tf32_is_found_at_the_first_matrix_product():
    (full, _), (fast, _) = record(tf32=False), record(tf32=True)
    found = find_first_difference(full, fast)
    assert found.kind == "op"
    assert found.op.startswith(PRODUCTS)
    assert found.index == next(i for i, row in enumerate(full) if row.op.startswith(PRODUCTS))
    assert found.downstream > 0


def test_a_draw_from_the_devices_generator_is_found_in_its_module():
    (one, _), (two, _) = record("baseline", dropout=1), record("baseline", dropout=2)
    found = find_first_difference(one, two)
    assert (found.kind, found.module) == ("op", "neck.1")
    assert found.op in ("aten.native_dropout.default", "aten.bernoulli_.float")
