"""One operation sent and executed alone: every argument arrives, and nothing else is executed."""

import base64

import pytest
import torch
from torch import nn

from seedless.audit.dispute.op_call import (
    describe_call,
    describe_tensor,
    execute_call,
    find_overload,
    read_tensor,
)
from seedless.core.errors import SeedlessError
from seedless.portable.mode import portable
from seedless.script_recorder.op_recorder import OpRecorder
from tests.tiny import flags_restored


@pytest.fixture(autouse=True)
def _leave_no_flags():
    with flags_restored():
        yield


X, W = torch.linspace(-2, 2, 24).reshape(4, 6), torch.linspace(-1, 1, 18).reshape(6, 3)
CALLS = {
    "aten.mm.default": ((X, W), {}),
    "aten.sum.dim_IntList": ((X, [0]), {"keepdim": True}),
    "aten.native_layer_norm.default": ((X, [6], None, None, 1e-5), {}),
    "aten._to_copy.default": ((X,), {"dtype": torch.float64}),
    "aten.index.Tensor": ((X, [torch.tensor([2, 0])]), {}),
    "aten.cat.default": (([X, X + 1], 1), {}),
    "aten.add_.Tensor": ((X.clone(), X), {"alpha": 2}),
    "aten._fused_sgd_.tensor_lr": (
        ([X.clone()], [X], [X + 1]),
        {
            "weight_decay": 0.1,
            "momentum": 0.9,
            "lr": torch.tensor(0.1),
            "dampening": 0.0,
            "nesterov": False,
            "maximize": False,
            "is_first_step": False,
        },
    ),
}


@pytest.mark.parametrize("op", CALLS)
def test_an_operation_executed_alone_has_the_record_it_had(op):
    args, kwargs = CALLS[op]
    call = describe_call(args, kwargs)
    recorder = OpRecorder(nn.Module())
    with torch.no_grad(), portable(), recorder:
        find_overload(op)(*args, **kwargs)
    (expected,) = recorder.records
    found = execute_call(op, call)
    assert found.outputs
    assert (found.op, found.inputs, found.settings) == (op, expected.inputs, expected.settings)
    assert (found.outputs, found.shapes) == (expected.outputs, expected.shapes)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor(1.5),
        torch.empty(0, 3),
        torch.tensor([[True], [False]]),
        torch.tensor([-0.0, float("nan"), float("inf")]),
        torch.arange(6).reshape(2, 3).t(),
    ],
)
def test_a_tensor_arrives_with_every_bit(tensor):
    found = read_tensor(describe_tensor(tensor))
    assert (found.dtype, found.shape) == (tensor.dtype, tensor.shape)
    assert describe_tensor(found) == describe_tensor(tensor)


GOOD = describe_tensor(torch.zeros(2))


@pytest.mark.parametrize(
    "values",
    [
        None,
        [],
        {},
        {**GOOD, "dtype": "float16"},
        {**GOOD, "dtype": []},
        {**GOOD, "shape": [3]},
        {**GOOD, "shape": [-2]},
        {**GOOD, "shape": [True, 2]},
        {**GOOD, "shape": [2.0]},
        {**GOOD, "shape": [2**40]},
        {**GOOD, "shape": [0, 2**62]},
        {**GOOD, "shape": [1] * 20 + [2]},
        {**GOOD, "shape": 2},
        {**GOOD, "data": "????"},
        {**GOOD, "data": 5},
        {**GOOD, "more": 1},
    ],
)
def test_what_is_no_tensor_is_refused(values):
    with pytest.raises(SeedlessError, match="expected a tensor as dtype, shape and base64"):
        read_tensor(values)


@pytest.mark.parametrize(
    "op",
    [
        "aten.mm",
        "aten.mm.nothing",
        "aten.__class__.default",
        "aten._dir.default",
        "prims.add.default",
        "os.system.default",
        "aten.from_file.default",
        "aten.rand.default",
        "aten.dropout.default",
        "aten.resize_.default",
    ],
)
def test_what_is_no_portable_operation_is_not_executed(op):
    with pytest.raises(SeedlessError):
        execute_call(op, describe_call(([2],) if "rand" in op else ("/etc/passwd",), {}))


@pytest.mark.parametrize(
    ("op", "args"),
    [
        ("aten.zeros.default", ([2**20, 2**20],)),
        ("aten.new_zeros.default", (torch.zeros(1), [2**34])),
        ("aten.constant_pad_nd.default", (torch.zeros(1), [0, 2**34])),
        ("aten.repeat.default", (torch.zeros(1), [2**34])),
    ],
)
def test_results_that_would_fill_the_memory_are_not_made(op, args):
    with pytest.raises(SeedlessError, match=r"would return [\d,]+ bytes; at most 1,073,741,824"):
        execute_call(op, describe_call(args, {}))


@pytest.mark.parametrize(
    "call",
    [
        None,
        {},
        {"arguments": [], "options": []},
        {"arguments": 3, "options": {}},
        {"arguments": [{"tensor": GOOD, "float": "0x1p0"}], "options": {}},
        {"arguments": [{"unknown": 1}], "options": {}},
        {"arguments": [{"float": "one"}], "options": {}},
        {"arguments": [{"dtype": "float16"}], "options": {}},
        {"arguments": [1.5], "options": {}},
        {"arguments": [1, 2, 3, 4], "options": {}},
        {"arguments": [{"tensor": GOOD}, {"tensor": GOOD}], "options": {}},
        {"arguments": [], "options": {"__class__": 1}},
    ],
)
def test_arguments_in_another_form_are_refused(call):
    with pytest.raises(SeedlessError):
        execute_call("aten.mm.default", call)


def test_an_argument_that_cannot_be_sent_is_refused():
    with pytest.raises(SeedlessError, match="cannot be sent"):
        describe_call((torch.float16,), {})


def test_the_elements_are_base64():
    assert base64.b64decode(GOOD["data"]) == bytes(8)
