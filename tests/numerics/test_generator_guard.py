"""The guard sees every global generator move, and accuses no one who used none."""

import random

import numpy as np
import pytest
import torch

from seedless.core.errors import NumericsError
from seedless.numerics.counter_random import philox
from seedless.numerics.dropout import dropout
from seedless.numerics.generator_guard import GeneratorGuard

MOVES = {
    "torch's CPU generator": [
        lambda: torch.rand(1),
        lambda: torch.randperm(3),
        lambda: torch.nn.functional.dropout(torch.ones(3)),
        lambda: torch.nn.Linear(2, 2),
        lambda: torch.seed(),
    ],
    "numpy's np.random": [
        lambda: np.random.rand(),
        lambda: np.random.shuffle([1, 2, 3]),
        lambda: np.random.randint(2),
        lambda: np.random.seed(5),
    ],
    "Python's random": [
        lambda: random.random(),
        lambda: random.shuffle([1, 2, 3]),
        lambda: random.gauss(),
        lambda: random.seed(5),
    ],
}


@pytest.mark.parametrize(
    ("name", "move"),
    [(name, move) for name, moves in MOVES.items() for move in moves],
    ids=[f"{name}-{k}" for name, moves in MOVES.items() for k in range(len(moves))],
)
def test_a_generator_that_moved_is_named(name, move):
    guard = GeneratorGuard()
    move()
    assert guard.moved() == (name,)
    with pytest.raises(NumericsError, match=f"{name} moved while testing.*seedless.Dropout"):
        guard.check("while testing")


def test_a_second_normal_draw_is_seen_although_the_words_do_not_change():
    """numpy and Python make normals in pairs and keep one: the state is in that, too."""
    np.random.seed(1)
    np.random.standard_normal()
    random.seed(1)
    random.gauss()
    guard = GeneratorGuard()
    np.random.standard_normal()
    random.gauss()
    assert guard.moved() == ("Python's random", "numpy's np.random")


def test_several_are_named_together():
    guard = GeneratorGuard()
    for moves in MOVES.values():
        moves[0]()
    with pytest.raises(NumericsError) as caught:
        guard.check("in epoch 3")
    assert all(name in str(caught.value) for name in MOVES)


def test_generators_of_their_own_and_counters_are_not_accused():
    guard = GeneratorGuard()
    np.random.default_rng(3).random(5)
    random.Random(3).random()
    torch.rand(3, generator=torch.Generator().manual_seed(1))
    keys = torch.arange(4)
    dropout(torch.ones(4, 8), 0.5, samples=keys, epoch=1, layer=0)
    philox((keys, keys, keys, keys), (keys, keys))
    assert guard.moved() == ()
    guard.check("anywhere")


def test_looking_moves_nothing():
    guard = GeneratorGuard()
    for _ in range(3):
        GeneratorGuard().moved()
    assert guard.moved() == ()
