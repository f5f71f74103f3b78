"""Laws of portable sums, means and products as a user meets them, over sizes, scales and specials.

Order, chunks, layout and zeros never show. The error is that of float32 or less than twice it, but
for products of opposed rows, whose own weaker bound is stated and tested.
"""

import math
from fractions import Fraction

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seedless.numerics.counter_random import draw_uniform
from seedless.portable.exact.product import multiply
from seedless.portable.mode import portable
from tests.portable.grid_steps import round_with_step
from tests.portable.reference.laws import exact_dot

ANY = st.floats(width=32)
FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)
few = settings(max_examples=20)
ONE_ROUNDING = 2.0**-24


def run(f, *tensors):
    with portable():
        return f(*tensors)


def same(a, b):
    """Equal in every bit, NaNs being one."""
    alike = (a.view(torch.int32) == b.view(torch.int32)) | (a.isnan() & b.isnan())
    return bool(alike.all())


def tensor(values):
    return torch.tensor(values, dtype=torch.float32)


@st.composite
def tables(draw_one, values=FINITE, rows=(1, 5), columns=(2, 40)):
    """A table of any float32 values, small or large."""
    height, width = draw_one(st.integers(*rows)), draw_one(st.integers(*columns))
    row = st.lists(values, min_size=width, max_size=width)
    return tensor(draw_one(st.lists(row, min_size=height, max_size=height)))


@few
@given(tables(ANY), st.randoms(use_true_random=False), st.integers(0, 200))
def test_order_layout_and_zeros_do_not_show_in_sums_and_means(x, random, zeros):
    order = list(range(x.shape[1]))
    random.shuffle(order)
    turned = x.t().contiguous().t()
    padded = torch.cat([x, torch.zeros(len(x), zeros)], 1)[
        :, torch.from_numpy(np.argsort(draw_uniform(0, "zeros", x.shape[1] + zeros)))
    ]
    with portable():
        total, *others = (v.sum(1) for v in (x, x[:, order], turned, padded))
        mean, *means = (v.mean(1) for v in (x, x[:, order], turned))
        others.append(x.t().sum(0))
    assert all(same(total, other) for other in others)
    assert all(same(mean, other) for other in means)


@st.composite
def pairs(draw_one, values=FINITE):
    """Two tables that can be multiplied; their values repeat, so that sums pass several chunks."""
    length, times = draw_one(st.integers(1, 12)), draw_one(st.sampled_from([1, 2, 15, 40]))
    left = draw_one(tables(values, (1, 3), (length, length)))
    right = draw_one(tables(values, (1, 3), (length, length)))
    return left.repeat(1, times), right.repeat(1, times).t()


def multiply_in_chunks(left, right, chunk):
    """Products of chunks of K, their integers added as Python adds them."""
    (p, s), (q, t) = round_with_step(left, [1], 23), round_with_step(right, [0], 23)
    p, q = p.to(torch.int64), q.to(torch.int64)
    parts = [p[:, k : k + chunk] @ q[k : k + chunk] for k in range(0, p.shape[1], chunk)]
    return (sum(parts).to(torch.float64) * s * t).to(torch.float32) + 0.0


@settings(max_examples=25)
@given(pairs(ANY), st.randoms(use_true_random=False), st.integers(1, 128), st.integers(0, 140))
def test_order_chunks_layout_and_zeros_do_not_show_in_products(pair, random, chunk, zeros):
    left, right = pair
    order = list(range(left.shape[1]))
    random.shuffle(order)
    with portable():
        whole = left @ right
        turned = (right.t() @ left.t()).t().contiguous()
        others = [left[:, order] @ right[order], left @ right.contiguous(), turned]
    assert all(same(whole, other) for other in others)
    if left.isfinite().all() and right.isfinite().all():  # infinity times a zero is no number
        wider = torch.cat([left, torch.zeros(len(left), zeros)], 1)
        longer = torch.cat([right, torch.zeros(zeros, right.shape[1])])
        assert same(whole, run(torch.mm, wider, longer))
        assert same(whole, multiply_in_chunks(left, right, chunk))
    assert same(whole[:1], run(torch.mm, left[:1], right))


@few
@given(tables(ANY))
def test_what_is_not_finite_sums_as_in_ieee_arithmetic(x):
    """NaN, or both infinities: NaN; one of them: itself; else finite, or too large for float32."""
    for row, found in zip(x.tolist(), run(lambda v: v.sum(1), x).tolist(), strict=True):
        infinite = {value for value in row if math.isinf(value)}
        if any(map(math.isnan, row)) or len(infinite) == 2:
            assert math.isnan(found)
        elif infinite:
            assert found == infinite.pop()
        else:
            exact = sum(map(Fraction, row), Fraction(0))
            assert math.isfinite(found) or abs(exact) >= Fraction(2) ** 127


@few
@given(pairs(ANY))
def test_a_product_is_not_finite_only_where_its_row_and_column_say_so(pair):
    """Infinity stays in its row and column; a tiny value beside it may turn it into NaN."""
    left, right = pair
    found = run(torch.mm, left, right)
    bad = ~left.isfinite().all(1)[:, None] | ~right.isfinite().all(0)[None, :]
    plain = left.double() @ right.double()
    assert not found[bad & ~plain.isfinite()].isfinite().any()
    huge = plain.abs() >= 2.0**127
    assert found[~bad & ~huge].isfinite().all()


@st.composite
def scaled(draw_one, spreads):
    """Drawn tables of one size, one scale from denormal to huge, and one spread of exponents."""
    length = draw_one(st.integers(2, 600))
    scale = draw_one(st.integers(-140, 50))
    spread = draw_one(st.sampled_from(spreads))
    name = draw_one(st.sampled_from("abcdefgh"))

    def make(part, *shape):
        count = math.prod(shape)
        values = draw_uniform(1, name + part, count) * 2 - 1
        steps = np.floor((draw_uniform(2, name + part, count) * 2 - 1) * spread).astype(int)
        return torch.from_numpy(np.ldexp(values, steps).astype(np.float32)).view(shape)

    left = (make("x", 5, length).double() * 2.0**scale).float()
    return left, make("y", length, 4), 2.0**scale


@settings(max_examples=30)
@given(scaled([0, 1, 2]))
def test_the_error_of_a_product_is_at_most_twice_that_of_float32(drawn):
    """While a row's magnitudes lie within some powers of two of one another."""
    left, right, scale = drawn
    columns = right.t().tolist()
    exact = [[exact_dot(row, column) for column in columns] for row in left.tolist()]
    assert_close(run(torch.mm, left, right), left @ right, exact, scale)


@settings(max_examples=30)
@given(scaled([0, 4, 20, 60]))
def test_the_error_of_a_sum_is_at_most_twice_that_of_float32(drawn):
    """Whatever the magnitudes."""
    left, _, scale = drawn
    sums = [[sum(map(Fraction, row), Fraction(0))] for row in left.tolist()]
    means = [[row[0] / left.shape[1]] for row in sums]
    assert_close(run(lambda x: x.sum(1, True), left), left.sum(1, True), sums, scale)
    assert_close(run(lambda x: x.mean(1, True), left), left.mean(1, True), means, scale)


def assert_close(ours, theirs, exact, scale):
    """Where float32 was exact by luck, one rounding, or half of the least denormal, is allowed."""
    if not theirs.isfinite().all():
        return
    size = max(abs(float(value / Fraction(scale))) for row in exact for value in row)
    allowed = 2 * error(theirs, exact, scale) + ONE_ROUNDING * size + 2.0**-150 / scale
    assert error(ours, exact, scale) <= allowed


def error(found, exact, scale):
    """Root mean square."""
    gaps = [
        float((Fraction(a) - b) / Fraction(scale))
        for row, other in zip(found.tolist(), exact, strict=True)
        for a, b in zip(row, other, strict=True)
    ]
    return math.sqrt(sum(gap**2 for gap in gaps) / len(gaps))


@few
@given(st.lists(FINITE, min_size=2, max_size=60))
def test_a_sum_of_any_values_keeps_its_bound(row):
    """At most n 2^-37 of the largest, and one rounding: better than float32's n 2^-24."""
    exact = sum(map(Fraction, row), Fraction(0))
    if abs(exact) < Fraction(2) ** 127:
        found = Fraction(run(torch.sum, tensor(row)).item())
        largest = Fraction(max(map(abs, row)))
        bound = len(row) * largest / 2**36 + abs(exact) / 2**24 + Fraction(1, 2**149)
        assert abs(found - exact) <= bound


@few
@given(st.integers(8, 40), st.integers(1, 20))
def test_known_limit_a_product_of_opposed_rows_keeps_only_its_own_bound(gap, length):
    """Large meets tiny and tiny meets large: float32 may be better, k 2^-22 max max still holds."""
    tiny = 2.0**-gap
    left = tensor([[1.2345678, *[1.7654321 * tiny] * length]])
    right = tensor([[1.1111111 * tiny], *[[1.3333333]] * length])
    exact = exact_dot(left[0].tolist(), right[:, 0].tolist())
    found = Fraction(multiply(left[None], right[None]).item())
    largest = Fraction(left.max().item()) * Fraction(right.max().item())
    assert abs(found - exact) <= (length + 1) * largest / 2**22


def test_negative_control_plain_arithmetic_breaks_these_laws():
    x = torch.from_numpy((draw_uniform(1, "plain", 6000) * 2 - 1).astype(np.float32)).view(6, 1000)
    order = torch.from_numpy(np.argsort(draw_uniform(2, "plain", 1000)))
    assert not same(x.sum(1), x[:, order].sum(1))
    assert not same(x.mean(1), x[:, order].mean(1))
    y = x[:, order].t().contiguous()
    assert not same(x @ y, x[:, order] @ y[order])
