"""Keys against independent computations: mpmath, exact fractions, hashlib."""

from __future__ import annotations

import hashlib
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from seedless.ordering import make_order
from seedless.ordering.samples import read_samples, sort_bytes
from seedless.ordering.sort_keys import (
    absolute_sums,
    content_keys,
    golden_hash,
    golden_hashes,
    seeded_keys,
)


@pytest.mark.parametrize(
    "value", [0, 1, 2, 12345678901, 0.5, 1e-45, 5e-324, 3.7e42, 12000.375, -2.5, 1 / 3]
)
def test_golden_hash_against_mpmath(value: float) -> None:
    with mpmath.workprec(3000):
        product = (mpmath.sqrt(5) - 1) / 2 * mpmath.mpf(value)
        expected = int(mpmath.floor((product - mpmath.floor(product)) * 2**64))
    assert golden_hash(value) == expected


def test_golden_keys_and_order_by_hand() -> None:
    X = np.array([[1.0, -2.0], [0.5, 0.25], [4.0, 0.0], [-7.0, 1.0]])
    with mpmath.workprec(200):
        phi = (mpmath.sqrt(5) - 1) / 2
        keys = [mpmath.frac(phi * total + 3 * phi) for total in (3, 0.75, 4, 8)]
    expected = sorted(range(4), key=lambda row: keys[row])
    assert make_order("golden", X).epoch(3).tolist() == expected


def test_sums_are_exactly_rounded() -> None:
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((5, 7, 9)) * 10.0 ** rng.integers(-20, 20, (5, 7, 9))).astype("f4")
    exact = [float(sum(abs(Fraction(float(x))) for x in row.ravel())) for row in X]
    assert absolute_sums(X).tolist() == exact
    assert absolute_sums(X[:, ::-1, ::-1]).tolist() == exact
    assert absolute_sums([[1, -2], [3, -4]]).tolist() == [3.0, 7.0]


def test_content_keys_are_keyed_blake2b_of_the_digest() -> None:
    samples = read_samples(np.random.default_rng(0).random((9, 4)), None)
    for epoch in (0, 1, 2**40):
        key = b"seedless order content " + epoch.to_bytes(8, "little")
        expected = [
            int.from_bytes(hashlib.blake2b(bytes(d), digest_size=8, key=key).digest(), "little")
            for d in samples.digests
        ]
        assert content_keys(samples, epoch).tolist() == expected


def test_canonical_order_is_by_digest_then_label() -> None:
    X = np.array([[2.0], [1.0], [2.0], [1.0], [3.0]])
    labels = np.array([300, 5, 4, -1, 0])
    samples = read_samples(X, labels)
    identity = [(bytes(d), v) for d, v in zip(samples.digests, samples.labels, strict=True)]
    assert identity == sorted(identity)
    assert sorted(samples.rows.tolist()) == [0, 1, 2, 4]
    assert samples.rows.tolist().index(2) + 1 == samples.rows.tolist().index(0)


def test_sort_bytes_is_the_order_of_byte_strings() -> None:
    matrix = np.random.default_rng(0).integers(0, 3, (200, 5), dtype=np.uint8)
    expected = sorted(range(200), key=lambda row: bytes(matrix[row]))
    assert sort_bytes(matrix).tolist() == expected


def test_seeded_keys_differ_between_seeds_and_epochs() -> None:
    samples = read_samples(np.arange(50.0)[:, None], None)
    pairs = [(0, 1), (1, 0), (0, 2**32), (2**32, 0), (2**63, 0), (0, 0), (2**64 - 1, 0)]
    drawn = [seeded_keys(samples, epoch, seed) for seed, epoch in pairs]
    assert len(np.unique(np.concatenate(drawn))) == 50 * len(pairs)


def test_golden_hashes_of_close_sums_differ() -> None:
    sums = 1000 + np.arange(1000) * 2.0**-43
    assert len(np.unique(golden_hashes(sums))) == 1000
