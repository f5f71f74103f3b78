"""Fused kernels on a CUDA device: the bits of ops one by one there, and of the CPU's."""

import os

import pytest
import torch

from seedless.portable import self_test
from seedless.portable.context import CONTEXT
from seedless.portable.kernels.launch import find_kernels

pytestmark = pytest.mark.gpu
CUDA = torch.device("cuda", 0)


def test_there_are_kernels():
    assert os.environ.get("SEEDLESS_FUSED") != "0"
    assert find_kernels(CUDA) is not None


def test_kernels_agree_with_ops_one_by_one():
    assert self_test.find_differing(CUDA) == []


def test_kernels_agree_with_the_cpus_ops_one_by_one():
    there = [self_test._run(call) for call in self_test.list_calls(CUDA)]
    with CONTEXT.without_kernels():
        here = [self_test._run(call) for call in self_test.list_calls(torch.device("cpu"))]
    names = [name for name, _, _ in self_test.list_calls(CUDA)]
    for name, one, other in zip(names, there, here, strict=True):
        assert all(self_test._same(a.cpu(), b) for a, b in zip(one, other, strict=True)), name
