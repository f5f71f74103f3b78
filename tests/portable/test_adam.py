"""Adam's step for many parameters at once: the bits of one after another, in few launches."""

import pytest
import torch

from seedless.portable.context import CONTEXT
from seedless.portable.kernels import adam as adam_kernel
from seedless.portable.kernels import launch
from seedless.portable.kernels.launch import find_kernels
from seedless.portable.mode import portable
from seedless.portable.ops.optimizer import adam
from tests.portable.reference_cases import some

SETTINGS = {"lr": 0.01, "beta1": 0.9, "beta2": 0.999, "weight_decay": 0.1, "eps": 1e-8}
CHOICES = {"amsgrad": False, "maximize": False}

needs_kernels = pytest.mark.skipif(
    find_kernels(torch.device("cpu")) is None, reason="no C compiler here to make kernels with"
)


def make_lists(count):
    """Return parameters of several sizes, each at another number of steps; some not contiguous."""
    shapes = [(1 + 7 * i % 50, 3) for i in range(count)]
    lists = [[some(*shape, name=f"{name}{i}") for i, shape in enumerate(shapes)] for name in "pgm"]
    lists[1] = [g.t().contiguous().t() if i % 3 == 0 else g for i, g in enumerate(lists[1])]
    lists[0][-1] = lists[0][-1].t().contiguous().t()  # kernels leave this one out
    squares = [some(*shape, name=f"v{i}").abs() for i, shape in enumerate(shapes)]
    steps = [torch.tensor(float(1 + i * i)) for i in range(count)]
    return [*lists, squares, [], steps]


@needs_kernels
@pytest.mark.parametrize("decoupled", [False, True])
def test_many_parameters_have_the_bits_of_one_after_another(decoupled, monkeypatch):
    launched = []
    real = adam_kernel.launch
    monkeypatch.setattr(
        adam_kernel, "launch", lambda *args: (launched.append(args[0]), real(*args))
    )
    together, apart, plain = (make_lists(170) for _ in range(3))
    adam(*together, decoupled=decoupled, **SETTINGS, **CHOICES)
    assert launched == ["adam"] * 3  # 169 parameters, 80 a launch
    for i in range(170):
        one = [[values[i]] if values else [] for values in apart]
        adam(*one, decoupled=decoupled, **SETTINGS, **CHOICES)
    with CONTEXT.without_kernels():
        adam(*plain, decoupled=decoupled, **SETTINGS, **CHOICES)
    for which in (0, 2, 3):
        for one, two, three in zip(together[which], apart[which], plain[which], strict=True):
            assert torch.equal(one, two)
            assert torch.equal(one, three)


def test_negative_control_a_parameter_at_another_step_moves_otherwise():
    lists, others = make_lists(4), make_lists(4)
    others[-1][1] += 1
    for each in (lists, others):
        adam(*each, decoupled=False, **SETTINGS, **CHOICES)
    same = [torch.equal(one, two) for one, two in zip(lists[0], others[0], strict=True)]
    assert same == [True, False, True, True]


def test_step_counters_are_counted_by_one_op():
    counters = [torch.tensor(float(i)) for i in range(5)]
    with portable(), torch.profiler.profile(acc_events=True) as seen:  # else torch 2.11 warns
        torch._foreach_add_(counters, 1)
    assert [counter.item() for counter in counters] == [1.0, 2.0, 3.0, 4.0, 5.0]
    names = [event.name for event in seen.events()]
    assert names.count("aten::_foreach_add_") == 2  # the call, and what the mode runs for it


def test_additions_in_place_have_the_bits_of_additions():
    x, y = some(40, 40, name="x"), some(40, 40, name="y")
    with portable():
        expected = x + y
        assert torch.equal(x.clone().add_(y), expected)
        assert torch.equal(x.clone().add_(y, alpha=0.3), x + 0.3 * y)
        assert torch.equal(x.clone().add_(0.1), x + 0.1)
        counts = torch.arange(3)
        assert torch.equal(counts.add_(2), torch.tensor([2, 3, 4]))
        columns = torch.zeros(40, 40)
        columns[:, ::2].add_(y[:, 1::2])
    assert torch.equal(columns[:, ::2], y[:, 1::2])
    assert not columns[:, 1::2].any()


def test_a_structure_is_passed_as_it_is():
    table = adam_kernel.AdamTensors()
    assert launch.convert_argument(table) is table
