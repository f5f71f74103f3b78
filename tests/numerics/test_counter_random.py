"""Philox against Random123's published answers; the same integers from every kind of array."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seedless.core.errors import NumericsError
from seedless.numerics.counter_random import WORD_MASK, draw_uniform, philox, split_uint64
from tests.numerics import reference

WORD = st.integers(0, WORD_MASK)

# kat_vectors of the Random123 distribution, philox4x32 with 10 rounds: counter, key, answer.
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((WORD_MASK,) * 4, (WORD_MASK,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


def as_numpy(words):
    return tuple(np.array(word, dtype=np.int64) for word in words)


def as_torch(words):
    return tuple(torch.tensor(word, dtype=torch.int64) for word in words)


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN)
@pytest.mark.parametrize("kind", [tuple, as_numpy, as_torch])
def test_known_answers(counter, key, answer, kind):
    assert tuple(int(word) for word in philox(kind(counter), kind(key))) == answer


@given(st.tuples(WORD, WORD, WORD, WORD), st.tuples(WORD, WORD))
def test_integers_arrays_and_tensors_agree(counter, key):
    plain = philox(counter, key)
    assert list(plain) == reference.philox(counter, key)
    assert tuple(map(int, philox(as_numpy(counter), as_numpy(key)))) == plain
    assert tuple(map(int, philox(as_torch(counter), as_torch(key)))) == plain


def test_neighbouring_counters_share_no_words():
    blocks = np.arange(5000, dtype=np.int64)
    zero = np.zeros_like(blocks)
    words = np.stack(philox((blocks, zero, zero, zero), (zero, zero)))
    assert len(np.unique(words)) >= 20_000 - 2  # 20,000 draws of 2^32: 0.05 collisions expected


def test_draws_are_uniform_open_and_named():
    values = draw_uniform(0, "layer.weight", 100_001)
    assert values.min() > 0
    assert values.max() < 1
    assert abs(values.mean() - 0.5) < 0.005
    assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 0.01
    assert not np.array_equal(values[:10], draw_uniform(0, "layer.bias", 10))
    assert not np.array_equal(values[:10], draw_uniform(1, "layer.weight", 10))
    np.testing.assert_array_equal(values[:10], draw_uniform(0, "layer.weight", 10))
    counts = np.bincount((values * 64).astype(int), minlength=64)
    chi_square = ((counts - values.size / 64) ** 2 / (values.size / 64)).sum()
    assert chi_square < 120  # 63 degrees of freedom


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, True, "0"])
def test_a_seed_is_64_bits(seed):
    with pytest.raises(NumericsError, match="from 0 to 18446744073709551615"):
        split_uint64(seed)
