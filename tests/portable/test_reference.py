"""Every registered overload against its reference in Python's integers and floats, bit for bit."""

import copy

import numpy as np
import pytest
import torch

from seedless.portable.ops.registry import REGISTRY, REPLACED
from tests.portable.reference import REFERENCES
from tests.portable.reference_cases import CASES, STEPS, some


def to_arrays(value):
    if isinstance(value, torch.Tensor):
        return value.clone().numpy()
    if isinstance(value, list | tuple):
        return type(value)(to_arrays(part) for part in value)
    return value


def assert_same(found, expected):
    if isinstance(expected, tuple | list):
        for one, two in zip(found, expected, strict=False):  # what aten returns and no one reads
            assert_same(one, two)
        return
    found, expected = found.numpy(), np.asarray(expected)
    assert found.shape == expected.shape
    if found.dtype == np.float32:
        assert expected.dtype == np.float32
        zeros = (found == 0) & (expected == 0)  # of either sign
        assert (zeros | (found.view(np.int32) == expected.view(np.int32))).all(), (found, expected)
    else:
        assert (found == expected).all()


def get_reference(name):
    return REFERENCES[name.partition(".")[0]]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_an_overload_equals_its_reference(case):
    name, *given = case
    options = given.pop() if isinstance(given[-1], dict) else {}
    ours, theirs = copy.deepcopy(given), [to_arrays(value) for value in given]
    known = {key: value for key, value in options.items() if key in ("dim", "descending")}
    assert_same(REGISTRY[f"aten::{name}"](*ours, **options), get_reference(name)(*theirs, **known))
    changed = [(a, b) for a, b in zip(ours, theirs, strict=True) if isinstance(a, torch.Tensor)]
    for one, two in changed:  # running statistics
        assert_same(one, two)


@pytest.mark.parametrize("case", STEPS, ids=lambda case: case[0])
def test_an_optimizers_step_equals_its_reference(case):
    name, options, lists = case
    given = [[some(7, name=f"{i}{k}", shift=2.5 * (k > 2)) for i in range(2)] for k in range(lists)]
    if lists == 6:
        given[3] = [square.abs() for square in given[3]]
        given[5] = [torch.tensor(1.0), torch.tensor(1234.0)]
    theirs = [to_arrays(part) for part in given]
    rate = torch.tensor(options["lr"], dtype=torch.float64)
    ours = options | ({"lr": rate} if name.endswith("tensor_lr") else {})
    REGISTRY[f"aten::{name}"](*given, **ours)
    get_reference(name)(*theirs, **options)
    for one, two in zip(given, theirs, strict=True):
        for a, b in zip(one, two, strict=True):
            assert_same(a, b)


def test_every_registered_overload_has_a_reference_and_a_case():
    assert set(REFERENCES) == REPLACED
    assert {f"aten::{case[0]}" for case in (*CASES, *STEPS)} == set(REGISTRY)


NATIVE = {
    "sum.dim_IntList": (torch.sum, (some(9, 3000), [1])),
    "mm": (torch.mm, (some(20, 300), some(300, 20))),
    "_softmax": (torch._softmax, (some(9, 40, scale=9.0), 1, False)),
    "exp": (torch.exp, (some(9000, scale=80.0),)),
    "native_layer_norm": (torch.native_layer_norm, (some(9, 60), [60], None, None, 1e-5)),
}


@pytest.mark.parametrize("name", sorted(NATIVE))
def test_negative_control_torchs_own_op_is_not_the_reference(name):
    native, given = NATIVE[name]
    expected = get_reference(name)(*(to_arrays(value) for value in given))
    assert_same(REGISTRY[f"aten::{name}"](*given), expected)
    with pytest.raises(AssertionError):
        assert_same(native(*given), expected)
