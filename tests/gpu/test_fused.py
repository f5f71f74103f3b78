"""Fused kernels on a CUDA device: the bits of ops one by one there, and of the CPU's."""

import os

import pytest
import torch

from seedless.numerics.portable import trust
from seedless.numerics.portable.fused.launch import find_kernels, op_by_op

pytestmark = pytest.mark.gpu
CUDA = torch.device("cuda", 0)


def test_there_are_kernels():
    assert os.environ.get("SEEDLESS_FUSED") != "0"
    assert find_kernels(CUDA) is not None


def test_kernels_agree_with_ops_one_by_one():
    assert trust.find_differing(CUDA) == []


def test_kernels_agree_with_the_cpus_ops_one_by_one():
    there = [trust._run(call) for call in trust.list_calls(CUDA)]
    with op_by_op():
        here = [trust._run(call) for call in trust.list_calls(torch.device("cpu"))]
    names = [name for name, _, _ in trust.list_calls(CUDA)]
    for name, one, other in zip(names, there, here, strict=True):
        assert all(trust._same(a.cpu(), b) for a, b in zip(one, other, strict=True)), name
