"""Bits do not depend on how many processes hold a batch, nor on who holds which sample."""

import json
import re

import pytest
import torch.multiprocessing as mp

from tests.portable.group_cases import (
    CASES,
    SHARES,
    run_rank,
    train,
)
from tests.portable.group_refusals import lose_rank

SIZE = 4


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    """What each rank of four processes found, in groups of one to four."""
    folder = tmp_path_factory.mktemp("worlds")
    mp.spawn(run_rank, (SIZE, str(folder)), nprocs=SIZE)
    return [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(SIZE)]


@pytest.mark.parametrize("name", CASES)
def test_every_world_has_the_bits_of_one_process(worlds, name):
    alone = train(CASES[name])[0]
    for label in CASES[name].shares:
        for rank in range(len(SHARES[label])):
            assert worlds[rank][f"{name}/{label}"][0] == alone, (label, rank)


@pytest.mark.parametrize("name", CASES)
def test_a_step_takes_three_messages_and_eight_for_each_batch_norm(worlds, name):
    for label in CASES[name].shares:
        assert worlds[0][f"{name}/{label}"][1] <= CASES[name].messages


def test_negative_control_a_rank_that_rounds_its_sums_shows(worlds):
    alone = train(CASES["gru"])[0]
    assert worlds[0]["gru/2"][0] == alone
    assert worlds[0]["native"][0] != alone
    assert "four samples on one process and two on each of two differ" in worlds[0]["tried"]


REFUSED = {
    "one sample": "no sample or at least two",
    "largest": "takes one value from all samples",
    "centre": "a mean over samples by BatchNorm",
    "flip": "9 samples in another order.*aten::flip at .*before the step, or in loss_of",
    "flip of two": "5 samples in another order",
    "roll of two": "5 samples in another order",
    "roll of four": r"9 samples in another order.*aten::roll at .*group_refusals\.py:\d+",
    "shift of four": "25 samples in another order.*aten::slice",
    "index": "IndexError with 4 samples: index 7 is out of bounds.*by their number in the batch",
    "number": "IndexError with . samples: index . is out of bounds.*by their number in the batch",
    "fixed size": "RuntimeError with [23] samples.*need a fixed number of them",
    "kept": "RuntimeError with [23] samples.*keep outputs for the next call",
    "counts": "expected loss_of to compute the same for the same samples.*count its calls",
    "nothing trained": "Are all layers frozen",
    "takes gradient": "requires_grad in tensor 0.*detach",
    "reentrant": "Set use_reentrant=False",
    "sync": "leave convert_sync_batchnorm out",
    "frozen here": r"sum \d over samples is .*; AddmmBackward0 of the backward pass\).* on rank",
    "no samples": "samples on at least one of 2 processes, got none",
    "other length": "Pad all samples of a batch to one length",
    "other step": r"op \d of the forward pass is aten::.* at .*group_refusals\.py:\d+.* here and "
    r"aten::.* at .*group_refusals\.py:\d+.* on rank [01]; sum \d over samples is .*",
    "other model": r"aten::t at .* makes \(5, 3\) of two samples.*shape \(1, 3, 5\) for a grad",
    "other weights": "same weights and buffers",
    "reads more": "not tensor 0 and 1 of the batch.*open a new block",
    "parameter": r"no parameter of the forward pass, got one of shape \(3, 5\)",
    "backward": r"p\.step\(forward, loss_of, \*batch\)",
    "collective": r"portable\(group=\.\.\.\)",
    "ddp": r"ddp\.module",
    "ddp inside": r"ddp\.module",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_group_cannot_compute_is_refused_with_what_to_do(worlds, name):
    for rank in range(2):
        assert re.search(REFUSED[name], worlds[rank]["refused"][name]), rank


def test_a_rank_that_fails_before_the_first_step_is_named_by_the_others(worlds):
    reasons = [worlds[rank]["refused"]["fails"] for rank in range(2)]
    assert reasons[1].startswith("rank 0 of 2 failed before the first step: expected matrices")
    assert reasons[0].startswith("RuntimeError: expected matrices")


def test_a_rank_that_ends_in_a_script_ends_the_others_with_one_sentence(tmp_path):
    mp.spawn(lose_rank, (str(tmp_path),), nprocs=2)
    said = (tmp_path / "said").read_text()
    assert "rank 0 of 2 lost the others in a step: another process has ended" in said
    assert "\n" not in said
