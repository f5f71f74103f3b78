"""One unbroken training with each framework, for all tests."""

import functools

import pytest

from tests.integrations.parts import load_loop


@pytest.fixture(scope="session")
def train_unbroken(tmp_path_factory):
    """A function from the name of a framework to the folder of its unbroken training."""

    @functools.cache
    def train(framework):
        return load_loop(framework)(tmp_path_factory.mktemp(framework))

    return train
