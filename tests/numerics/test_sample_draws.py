"""Draws for samples: the same words in numpy and torch, in the ranges that torch's draws have."""

import numpy as np
import pytest
import torch

import seedless
from seedless.core.errors import NumericsError
from seedless.numerics.counter_random import philox, philox_array
from seedless.numerics.dropout import sample_words
from seedless.numerics.forward_calls import hash_layer
from seedless.numerics.sample_draws import draw_uniform_like, draw_words

KEYS = torch.tensor([5, -7, 2**62 + 11, 0])
LAYER = hash_layer("encoder.drop", 2, 1)


def test_the_words_are_those_of_torch():
    for size in (1, 6, 64, 4 * 4096 + 3):
        with seedless.dropout_keys(samples=KEYS, epoch=9):
            words = draw_words((4, size), layer=LAYER, axis=0, device=torch.device("cpu"))
        assert torch.equal(words, sample_words(size, samples=KEYS, epoch=9, layer=LAYER))


def test_philox_of_arrays_is_philox():
    rng = np.random.default_rng(0)
    words = [rng.integers(0, 2**32, 100) for _ in range(6)]
    slow = philox(tuple(words[:4]), tuple(words[4:]))
    fast = philox_array(
        *(tuple(w.astype(np.uint64) for w in part) for part in (words[:4], words[4:]))
    )
    assert all(map(np.array_equal, slow, fast))


def test_named_layers_are_no_numbered_ones():
    assert hash_layer("a", 0, 0) >= 2**63
    names = {hash_layer(name, call, draw) for name in "abc" for call in range(9) for draw in (0, 1)}
    assert len(names) == 54
    x = torch.ones(4, 32)
    low = LAYER & 0xFFFFFFFF
    with seedless.dropout_keys(samples=KEYS, epoch=0):
        numbered = seedless.Dropout(0.5, layer=low)(x) != 0
        named = draw_words((4, 32), layer=LAYER, axis=0, device=x.device) < 2**31
    assert not torch.equal(numbered, named)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_uniform_numbers_are_below_one(dtype):
    with seedless.dropout_keys(samples=KEYS, epoch=0):
        drawn = draw_uniform_like(torch.empty(4, 50_000, dtype=dtype), layer=LAYER)
    assert drawn.dtype == dtype
    assert 0 <= drawn.min() < 0.01
    assert 0.99 < drawn.max() < 1
    assert float(drawn.double().mean()) == pytest.approx(0.5, abs=0.01)


def test_integers_are_not_drawn():
    with seedless.dropout_keys(samples=KEYS, epoch=0), pytest.raises(NumericsError, match="int64"):
        draw_uniform_like(torch.zeros(4, dtype=torch.int64), layer=LAYER)
