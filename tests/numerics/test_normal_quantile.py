"""The normal quantile function agrees with scipy's."""

import numpy as np
from scipy.special import ndtri

from seedless.numerics.counter_random import draw_uniform
from seedless.numerics.normal_quantile import normal_quantile


def test_the_normal_quantile_agrees_with_scipys():
    p = np.concatenate(
        [draw_uniform(3, "p", 20_000), [1e-300, 1e-16, 0.075, 0.925, 0.5, 1 - 1e-16]]
    )
    np.testing.assert_allclose(normal_quantile(p), ndtri(p), rtol=2e-14, atol=2e-16)


def test_the_normal_quantile_is_odd():
    p = draw_uniform(5, "p", 1000)
    np.testing.assert_allclose(normal_quantile(p), -normal_quantile(1 - p), rtol=1e-10, atol=1e-12)
