"""Draws that a package makes from numpy's global generator are seen, and are the same draws."""

import copy
import pickle

import numpy as np
import pytest

from seedless.script_recorder.numpy_global import make_recorded


@pytest.fixture
def recorded():
    """A generator, the object in its place, and the names of the methods that were called."""
    generator, seen = np.random.RandomState(0), []

    def record(name, method):
        def call(*args, **kwargs):
            seen.append(name)
            return method(*args, **kwargs)

        return call

    return generator, make_recorded(generator, record), seen


def draw(first, second):
    """Draw by turns; the second normal number of each pair is kept for the next call."""
    normal = [one.standard_normal() for one in (first, second, second, first)]
    return [*normal, first.permutation(9).tolist(), second.rand(2).tolist(), second.choice(5)]


def test_the_draws_are_those_of_the_generator(recorded):
    generator, stand_in, seen = recorded
    plain = np.random.RandomState(0)
    assert draw(generator, stand_in) == draw(plain, plain)
    assert seen == ["standard_normal", "standard_normal", "rand", "choice"]


def test_it_passes_for_the_generator(recorded):
    generator, stand_in, _ = recorded
    assert isinstance(stand_in, np.random.RandomState)
    stand_in.seed(3)
    assert generator.rand() == np.random.RandomState(3).rand()
    for make_twin in (lambda one: pickle.loads(pickle.dumps(one)), copy.deepcopy):
        assert make_twin(stand_in).rand() == generator.rand()


def test_a_package_that_takes_the_global_generator_is_seen(scripts):
    text = """
import numpy as np, torch
from scipy import stats
from sklearn.model_selection import train_test_split
weight = torch.zeros(2, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
np.random.seed(0)
rows, _ = train_test_split(np.arange(10))
weight.sum().backward(), optimizer.step()
print(rows.tolist(), np.random.rand(), stats.norm.rvs())
"""
    plain, found = scripts.run(text, recorded=False), scripts.run(text)
    assert found.stdout == plain.stdout
    draws = [(line["call"], line["line"]) for line in found.of_kind("draws")]
    assert ("np.random.permutation", "script.py:8") in draws
