"""Bases against their definitions in many digits, and their laws by exactly rounded sums."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import seedless
from seedless.init.bases import BASES
from seedless.numerics.exact_sums import exact_gram

ALWAYS_ORTHONORMAL = ("dct", "hartley", "sinusoidal", "walsh")
SIZES = range(1, 301)


def define(name: str, size: int, i: int, j: int) -> mpmath.mpf:
    """The textbook definition of an entry, in the arithmetic of the working precision."""
    mp, pi = mpmath, mpmath.pi
    if name == "dct":
        scale = mp.sqrt(mp.mpf(1 if i == 0 else 2) / size)
        return scale * mp.cos(pi * i * (2 * j + 1) / (2 * size))
    if name == "hartley":
        angle = 2 * pi * i * j / size
        return (mp.cos(angle) + mp.sin(angle)) / mp.sqrt(size)
    if name == "sinusoidal":
        scale = mp.sqrt(mp.mpf(1 if i == size - 1 else 2) / size)
        return scale * mp.sin(pi * (i + 1) * (2 * j + 1) / (2 * size))
    sign = -1 if (i & j).bit_count() % 2 else 1
    if name == "hadamard":
        return sign / mp.sqrt(size)
    odd = size
    while odd % 2 == 0:
        odd //= 2
    block = -1 if (i // odd & j // odd).bit_count() % 2 else 1
    power = size // odd
    return block / mp.sqrt(power) * define("dct", odd, i % odd, j % odd)


@pytest.mark.parametrize("name", sorted(BASES))
@given(size=st.integers(1, 90), data=st.data())
@settings(max_examples=40, deadline=None)
def test_every_entry_is_the_float_nearest_to_its_definition(name, size, data):
    i = data.draw(st.integers(0, size - 1))
    j = data.draw(st.integers(0, size - 1))
    with mpmath.workdps(60):
        exact = define(name, size, i, j)
        nearest = 0.0 if abs(exact) < mpmath.mpf(10) ** -50 else float(Fraction(*_ratio(exact)))
    assert seedless.basis(name, size)[i, j] == nearest


def _ratio(value: mpmath.mpf) -> tuple[int, int]:
    mantissa, exponent = value.man_exp  # unsigned
    mantissa = -mantissa if value < 0 else mantissa
    return (mantissa << exponent, 1) if exponent >= 0 else (mantissa, 1 << -exponent)


@pytest.mark.parametrize("name", ALWAYS_ORTHONORMAL)
def test_rows_are_orthonormal_for_every_size(name):
    for size in SIZES:
        error = np.abs(exact_gram(seedless.basis(name, size)) - np.eye(size)).max()
        assert error <= 1e-14, f"{name} of size {size}: {error}"


@pytest.mark.parametrize("name", ALWAYS_ORTHONORMAL)
@given(size=st.integers(2, 300), data=st.data())
@settings(max_examples=30, deadline=None)
def test_rows_are_orthonormal_by_exactly_rounded_sums(name, size, data):
    rows = seedless.basis(name, size)
    i = data.draw(st.integers(0, size - 1))
    j = data.draw(st.integers(0, size - 1))
    inner = math.fsum(float(a) * float(b) for a, b in zip(rows[i], rows[j], strict=True))
    assert abs(inner - (i == j)) <= 1e-14


def test_hadamard_is_orthonormal_for_powers_of_two_alone():
    for size in SIZES:
        error = np.abs(exact_gram(seedless.basis("hadamard", size)) - np.eye(size)).max()
        if size & (size - 1) == 0:
            assert error <= 1e-14
        else:
            assert error > 1e-3, f"size {size}"


def test_equal_real_entries_are_equal_bits():
    # sqrt(1/2) and sqrt(2/2) cos(pi/4) are one number; two roundings would tell them apart.
    column = seedless.basis("dct", 2)[:, 0]
    assert column[0] == column[1] == math.sqrt(0.5)
    column = seedless.basis("sinusoidal", 2)[:, 0]
    assert column[0] == column[1]


def test_the_last_row_of_the_sine_basis_has_length_one():
    for size in (1, 2, 5, 64, 160):
        last = seedless.basis("sinusoidal", size)[-1]
        assert math.isclose(math.fsum(last * last), 1.0, abs_tol=1e-15)


def test_no_entry_is_a_negative_zero():
    for name in BASES:
        entries = seedless.basis(name, 12)
        assert not np.signbit(entries[entries == 0]).any()


@pytest.mark.parametrize("size", [0, -3, 2.0, True, "8"])
def test_a_size_that_is_no_size_is_refused(size):
    with pytest.raises(seedless.SeedlessError, match="size of a basis to be an integer >= 1"):
        seedless.basis("dct", size)


def test_an_unknown_basis_names_the_nearest_one():
    with pytest.raises(seedless.SeedlessError, match=r"'hadamar'.*did you mean 'hadamard'.*walsh"):
        seedless.basis("hadamar", 8)
