"""The product of a CPU in one kernel: exact integers, at every level of vectors, in any blocks."""

import platform

import numpy as np
import pytest
import torch

from seedless.portable import self_test
from seedless.portable.context import CONTEXT
from seedless.portable.exact.product import multiply_and_add, multiply_and_round
from seedless.portable.kernels import launch, products
from tests.portable.reference_cases import some
from tests.portable.test_kernels import CPU, compile_with, needs_kernels, same_bits

LARGEST = (1 << 23) - 1  # of 23 bits; a row with it has the grid of whole numbers
LEVELS = {
    "AVX2": ("-mno-avx512f",),
    "no fused multiply-add": ("-mno-avx512f", "-mno-fma"),
    "SSE2": ("-mno-avx512f", "-mno-avx2", "-mno-avx", "-mno-fma"),
}
pytestmark = needs_kernels


def make_integers(*shape):
    """Return whole numbers of 23 bits in float32, the largest one first in each row."""
    values = torch.arange(torch.Size(shape).numel()) * 7_919_317 % (2 * LARGEST + 1) - LARGEST
    values[::3] = LARGEST
    values = values.view(shape)
    values[..., 0] = LARGEST
    return values.to(torch.float32)


def multiply_in_python(left, right):
    """Return the product of float32 whole numbers: summed in Python's integers, rounded."""
    columns = right.t().long().tolist()
    rows = [
        [float(sum(a * b for a, b in zip(row, column, strict=True))) for column in columns]
        for row in left.long().tolist()
    ]
    return torch.from_numpy(np.array(rows, dtype=np.float64).astype(np.float32))


@pytest.mark.parametrize("k", [1, 128, 129, 700])
def test_products_are_those_of_pythons_integers(k):
    left, right = make_integers(11, k), make_integers(27, k).t()
    found = multiply_and_round(left[None], right[None])[0]
    assert torch.equal(found, multiply_in_python(left, right))


def test_negative_control_a_longer_chunk_is_not_exact(tmp_path, monkeypatch):
    """Sums of more than 128 odd products exceed 2^53 and lose a bit each; even ones lose none."""
    column = torch.tensor([LARGEST] * 254 + [1 - LARGEST] * 254 + [-254], dtype=torch.float32)
    left, right = torch.full((1, 2, 509), float(LARGEST)), column.expand(1, 3, 509).mT
    assert torch.equal(multiply_and_round(left, right), torch.zeros(1, 2, 3))
    library = compile_with(tmp_path, ("#define CHUNK 128", "#define CHUNK 512"))
    monkeypatch.setattr(launch, "load_cpu_kernels", lambda: library)
    assert bool((multiply_and_round(left, right) != 0.0).all())


@pytest.mark.skipif(platform.machine() != "x86_64", reason="these flags are those of x86-64")
@pytest.mark.parametrize("level", LEVELS)
def test_every_level_of_vectors_gives_the_same_bits(level, tmp_path, monkeypatch):
    given = [(some(1, 200, 300), some(1, 300, 210, name="r"))]
    given += [(some(2, 300, 50).mT, some(2, 31, 300, name="r").mT)]
    given += [(x * 1e30, y) for x, y in given]
    here = [multiply_and_round(*pair) for pair in given]
    library = compile_with(tmp_path, flags=LEVELS[level])
    monkeypatch.setattr(launch, "load_cpu_kernels", lambda: library)
    there = [multiply_and_round(*pair) for pair in given]
    assert all(map(same_bits, there, here))
    assert self_test.find_differing(CPU) == []
    # A kernel that used MMX registers would make torch's next remainder, computed in x87, NaN.
    for call in self_test.list_calls(CPU):
        self_test._run(call)
        assert bool((torch.arange(9.0, dtype=torch.float64) % 2 <= 1.0).all())


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("blocks", [1, 4, 1000])
def test_threads_and_blocks_do_not_show(threads, blocks, monkeypatch):
    left, right = some(2, 400, 150), some(2, 150, 450, name="r")
    with CONTEXT.without_kernels():
        plain = multiply_and_round(left, right)
    monkeypatch.setattr(products, "MIN_SHARED_PRODUCTS", 1)
    monkeypatch.setattr(products, "BLOCKS_PER_THREAD", blocks)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        assert same_bits(multiply_and_round(left, right), plain)
    finally:
        torch.set_num_threads(before)


def test_a_bias_is_added_to_the_rounded_product():
    left, right, bias = some(1, 30, 200), some(1, 200, 50, name="r"), some(50, name="b")
    assert same_bits(multiply_and_add(left, right, bias), bias + multiply_and_round(left, right))
    with CONTEXT.without_kernels():
        plain = multiply_and_add(left, right, bias)
    assert same_bits(multiply_and_add(left, right, bias), plain)


def test_what_is_not_finite_makes_its_row_and_column_nan():
    left, right = some(1, 200, 140), some(1, 140, 200, name="r")
    left[0, 3, 5], right[0, 7, 11] = torch.inf, torch.nan
    found = multiply_and_round(left, right)[0].isnan()
    assert found[3].all()
    assert found[:, 11].all()
    assert found.sum() == 399
