"""Integers within limits are returned; anything else is refused with what was expected."""

import numpy as np
import pytest

from seedless.core.checks import check_integer, check_memory
from seedless.core.errors import DataError


@pytest.mark.parametrize("value", [1, 5, np.int64(5), np.uint8(1)])
def test_an_integer_within_the_limits_is_returned_as_int(value):
    found = check_integer("size", value, 1, 5, error=DataError)
    assert type(found) is int
    assert found == value


@pytest.mark.parametrize("value", [0, 6, True, 2.0, "2", None, float("nan")])
def test_anything_else_is_refused(value):
    with pytest.raises(DataError, match="expected size to be an integer from 1 to 5, got"):
        check_integer("size", value, 1, 5, error=DataError)


def test_without_an_upper_limit():
    assert check_integer("size", 2**80, 1, error=DataError) == 2**80
    with pytest.raises(DataError, match="expected size to be an integer >= 1, got 0"):
        check_integer("size", 0, 1, error=DataError)


def test_more_memory_than_there_is_is_refused_before_it_is_asked_for():
    check_memory("two records", 10**6, error=DataError)
    with pytest.raises(DataError, match="many records need 1,000,000,000 GB of memory"):
        check_memory("many records", 10**18, error=DataError)
