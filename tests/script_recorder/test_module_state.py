"""The buffers of the modules that a script calls, whatever their kind."""

import pytest
import torch
from torch import nn

from seedless.script_recorder.module_state import BufferList
from seedless.script_recorder.step_recorder import _list_shapes


@pytest.mark.filterwarnings("ignore")
def test_a_scripted_module_beside_a_plain_one_is_no_error():
    norm = nn.BatchNorm1d(3)
    buffers = BufferList()
    buffers.add(nn.Sequential(norm, torch.jit.script(nn.BatchNorm1d(3))))
    read = buffers.take()
    assert [id(one) for one in read] == [id(one) for one in norm.buffers()]


@pytest.mark.filterwarnings("ignore")
def test_a_nested_tensor_has_no_shape_to_show():
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    assert _list_shapes([nested, torch.ones(2, 3)]) == [[2, 3]]
