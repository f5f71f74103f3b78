"""Every replaced op against its twin in Python's integers and floats, bit for bit."""

import copy

import numpy as np
import pytest
import torch

from seedless.portable.ops.registry import HANDLERS
from tests.portable.reference import TWINS
from tests.portable.twin_cases import CASES, STEPS, some


def to_arrays(value):
    if isinstance(value, torch.Tensor):
        return value.clone().numpy()
    if isinstance(value, list | tuple):
        return type(value)(to_arrays(part) for part in value)
    return value


def assert_same(found, twin):
    if isinstance(twin, tuple | list):
        for one, two in zip(found, twin, strict=False):  # what aten returns and no one reads
            assert_same(one, two)
        return
    found, twin = found.numpy(), np.asarray(twin)
    assert found.shape == twin.shape
    if found.dtype == np.float32:
        assert twin.dtype == np.float32
        zeros = (found == 0) & (twin == 0)  # of either sign
        assert (zeros | (found.view(np.int32) == twin.view(np.int32))).all(), (found, twin)
    else:
        assert (found == twin).all()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_an_op_is_its_twin(case):
    name, *given = case
    ours, theirs = copy.deepcopy(given), [to_arrays(value) for value in given]
    assert_same(HANDLERS[name](*ours), TWINS[name](*theirs))
    changed = [(a, b) for a, b in zip(ours, theirs, strict=True) if isinstance(a, torch.Tensor)]
    for one, two in changed:  # running statistics
        assert_same(one, two)


@pytest.mark.parametrize("case", STEPS, ids=lambda case: case[0])
def test_an_optimizers_step_is_its_twin(case):
    name, options, lists = case
    given = [[some(7, name=f"{i}{k}", shift=2.5 * (k > 2)) for i in range(2)] for k in range(lists)]
    if lists == 6:
        given[3] = [square.abs() for square in given[3]]
        given[5] = [torch.tensor(1.0), torch.tensor(1234.0)]
    theirs = [to_arrays(part) for part in given]
    HANDLERS[name](*given, **options)
    TWINS[name](*theirs, **options)
    for ours, twins in zip(given, theirs, strict=True):
        for one, two in zip(ours, twins, strict=True):
            assert_same(one, two)


def test_every_replaced_op_has_a_twin_and_meets_it():
    assert set(TWINS) == set(HANDLERS)
    assert {case[0] for case in (*CASES, *STEPS)} == set(HANDLERS)


NATIVE = {
    "sum": (torch.sum, (some(9, 3000), [1])),
    "mm": (torch.mm, (some(20, 300), some(300, 20))),
    "_softmax": (torch._softmax, (some(9, 40, scale=9.0), 1, False)),
    "exp": (torch.exp, (some(9000, scale=80.0),)),
    "native_layer_norm": (torch.native_layer_norm, (some(9, 60), [60], None, None, 1e-5)),
}


@pytest.mark.parametrize("name", sorted(NATIVE))
def test_negative_control_torchs_own_op_is_not_the_twin(name):
    native, given = NATIVE[name]
    twin = TWINS[name](*(to_arrays(value) for value in given))
    assert_same(HANDLERS[name](*given), twin)
    with pytest.raises(AssertionError):
        assert_same(native(*given), twin)
