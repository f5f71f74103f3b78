"""Laws of rounding grids, sums and products: references in integers, and what changes nothing."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seedless.numerics.counter_random import draw_uniform
from seedless.portable.context import CONTEXT
from seedless.portable.exact import product, rounding_grid, sums
from seedless.portable.exact.engines import float64
from seedless.portable.exact.product import multiply
from seedless.portable.exact.sums import total
from tests.portable.grid_steps import round_with_step
from tests.portable.reference import laws

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
ROWS = st.lists(FLOATS, min_size=1, max_size=40)
few = settings(max_examples=60)


def tensor(row):
    return torch.tensor(row, dtype=torch.float32)


def make_uniform(name, *shape, spread=0):
    """Uniform numbers; with `spread`, each times a power of two up to 2^+-spread."""
    count = math.prod(shape)
    values = draw_uniform(1, name, count) * 2 - 1
    exponents = np.floor((draw_uniform(2, name, count) * 2 - 1) * spread).astype(int)
    return torch.from_numpy(np.ldexp(values, exponents).astype(np.float32)).view(shape)


def same(a, b):
    return torch.equal(a.view(torch.int64), b.view(torch.int64))


@few
@given(ROWS, st.sampled_from([5, 23, 36]))
def test_the_grid_equals_its_reference(row, bits):
    q, step = round_with_step(tensor(row), [0], bits)
    integers, exact_step = laws.to_grid(row, bits)
    assert [int(value) for value in q] == integers
    if any(row):
        assert Fraction(step.item()) == exact_step
    assert q.abs().max() <= 2**bits


@few
@given(st.lists(st.integers(-(2**53), 2**53), min_size=1, max_size=20))
def test_split_loses_nothing(integers):
    q = torch.tensor(integers, dtype=torch.float64)
    high, low = rounding_grid.split(q)
    assert [int(h) + int(v) for h, v in zip(high, low, strict=True)] == integers
    assert bool((high % 2**27 == 0).all())
    assert low.abs().max() <= 2**26


@few
@given(ROWS)
def test_a_sum_and_a_mean_equal_their_references(row):
    assert total(tensor(row), [0]).item() == (laws.total(row) if len(row) > 1 else row[0])
    if len(row) > 1:
        assert sums.mean(tensor(row), [0]).item() == laws.mean(row)


@few
@given(ROWS, st.randoms(use_true_random=False), st.integers(0, 9))
def test_order_and_zeros_do_not_change_a_sum(row, random, zeros):
    shuffled = row + [0.0] * zeros
    random.shuffle(shuffled)
    if len(row) > 1:
        assert same(total(tensor(row)), total(tensor(shuffled)))


def test_how_many_are_added_at_once_does_not_change_a_sum(monkeypatch):
    x = make_uniform("sum", 5, 3000, spread=12)
    direct, running = total(x, [1]), sums.cumulative_total(x, 1)
    monkeypatch.setattr(sums, "MAX_EXACT_ADDENDS", 1)
    assert same(direct, total(x, [1]))
    assert same(running, sums.cumulative_total(x, 1))
    assert same(direct, total(x.t().contiguous().t(), [1]))
    assert same(running[:, -1].contiguous(), direct)


@few
@given(st.data())
def test_an_element_of_a_product_equals_its_reference(data):
    length = data.draw(st.integers(1, 12))
    rows = st.lists(FLOATS, min_size=length, max_size=length)
    left, right = data.draw(rows), data.draw(rows)
    found = multiply(tensor(left).view(1, 1, -1), tensor(right).view(1, -1, 1))
    assert found.item() == laws.dot(left, right)


@few
@given(st.data())
def test_the_error_of_a_product_keeps_its_bound(data):
    length = data.draw(st.integers(1, 12))
    rows = st.lists(FLOATS, min_size=length, max_size=length)
    left, right = data.draw(rows), data.draw(rows)
    error = abs(Fraction(laws.dot(left, right)) - laws.exact_dot(left, right))
    largest = Fraction(max(map(abs, left))) * Fraction(max(map(abs, right)))
    assert error <= length * largest * (Fraction(1, 2**22) + Fraction(1, 2**45))


def test_known_limit_opposed_rows_lose_what_float32_keeps():
    """Each large value is multiplied by a tiny one: the bound holds, but float32 is more exact."""
    left = torch.tensor([[1.0, 1.2345678 * 2.0**-20]])
    right = torch.tensor([[1.1111111 * 2.0**-20], [1.0]])
    exact = laws.exact_dot(left[0].tolist(), right[:, 0].tolist())
    ours = Fraction(multiply(left[None], right[None]).item())
    assert abs(ours - exact) > 100 * abs(Fraction((left @ right).item()) - exact)
    assert abs(ours - exact) < Fraction(1, 2**21)


def multiply_in_chunks(left, right, chunk):
    """The slow reference: products of chunks, in Python's integers."""
    (p, s), (q, t) = round_with_step(left, [2], 23), round_with_step(right, [1], 23)
    total = 0
    for start in range(0, p.shape[2], chunk):
        part = torch.bmm(p[:, :, start : start + chunk], q[:, start : start + chunk])
        total = total + np.array(part.to(torch.int64).numpy(), dtype=object)
    return torch.from_numpy(total.astype(np.float64)) * s * t + 0.0


@pytest.mark.parametrize("length", [1, 7, 128, 129, 1000, 5000])
def test_products_ignore_order_chunks_padding_layout_and_batch(length, monkeypatch):
    left, right = (
        make_uniform("left", 2, 5, length, spread=9),
        make_uniform("right", 2, length, 4, spread=9),
    )
    whole = multiply(left, right)
    order = torch.from_numpy(np.argsort(draw_uniform(3, "order", length)))
    assert same(whole, multiply(left[:, :, order], right[:, order]))
    assert same(whole, multiply_in_chunks(left, right, 17))
    zeros = torch.zeros(2, 5, 300)
    padded = torch.cat([zeros, left], 2), torch.cat([zeros[:, :4].transpose(1, 2), right], 1)
    assert same(whole, multiply(*padded))
    turned = multiply(right.transpose(1, 2), left.transpose(1, 2))
    assert same(whole, turned.transpose(1, 2).contiguous())
    assert same(whole[1:, 2:3], multiply(left[1:, 2:3], right[1:]))
    for short, long in ((1, 1 << 19), (1, 100), (1, 64)):
        monkeypatch.setattr(float64, "MAX_PRODUCT_ADDENDS", short)
        monkeypatch.setattr(float64, "MAX_HALVED_ADDENDS", long)
        assert same(whole, multiply(left, right))


def test_a_long_product_equals_its_reference():
    left, right = make_uniform("a", 1, 1, 700, spread=6), make_uniform("b", 1, 700, 1, spread=6)
    assert multiply(left, right).item() == laws.dot(
        left.flatten().tolist(), right.flatten().tolist()
    )


@pytest.mark.parametrize("scale", [2.0**-140, 1e-30, 1.0, 1e15])
@pytest.mark.parametrize("spread", [0, 4, 12])
@pytest.mark.parametrize("length", [2, 30, 160, 3000])
def test_errors_are_at_most_twice_those_of_float32(length, spread, scale):
    """Root mean square over 24 products and sums, against exact fractions."""
    left = make_uniform("e1", 6, length, spread=spread) * scale
    right = make_uniform("e2", length, 4, spread=spread)
    rows, columns = left.tolist(), right.t().tolist()
    exact = [[laws.exact_dot(row, column) for column in columns] for row in rows]
    ours = multiply(left[None], right[None])[0].to(torch.float32)
    assert rms(ours, exact, scale) <= 2 * rms(left @ right, exact, scale) + 1e-7 * floor(
        exact, scale
    )
    sums = [[sum(map(Fraction, row), Fraction(0))] for row in rows]
    ours = total(left, [1], True).to(torch.float32)
    assert rms(ours, sums, scale) <= 2 * rms(left.sum(1, True), sums, scale) + 1e-7 * floor(
        sums, scale
    )


def rms(found, exact, scale):
    errors = [
        float((Fraction(a) - b) / Fraction(scale))
        for row, other in zip(found.tolist(), exact, strict=True)
        for a, b in zip(row, other, strict=True)
    ]
    return math.sqrt(sum(error**2 for error in errors) / len(errors))


def floor(exact, scale):
    """The size of the results: where float32 is exact by luck, one rounding of it is allowed."""
    return max(abs(float(value / Fraction(scale))) for row in exact for value in row)


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("length", [3, 400])
def test_what_is_not_finite_stays_where_it_belongs(bad, length):
    left, right = make_uniform("n1", 1, 4, length), make_uniform("n2", 1, length, 3)
    plain = multiply(left, right)
    left[0, 2, 1] = bad
    found = multiply(left, right)
    assert not found[0, 2].isfinite().any()
    finite = [0, 1, 3]
    assert same(found[:, finite], plain[:, finite])
    sums = total(left, [2])[0]
    assert sums.isfinite().tolist() == [True, True, False, True]
    assert math.isnan(sums[2]) if math.isnan(bad) else sums[2] == bad


def test_a_long_sum_keeps_infinity(monkeypatch):
    monkeypatch.setattr(sums, "MAX_EXACT_ADDENDS", 1)
    row = torch.tensor([1.0, math.inf, 2.0, 3.0])
    assert total(row) == math.inf
    assert math.isnan(total(torch.cat([row, -row])))


def test_huge_values_overflow_as_float32_does():
    big = torch.full((1, 2, 2), 3e38)
    assert multiply(big, big).to(torch.float32).eq(math.inf).all()
    assert total(big).to(torch.float32) == math.inf


def test_empty_sums_and_products_are_zero():
    assert total(torch.zeros(0, 3), [0]).tolist() == [0, 0, 0]
    assert multiply(torch.zeros(2, 3, 0), torch.zeros(2, 0, 4)).eq(0).all()
    assert math.copysign(1, total(torch.full((5,), -0.0)).item()) == 1


def test_negative_control_float32_sums_depend_on_order():
    x = make_uniform("control", 3000)
    order = torch.from_numpy(np.argsort(draw_uniform(3, "order", 3000)))
    assert torch.sum(x) != torch.sum(x[order])
    left, right = make_uniform("c1", 30, 3000), make_uniform("c2", 3000, 30)
    assert not torch.equal(left @ right, left[:, order] @ right[order])


def test_negative_control_a_grid_too_fine_rounds(monkeypatch):
    """With 30 bits an operand the products no longer fit, and the order shows."""
    monkeypatch.setattr(product, "PRODUCT_BITS", 30)
    monkeypatch.setattr(float64, "PRODUCT_BITS", 30)
    left, right = make_uniform("f1", 1, 20, 128), make_uniform("f2", 1, 128, 20)
    order = torch.from_numpy(np.argsort(draw_uniform(3, "order", 128)))
    with CONTEXT.multiply_with("float64"):  # int8 products round nothing, they lose the upper bits
        assert not same(multiply(left, right), multiply(left[:, :, order], right[:, order]))
