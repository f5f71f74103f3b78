"""What memory held before it was written is no difference, whoever made the memory."""

import copy
import io
import pickle

import pytest
import torch
from torch import nn

from seedless.audit.first_difference import find_first_difference
from seedless.script_recorder.op_record import digest_tensor
from seedless.script_recorder.op_recorder import OpRecorder


def watch(run):
    with OpRecorder(nn.Identity()) as seen:
        run()
    return seen.records


def leave_other_bytes_in_free_memory(value):
    """Fill blocks of many sizes and free them: the next tensors get this memory."""
    blocks = [torch.full((4 * size,), value) for size in (1, 3, 4, 16, 64) for _ in range(50)]
    del blocks


SAMPLES = torch.arange(12.0).view(3, 4)
MODEL = nn.Linear(4, 3).requires_grad_(False)
SAVED = io.BytesIO()
torch.save({"samples": SAMPLES}, SAVED)


def load():
    SAVED.seek(0)
    return torch.load(SAVED)["samples"] * 2


def set_from_a_storage():
    return torch.empty(0).set_(SAMPLES.untyped_storage(), 0, (3, 4), (4, 1)) * 2


def set_from_a_tensor():
    return torch.empty(0).set_(SAMPLES) * 2


def copy_a_storage():
    target = torch.empty(4)
    target.untyped_storage().copy_(torch.ones(4).untyped_storage())
    return target * 2


def resize():
    return torch.ones(4).resize_(64).fill_(1.0) * 2


def write_into_a_row_of_memory():
    target = torch.empty(5, 6)
    torch.mm(SAMPLES, torch.ones(4, 6), out=target[:3])
    target[3:] = 0
    return target.sum()


ODD = {
    "deepcopy of a tensor": lambda: copy.deepcopy(SAMPLES) * 2,
    "deepcopy of a model": lambda: copy.deepcopy(MODEL)(SAMPLES),
    "deepcopy of a slice": lambda: copy.deepcopy(SAMPLES[1:]) * 2,
    "clone of a storage": lambda: torch.empty(0).set_(SAMPLES.untyped_storage().clone(), 0, (12,)),
    "pickle": lambda: pickle.loads(pickle.dumps(MODEL))(SAMPLES),
    "torch.load": load,
    "set_, storage": set_from_a_storage,
    "set_, tensor": set_from_a_tensor,
    "storage.copy_": copy_a_storage,
    "resize_": resize,
    "out=": write_into_a_row_of_memory,
    "share_memory_": lambda: torch.ones(4).share_memory_() * 2,
}


@pytest.mark.parametrize("name", ODD)
def test_two_equal_runs_are_equal_whatever_free_memory_holds(name):
    leave_other_bytes_in_free_memory(1.0)
    first = watch(ODD[name])
    leave_other_bytes_in_free_memory(2.0)
    found = find_first_difference(first, watch(ODD[name]))
    assert found is None, found.describe()


def test_a_copy_of_other_values_still_differs():
    """Negative control: what a deepcopy holds is compared where it is used."""
    one, two = (watch(lambda x=x: copy.deepcopy(x) * 2) for x in (SAMPLES, SAMPLES + 1))
    found = find_first_difference(one, two)
    assert (found.kind, found.op) == ("source", "aten.copy_.default")


def test_memory_that_is_read_before_it_is_written_still_differs():
    def read(value):
        storage = torch.UntypedStorage(48).fill_(value)
        return watch(lambda: torch.empty(0).set_(storage, 0, (12,)) * 2)

    found = find_first_difference(read(1), read(2))
    assert (found.kind, found.op) == ("source", "aten.mul.Tensor")
    assert found.names == ("a storage that no operation made",)


def test_digesting_leaves_a_tensor_resizable():
    x = torch.ones(4)
    digest_tensor(x)
    assert x.resize_(8).shape == (8,)


def test_scratch_memory_of_a_recurrent_layer_is_no_difference():
    """Its kernel returns memory for the backward pass, of which it writes only a part."""
    layer = nn.LSTM(16, 8, num_layers=2)
    x = torch.ones(1, 8, 16)

    def train():
        return watch(lambda: layer(x)[0].pow(2).mean().backward())

    leave_other_bytes_in_free_memory(1.0)
    first = train()
    leave_other_bytes_in_free_memory(2.0)
    layer.zero_grad()
    found = find_first_difference(first, train())
    assert found is None, found.describe()
    assert any("rnn" in record.op and record.outputs for record in first)
