"""The test of int8 products: it passes here, and finds each way in which they can be wrong."""

import pytest
import torch

from seedless.core.errors import NumericsError
from seedless.portable import engine_check
from seedless.portable.context import CONTEXT
from seedless.portable.exact.engines import int8
from seedless.portable.mode import portable

CPU = torch.device("cpu")
PAIRS, VALUES, LONGEST = engine_check.CASES
EXACT = torch._int_mm


@pytest.fixture(autouse=True)
def untested():
    """Let each test see a device that was not tested before, and leave none behind."""
    engine_check.check_int8_once.cache_clear()
    yield
    engine_check.check_int8_once.cache_clear()


def test_int8_products_are_exact_here():
    assert engine_check.find_wrong_cases(CPU) == []


def saturate_at(limit):
    return lambda left, right: EXACT(left, right).clamp(-limit, limit - 1)


def miss_one_product(left, right):
    """Wrong by one where the digits -32 and 32 meet in the first place of a row and a column."""
    out = EXACT(left, right)
    out[(left[:, :1] == -32) & (right[:1] == 32)] += 1
    return out


def round_to_bfloat16(left, right):
    return (left.float() @ right.float()).bfloat16().to(torch.int32)


def read_as_unsigned(left, right):
    return EXACT((left.long() & 127).to(torch.int8), right)


def forget_the_last_rows(left, right):
    """Wrong in what remains of 64 rows at a time."""
    out = EXACT(left, right)
    if len(out) > 64:
        out[len(out) // 64 * 64 :] = 0
    return out


def lose_the_lowest_bit(left, right):
    return EXACT(left, right) // 2 * 2


WRONG = {
    "sums saturate at int16": (saturate_at(1 << 15), {LONGEST}),
    "sums saturate at 28 bits": (saturate_at((1 << 28) - 40_000_000), {LONGEST}),
    "one pair of digits is wrong": (miss_one_product, {PAIRS}),
    "sums are rounded to bfloat16": (round_to_bfloat16, {PAIRS, VALUES, LONGEST}),
    "digits have no sign": (read_as_unsigned, {PAIRS, VALUES, LONGEST}),
    "a remainder of rows is forgotten": (forget_the_last_rows, {PAIRS, VALUES}),
    "the lowest bit of a sum is lost": (lose_the_lowest_bit, {PAIRS, VALUES}),
}


@pytest.mark.parametrize("name", WRONG)
def test_negative_control_wrong_int8_products_are_found(name, monkeypatch):
    product, cases = WRONG[name]
    monkeypatch.setattr(torch, "_int_mm", product)
    assert cases <= set(engine_check.find_wrong_cases(CPU))


def test_a_device_with_wrong_products_is_refused_and_named(monkeypatch):
    monkeypatch.setattr(torch, "_int_mm", saturate_at(1 << 15))
    with (
        CONTEXT.multiply_with("int8"),
        pytest.raises(NumericsError, match=r"engine int8 on cpu.*SEEDLESS_ENGINE=float64"),
        portable(),
    ):
        pass
    with portable():  # the float64 engine is not concerned
        pass


def test_a_device_without_int8_products_is_refused_and_named(monkeypatch):
    def lack(*_):
        raise NotImplementedError("no kernel for int8")

    monkeypatch.setattr(torch, "_int_mm", lack)
    with (
        CONTEXT.multiply_with("int8"),
        pytest.raises(NumericsError, match="int8 matrix products on cpu, which has none"),
        portable(),
    ):
        pass


def test_a_device_is_tested_once(monkeypatch):
    calls, original = [], engine_check.find_wrong_cases
    monkeypatch.setattr(
        engine_check, "find_wrong_cases", lambda device: (calls.append(device), original(device))[1]
    )
    for _ in range(3):
        with CONTEXT.multiply_with("int8"), portable():
            pass
        with portable():
            pass
    assert calls == [CPU]


def test_the_longest_sums_reach_the_limits_that_the_engine_allows(monkeypatch):
    """The largest int32 sum of the test is as large as any sum that the engine can make."""
    largest = []

    def note(left, right):
        out = EXACT(left, right)
        largest.append(int(out.abs().max()))
        return out

    monkeypatch.setattr(torch, "_int_mm", note)
    ((rows, columns),) = engine_check.CASES[LONGEST]()
    assert engine_check._is_exact((rows, columns), CPU)
    assert len(rows[0]) == int8.MAX_INT8_ADDENDS
    assert max(largest) > 0.98 * 4 * int8.MAX_INT8_ADDENDS * int8.MAX_DIGIT**2
