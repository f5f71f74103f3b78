"""In the experiment, arrays without content have one."""

from types import SimpleNamespace

import numpy as np
import pytest

from seedless.script_recorder.numpy_memory import fill_empty_arrays


@pytest.mark.parametrize("dtype", ["f4", "i8", "U3", "O", [("a", "f4"), ("b", "i2")]])
def test_arrays_without_content_are_filled(dtype):
    made = []

    def make(*args, **kwargs):
        """An array that holds something else than zeros."""
        made.append(np.full((2, 3), 7).astype(dtype) if dtype != "O" else np.empty(2, object))
        return made[-1]

    numpy = SimpleNamespace(empty=make, empty_like=make)
    fill_empty_arrays(numpy)
    expected = np.zeros((2, 3), dtype) if dtype != "U3" else np.full((2, 3), "0")
    for array in (numpy.empty((2, 3)), numpy.empty_like(made)):
        assert dtype == "O" or (array == expected).all()
