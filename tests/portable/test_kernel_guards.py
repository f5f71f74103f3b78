"""What must not reach a fused kernel: wrong sizes, tensors that are no memory, other threads."""

import os
import threading
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from seedless.portable import self_test
from seedless.portable.batch.microbatch import Split
from seedless.portable.context import CONTEXT
from seedless.portable.exact import rounding_grid
from seedless.portable.kernels import kernel_cache
from seedless.portable.kernels.launch import find_kernels
from seedless.portable.mode import portable
from seedless.portable.ops.registry import REGISTRY
from tests.portable.reference_cases import some

CPU = torch.device("cpu")
ones = torch.ones
WRONG = {
    "products": lambda: torch.mm(ones(3, 129), ones(130, 4)),
    "batches of products": lambda: torch.bmm(ones(2, 3, 129), ones(2, 130, 4)),
    "linear": lambda: F.linear(ones(3, 129), ones(4, 130)),
    "convolution": lambda: F.conv2d(ones(1, 130, 2, 2), ones(3, 129, 1, 1)),
    "transposed": lambda: F.conv_transpose2d(ones(1, 130, 2, 2), ones(129, 3, 1, 1)),
    "layer norm": lambda: F.layer_norm(ones(3, 4), (4,), weight=ones(2)),
    "batch norm": lambda: torch.native_batch_norm(
        ones(3, 4), ones(3), None, None, None, True, 0.1, 1e-5
    ),
    "softmax": lambda: torch._softmax_backward_data(ones(2, 4), ones(3, 4), 1, torch.float32),
    "an axis twice": lambda: ones(2, 3, 2, 2).sum((0, 2, 2)),
}


@pytest.mark.parametrize("name", sorted(WRONG))
def test_sizes_that_do_not_fit_are_refused(name):
    with portable(), pytest.raises(RuntimeError):
        WRONG[name]()


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.SGD])
def test_an_optimizers_state_of_another_size_is_refused(kind):
    more = {"momentum": 0.9, "fused": True} if kind is torch.optim.SGD else {}
    one, other = nn.Parameter(ones(1000)), nn.Parameter(ones(200_000))
    one.grad, other.grad = ones(1000), ones(200_000)
    first, second = (kind([p], lr=0.1, **more) for p in (one, other))
    with portable():
        first.step()
    second.load_state_dict(first.state_dict())
    with portable(), pytest.raises(RuntimeError):
        second.step()


def test_a_weight_that_is_spread_is_spread():
    rows = some(3, 4)
    with CONTEXT.without_kernels():
        plain = REGISTRY["aten::native_layer_norm"](rows, [4], ones(1), None, 1e-5)[0]
    assert torch.equal(
        REGISTRY["aten::native_layer_norm"](rows, [4], ones(1), None, 1e-5)[0], plain
    )


def test_tensors_without_memory_are_left_alone():
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    line, left, right = (mode.from_tensor(x) for x in (some(4), some(4, 5), some(5, 3)))
    assert REGISTRY["aten::gelu"](line).shape == (4,)
    assert REGISTRY["aten::mm"](left, right).shape == (4, 3)
    assert REGISTRY["aten::native_layer_norm"](left, [5], None, None, 1e-5)[0].shape == (4, 5)
    assert REGISTRY["aten::sum.dim_IntList"](left, [0]).shape == (5,)


def test_an_infinite_rate_decays_nothing_without_decay():
    results = []
    for switch in (CONTEXT.without_kernels, threading.Lock):
        p = nn.Parameter(ones(3))
        p.grad = ones(3)
        optimizer = torch.optim.AdamW([p], lr=torch.inf, weight_decay=0.0)
        with switch(), portable():
            optimizer.step()
        results.append(p.tolist())
    assert results[0] == results[1] == [-torch.inf] * 3


def test_other_threads_may_stop_the_use_of_kernels_at_any_time():
    x, weight = some(2, 4, 9, 9), some(4, 3, 3, 3, name="w")
    with portable():
        expected = F.conv_transpose2d(x, weight), F.gelu(x), x.flatten(1) @ x.flatten(1).t()
    over = threading.Event()
    wrong = []

    def toggle():
        while not over.is_set():
            with CONTEXT.without_kernels():
                pass

    def work():
        try:
            for _ in range(60):
                with portable():
                    found = (
                        F.conv_transpose2d(x, weight),
                        F.gelu(x),
                        x.flatten(1) @ x.flatten(1).t(),
                    )
                wrong.extend(
                    a for a, b in zip(found, expected, strict=True) if not torch.equal(a, b)
                )
        except Exception as error:  # reported below
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    switch = threading.Thread(target=toggle)
    for thread in (switch, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    over.set()
    switch.join()
    assert wrong == []


@pytest.mark.skipif(find_kernels(CPU) is None, reason="no C compiler here")
def test_an_interrupted_self_test_runs_again(monkeypatch):
    monkeypatch.setattr(CONTEXT, "tested_devices", set())
    monkeypatch.setattr(CONTEXT, "rejected_devices", set())

    def interrupt(_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(self_test, "find_differing", interrupt)
        with pytest.raises(KeyboardInterrupt):
            self_test.check_kernels_once(CPU)
    assert CPU not in CONTEXT.tested_devices
    self_test.check_kernels_once(CPU)
    assert CPU in CONTEXT.tested_devices


def test_a_user_without_a_home_folder_is_no_error(monkeypatch):
    for name in ("SEEDLESS_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)

    def unknown(_):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", unknown)
    kernel_cache.find_folder.cache_clear()
    assert os.access(kernel_cache.find_folder(), os.W_OK)
    kernel_cache.find_folder.cache_clear()


@pytest.mark.parametrize("default", ["meta", "cpu"])
def test_a_default_device_does_not_matter(default):
    torch.set_default_device(default)
    try:
        assert self_test.find_differing(CPU) == []
    finally:
        torch.set_default_device(None)


def test_a_transposed_convolution_with_more_padding_at_its_end_than_stride():
    x, weight = some(2, 3, 5), some(3, 2, 3, name="w")
    grads = []
    for dtype in (torch.float32, torch.float64):
        given = [value.clone().to(dtype).requires_grad_() for value in (x, weight)]
        if dtype == torch.float32:
            with portable():
                F.conv_transpose1d(*given, output_padding=1, dilation=2).square().sum().backward()
        else:
            F.conv_transpose1d(*given, output_padding=1, dilation=2).square().sum().backward()
        grads.append([value.grad.double() for value in given])
    assert all(torch.allclose(a, b, rtol=1e-5, atol=1e-4) for a, b in zip(*grads, strict=True))


@pytest.mark.parametrize("tops", [[1, 5], [5, 1]])
def test_a_repeated_matrix_may_have_other_grids_than_its_own(tops):
    x = torch.tensor([[1.0, 0.5, 0.25]]).expand(2, 1, 3)
    exponents = torch.tensor(tops).view(2, 1, 1)
    fused = rounding_grid.round_to_grid(x, exponents, 23)
    with CONTEXT.without_kernels():
        assert torch.equal(fused, rounding_grid.round_to_grid(x, exponents, 23))


class _Experts(nn.Module):
    """Two experts with one input, unless a sample is loud: the layout of x depends on the part."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(ones(2, 3, 2))

    def forward(self, x, loud):
        both = x.expand(2, *x.shape)
        if any(loud.tolist()):
            both = torch.stack([x, torch.where(loud[:, None], 100 * x, x)])
        return torch.bmm(both, self.weight).transpose(0, 1)


def test_parts_with_another_memory_layout_have_the_bits_of_the_whole_batch():
    x, loud = some(8, 3), torch.arange(8) == 7
    gradients = []
    for size in (8, 4):
        model = _Experts()
        with portable():
            Split(model.parameters(), size).step(model, lambda y, *_: (y * y).sum(), x, loud)
        gradients.append(model.weight.grad)
    assert torch.equal(*gradients)


def test_steps_that_no_kernel_can_count_are_left_to_ops():
    with portable():
        out = F.conv_transpose1d(ones(1, 2, 1), ones(2, 3, 4), stride=2**33)
    assert torch.equal(out, torch.full((1, 3, 4), 2.0))
