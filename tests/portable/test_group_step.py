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
    "flip": "reorder or mix samples",
    "flip of two": "reorder or mix samples",
    "roll of two": "reorder or mix samples",
    "no samples": "samples on at least one of 2 processes, got none",
    "other length": "Pad all samples of a batch to one length",
    "other step": r"sum \d over samples is (a \w+ of shape|missing).* here and .* on rank",
    "other model": r"shape \(1, 3, 5\) for a gradient.* on rank [01]",
    "other weights": "same weights and buffers",
    "reads more": "not tensor 0 and 1 of the batch.*open a new block",
    "parameter": "uses a parameter",
    "backward": r"p\.step\(forward, loss_of, \*batch\)",
    "collective": r"portable\(group=\.\.\.\)",
    "ddp": r"ddp\.module",
    "ddp inside": r"ddp\.module",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_group_cannot_compute_is_refused_with_what_to_do(worlds, name):
    for rank in range(2):
        assert re.search(REFUSED[name], worlds[rank]["refused"][name]), rank
