"""The learning rate of every step against its formula."""

import math

import pytest

from seedless.core.config import TrainConfig
from seedless.train.learning_rate import learning_rate_at


def test_the_rate_falls_by_a_cosine_from_epoch_to_epoch():
    config = TrainConfig(epochs=10, rate=0.5)
    assert learning_rate_at(config, 0, 0) == 0.5
    assert learning_rate_at(config, 5, 123) == 0.25  # cos(pi / 2) is 0 here, not 6e-17
    for epoch in range(10):
        expected = 0.5 * (1 + math.cos(math.pi * epoch / 10)) / 2
        assert learning_rate_at(config, epoch, 7) == pytest.approx(expected, rel=1e-15)
    last = [learning_rate_at(config, epoch, 0) for epoch in range(10)]
    assert last == sorted(last, reverse=True)
    assert last[-1] > 0
    assert learning_rate_at(config, 10, 0) == 0  # where the cosine ends, after the last epoch


def test_without_decay_the_rate_stays():
    config = TrainConfig(epochs=4, rate=0.1, decay="none")
    assert {learning_rate_at(config, epoch, epoch) for epoch in range(4)} == {0.1}


def test_the_rate_rises_linearly_over_the_first_steps():
    config = TrainConfig(epochs=10, rate=2.0, warmup_steps=4, decay="none")
    rates = [learning_rate_at(config, 0, step) for step in range(6)]
    assert rates == [0.5, 1.0, 1.5, 2.0, 2.0, 2.0]
    both = TrainConfig(epochs=10, rate=2.0, warmup_steps=4)
    assert learning_rate_at(both, 5, 1) == 0.5  # half by warm-up, half by the cosine
    assert learning_rate_at(both, 5, 3) == 1.0
