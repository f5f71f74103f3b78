"""Nothing reads memory before it is written: the bits do not depend on its old content."""

import json

import pytest

# One process a filling trains them all: what the allocator fills memory with is set at its start.
TRAIN = """
import json, sys
import torch
import seedless
from seedless.core.config import parse_config
from seedless.runs.prepare import prepare
from seedless.train.loop import train
from seedless.train.progress_state import Position

fill, *names = sys.argv[1:]
found = {}
for name in names:
    name, _, spoilt = name.partition(", ")
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
    if spoilt:
        head = problem.model.head.forward
        problem.model.head.forward = (
            lambda x: head(x) + torch.empty_like(x[:, :1]).nan_to_num(9.0)
        )
    train(problem, until=Position(0, 2))
    found[", ".join(filter(None, (name, spoilt)))] = seedless.digest(problem.model)
print(json.dumps(found))
"""
# Fresh memory holds NaN (torch fills it), or a byte of the allocator's choice: 0x55 and 0xAA.
FILLINGS = [("nan", "0"), ("none", "85"), ("none", "170")]
MODELS = ["conformer", "baseline", "xresnet1d101", "resnet18"]
SPOILT = "conformer, reading fresh memory"


@pytest.fixture(scope="module")
def digests(run_python):
    """The digests of each model after two steps, one for each filling."""
    found = [
        json.loads(run_python("-c", TRAIN, fill, *MODELS, SPOILT, MALLOC_PERTURB_=byte).stdout)
        for fill, byte in FILLINGS
    ]
    return {name: {one[name] for one in found} for name in (*MODELS, SPOILT)}


@pytest.mark.parametrize("name", MODELS)
def test_fresh_memory_does_not_show(digests, name):
    assert len(digests[name]) == 1


def test_negative_control_a_model_that_reads_fresh_memory(digests):
    assert len(digests[SPOILT]) > 1
