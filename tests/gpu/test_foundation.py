"""What must hold on a CUDA device: the same integers and the same pools as the CPU, repeatable
convolutions and training steps, and weights that begin with the committed digests.
"""

import json

import pytest
import torch
import torch.nn.functional as F

import seedless
from seedless.numerics.convolution import conv1d, depthwise_conv1d
from seedless.numerics.counter_random import philox
from seedless.numerics.dropout import dropout
from seedless.numerics.pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    avg_pool1d,
    max_pool1d,
)
from tests.golden.write import FILE

pytestmark = pytest.mark.gpu

COMMITTED = json.loads(FILE.read_text())
SHAPES = {
    "conformer": (8, 12, 1000),
    "baseline": (8, 12, 1000),
    "xresnet1d101": (8, 12, 1000),
    "resnet18": (8, 3, 32, 32),
}


@pytest.fixture(autouse=True)
def deterministic():
    seedless.make_deterministic(threads=4)
    yield
    torch.use_deterministic_algorithms(False)


def numbers(*shape):
    """Reproducible numbers with ties, signs and zeros, without a generator."""
    count = torch.Size(shape).numel()
    return ((torch.arange(count) * 7919 % 1021) - 510).view(shape) / 64


def test_the_counter_gives_the_cpus_integers():
    words = [torch.arange(1 << 16) * (2 * k + 1) * 40_503 % (1 << 32) for k in range(6)]
    here = philox(tuple(words[:4]), tuple(words[4:]))
    device = [word.cuda() for word in words]
    there = philox(tuple(device[:4]), tuple(device[4:]))
    for cpu, cuda in zip(here, there, strict=True):
        assert torch.equal(cpu, cuda.cpu())


def test_dropout_gives_the_cpus_bits():
    x, keys = numbers(16, 3, 1001), torch.arange(16) * 2**57 - 5
    here = dropout(x, 0.25, samples=keys, epoch=4, layer=1)
    there = dropout(x.cuda(), 0.25, samples=keys.cuda(), epoch=4, layer=1)
    assert torch.equal(here, there.cpu())


POOLS = {
    "adaptive 250 -> 125": (lambda x: adaptive_avg_pool1d(x, 125), (4, 250, 160)),
    "adaptive 125 -> 63": (lambda x: adaptive_avg_pool1d(x, 63), (4, 125, 160)),
    "adaptive 2-D": (lambda x: adaptive_avg_pool2d(x, (3, 2)), (4, 16, 7, 7)),
    "max": (lambda x: max_pool1d(x, 3, 2, 1), (4, 501, 64)),
    "average": (lambda x: avg_pool1d(x, 3, 2, 1), (4, 501, 64)),
}


@pytest.mark.parametrize("name", POOLS)
def test_pools_give_the_cpus_bits_forward_and_backward(name):
    pool, shape = POOLS[name]
    results = []
    for device in ("cpu", "cuda"):
        x = numbers(*shape).to(device).requires_grad_()
        y = pool(x)
        y.backward(numbers(*y.shape).to(device))
        results.append((y.detach().cpu(), x.grad.cpu()))
    assert torch.equal(results[0][0], results[1][0])
    assert torch.equal(results[0][1], results[1][1])


def run_convolution(op, *shapes):
    arrays = [(numbers(*shape) / 8).cuda().requires_grad_() for shape in shapes]
    y = op(*arrays)
    y.backward(numbers(*y.shape).cuda() / 8)
    return [y.detach(), *(array.grad for array in arrays)]


@pytest.mark.parametrize("kernel", [1, 5])
@pytest.mark.parametrize("stride", [1, 2])
def test_convolutions_repeat_and_agree_with_torchs(kernel, stride):
    def ours(x, w, b):
        return conv1d(x, w, b, stride, kernel // 2)

    def theirs(x, w, b):
        wide = F.conv1d(x.double().transpose(1, 2), w.double(), b.double(), stride, kernel // 2)
        return wide.transpose(1, 2)

    shapes = ((32, 250, 40), (160, 40, kernel), (160,))
    first, second = run_convolution(ours, *shapes), run_convolution(ours, *shapes)
    for one, two, wide in zip(first, second, run_convolution(theirs, *shapes), strict=True):
        assert torch.equal(one, two)
        error = (one.double() - wide.double()).norm() / wide.double().norm()
        assert error < 1e-5


def test_depthwise_convolutions_repeat():
    shapes = ((32, 32, 160), (160, 1, 5), (160,))
    results = [
        run_convolution(lambda x, w, b: depthwise_conv1d(x, w, b, 2), *shapes) for _ in range(2)
    ]
    for one, two in zip(*results, strict=True):
        assert torch.equal(one, two)


@pytest.mark.parametrize("basis", ["mixed", "dct", "kaiming"])
@pytest.mark.parametrize("name", sorted(SHAPES))
def test_weights_filled_on_the_device_have_the_committed_digest(name, basis):
    model = seedless.build(name).cuda()
    plan = seedless.initialize(model, basis)
    assert seedless.digest(model) == COMMITTED[name][basis]["weights"]
    assert plan.digest == COMMITTED[name][basis]["plan"]


TRAIN = """
import sys, torch, seedless
from tests.gpu.test_foundation import SHAPES, train
seedless.make_deterministic(threads=4)
print(train(sys.argv[1]))
"""


def train(name, steps=3):
    """Train a few steps and return the digest of the weights."""
    model = seedless.build(name).cuda()
    seedless.initialize(model, "mixed")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    x = numbers(*SHAPES[name]).cuda()
    for step in range(steps):
        optimizer.zero_grad()
        with seedless.dropout_keys(samples=torch.arange(8).cuda(), epoch=step):
            logits = model(x)
        F.binary_cross_entropy_with_logits(logits, (logits.detach() * 0 + step % 2)).backward()
        optimizer.step()
    return seedless.digest(model)


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_two_processes_train_to_the_same_bits(name, run_python):
    variables = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    digests = [run_python("-c", TRAIN, name, **variables).stdout for _ in range(2)]
    assert digests[0] == digests[1]
    assert digests[0].startswith("sha256:")
