"""Nothing reads memory before it is written: whatever lies in it, the bits are the same."""

import pytest

TRAIN = """
import sys
import torch
import seedless
from seedless.core.config import parse_config
from seedless.pipeline.prepare import prepare
from seedless.train.loop import train
from seedless.train.moment import Position

name, fill = sys.argv[1:3]
images = name == "resnet18"
problem = prepare(parse_config({
    "data": {"name": "simulated-images" if images else "simulated", "records": 60},
    "augment": {"padding": 2, "flip": True} if images else {},
    "model": {"name": name, "small": True},
    "init": {"basis": "dct"},
    "order": {"batch_size": 16},
    "train": {"epochs": 1, "evaluate_every": 1},
    "execution": {"device": "cpu", "threads": 1},
})).problem
torch.utils.deterministic.fill_uninitialized_memory = fill == "nan"
SABOTAGE = None
train(problem, until=Position(0, 2))
print(seedless.digest(problem.model))
"""
# Fresh memory holds NaN (torch fills it), or a byte of the allocator's choice: 0x55 and 0xAA.
FILLINGS = [("nan", "0"), ("none", "85"), ("none", "170")]


def run(run_python, name, script=TRAIN):
    return [
        run_python("-c", script, name, fill, MALLOC_PERTURB_=byte).stdout for fill, byte in FILLINGS
    ]


@pytest.mark.parametrize("name", ["conformer", "baseline", "xresnet1d101", "resnet18"])
def test_fresh_memory_does_not_show(run_python, name):
    assert len(set(run(run_python, name))) == 1


def test_negative_control_a_model_that_reads_fresh_memory(run_python):
    spoil = """
forward = problem.model.head.forward
problem.model.head.forward = lambda x: forward(x) + torch.empty_like(x[:, :1]).nan_to_num(9.0)
"""
    script = TRAIN.replace("SABOTAGE = None", spoil)
    assert script != TRAIN
    assert len(set(run(run_python, "conformer", script))) > 1
