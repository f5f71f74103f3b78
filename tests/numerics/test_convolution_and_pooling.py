"""Convolutions and pools equal their reference loops, torch's own ops and finite differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from seedless.core.errors import NumericsError
from seedless.models.layers import Conv1d, DepthwiseConv1d
from seedless.numerics import convolution, pooling
from tests.numerics import reference


@dataclass(frozen=True)
class Case:
    """One op with its settings, torch's op on the same layout, and the reference loop."""

    name: str
    shapes: tuple[tuple[int, ...], ...]
    fast: Callable[..., Tensor]
    torch: Callable[..., Tensor]
    slow: Callable[..., Any]


def conv(shape: tuple[int, ...], out: int, k: int, stride: int, padding: int, bias: bool) -> Case:
    settings = (stride, padding)
    return Case(
        f"conv{shape}-{out}-k{k}s{stride}p{padding}" + "b" * bias,
        (shape, (out, shape[2], k), *[(out,)] * bias),
        lambda x, w, b=None: convolution.conv1d(x, w, b, *settings),
        lambda x, w, b=None: F.conv1d(x.mT, w, b, *settings).mT,
        lambda x, w, b=None: reference.conv1d(x, w, b, *settings),
    )


def depthwise(shape: tuple[int, ...], k: int, padding: int, bias: bool) -> Case:
    channels = shape[2]
    return Case(
        f"depthwise{shape}-k{k}p{padding}" + "b" * bias,
        (shape, (channels, 1, k), *[(channels,)] * bias),
        lambda x, w, b=None: convolution.depthwise_conv1d(x, w, b, padding),
        lambda x, w, b=None: F.conv1d(x.mT, w, b, padding=padding, groups=channels).mT,
        lambda x, w, b=None: reference.depthwise_conv1d(x, w, b, padding),
    )


def adaptive1d(shape: tuple[int, ...], size: int) -> Case:
    return Case(
        f"adaptive{shape}-{size}",
        (shape,),
        lambda x: pooling.adaptive_avg_pool1d(x, size),
        lambda x: F.adaptive_avg_pool1d(x.mT, size).mT,
        lambda x: reference.adaptive_avg_pool1d(x, size),
    )


def adaptive2d(shape: tuple[int, ...], size: tuple[int, int]) -> Case:
    return Case(
        f"adaptive{shape}-{size}",
        (shape,),
        lambda x: pooling.adaptive_avg_pool2d(x, size),
        lambda x: F.adaptive_avg_pool2d(x, size),
        lambda x: reference.adaptive_avg_pool2d(x, size),
    )


def windowed(kind: str, shape: tuple[int, ...], k: int, stride: int, padding: int) -> Case:
    fast, slow = getattr(pooling, kind), getattr(reference, kind)
    return Case(
        f"{kind}{shape}-k{k}s{stride}p{padding}",
        (shape,),
        lambda x: fast(x, k, stride, padding),
        lambda x: getattr(F, kind)(x.mT, k, stride, padding).mT,
        lambda x: slow(x, k, stride, padding),
    )


WINDOWED = ("max_pool1d", "avg_pool1d")
CASES = [
    conv((2, 9, 3), 4, 5, 1, 2, True),
    conv((2, 10, 3), 4, 5, 2, 2, True),
    conv((2, 9, 3), 2, 5, 2, 2, False),
    conv((1, 8, 2), 3, 3, 3, 0, True),
    conv((1, 6, 2), 3, 4, 1, 3, True),
    conv((1, 4, 2), 3, 3, 5, 4, True),
    conv((3, 7, 4), 5, 1, 1, 0, True),
    conv((3, 7, 4), 2, 1, 1, 0, False),
    conv((2, 7, 3), 2, 1, 2, 0, True),
    conv((2, 5, 1), 1, 1, 2, 1, True),
    depthwise((2, 9, 3), 5, 2, True),
    depthwise((1, 6, 4), 3, 0, False),
    depthwise((2, 5, 2), 4, 3, True),
    adaptive1d((2, 8, 3), 4),
    adaptive1d((1, 25, 2), 13),
    adaptive1d((2, 7, 3), 3),
    adaptive1d((1, 5, 2), 1),
    adaptive1d((2, 3, 2), 7),
    adaptive2d((2, 3, 4, 4), (1, 1)),
    adaptive2d((1, 2, 7, 5), (3, 2)),
    adaptive2d((1, 2, 2, 3), (4, 3)),
    *[
        windowed(kind, shape, *window)
        for kind in WINDOWED
        for shape in ((2, 10, 3), (1, 9, 2))
        for window in ((3, 2, 1), (3, 1, 1), (2, 2, 0), (4, 3, 2), (1, 1, 0), (1, 2, 0))
    ],
]
every = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@pytest.fixture(autouse=True)
def _deterministic() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_deterministic_debug_mode("error")
    yield
    torch.set_deterministic_debug_mode("default")
    torch.set_num_threads(threads)


def inputs(case: Case, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(shape) for shape in case.shapes]
    return [torch.tensor(array, dtype=dtype).requires_grad_() for array in arrays]


def gradients(y: Tensor, tensors: list[Tensor]) -> tuple[Tensor, ...]:
    weights = torch.linspace(-1, 2, y.numel(), dtype=y.dtype).view(y.shape)
    return torch.autograd.grad(y, tensors, weights)


def assert_torchs(case: Case, dtype: torch.dtype = torch.float64) -> None:
    tensors = inputs(case, dtype)
    ours, theirs = case.fast(*tensors), case.torch(*tensors)
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(gradients(ours, tensors), gradients(theirs, tensors))


@every
def test_equals_the_reference_loop(case: Case) -> None:
    tensors = inputs(case)
    expected = case.slow(*[tensor.detach().numpy() for tensor in tensors])
    np.testing.assert_allclose(case.fast(*tensors).detach(), expected, rtol=1e-12, atol=1e-12)


@every
def test_equals_torch_forward_and_backward(case: Case) -> None:
    assert_torchs(case, torch.float32)


@every
def test_gradient_equals_finite_differences(case: Case) -> None:
    tensors = inputs(case)
    assert torch.autograd.gradcheck(case.fast, tensors)
    assert torch.autograd.gradgradcheck(case.fast, tensors)


@every
def test_computes_only_the_gradients_asked_for(case: Case) -> None:
    for wanted in range(len(case.shapes)):
        tensors = [t.requires_grad_(i == wanted) for i, t in enumerate(inputs(case))]
        every_one = inputs(case)
        alone = gradients(case.fast(*tensors), [tensors[wanted]])[0]
        assert torch.equal(alone, gradients(case.fast(*every_one), every_one)[wanted])


@every
def test_reads_any_memory_layout(case: Case) -> None:
    tensors = [tensor.detach() for tensor in inputs(case)]
    turned = tensors[0].transpose(1, 2).contiguous().transpose(1, 2)
    torch.testing.assert_close(
        case.fast(turned, *tensors[1:]), case.fast(*tensors), rtol=1e-12, atol=1e-12
    )


BIG = (16, 251, 65)  # large enough that torch shares the work, and odd
LARGE = [
    *[windowed(kind, BIG, 3, stride, 1) for kind in WINDOWED for stride in (1, 2)],
    *[adaptive1d(BIG, size) for size in (126, 125, 64, 3)],
    *[adaptive2d((8, 64, 31, 33), size) for size in ((1, 1), (7, 3), (16, 32))],
]


@pytest.mark.parametrize("case", LARGE, ids=lambda case: case.name)
def test_pools_give_the_same_bits_on_one_and_two_threads(case: Case) -> None:
    results = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        tensors = inputs(case, torch.float32)
        y = case.fast(*tensors)
        results.append((y, gradients(y, tensors)[0]))
    for one, two in zip(*results, strict=True):
        assert torch.equal(one, two)


@given(length=st.integers(1, 40), size=st.integers(1, 50))
@settings(max_examples=60, deadline=None)
def test_adaptive_bins_are_torchs(length: int, size: int) -> None:
    assert_torchs(adaptive1d((1, length, 2), size))


@given(
    length=st.integers(1, 12),
    kernel=st.integers(1, 6),
    stride=st.integers(1, 4),
    padding=st.integers(0, 4),
)
@example(length=1, kernel=5, stride=1, padding=2)
@settings(max_examples=200, deadline=None)
def test_windows_are_torchs(length: int, kernel: int, stride: int, padding: int) -> None:
    cases = [conv((2, length, 2), 3, kernel, stride, padding, True)]
    if 2 * padding <= kernel:
        cases += [windowed(op, (2, length, 2), kernel, stride, padding) for op in WINDOWED]
    for case in cases:
        if length + 2 * padding >= kernel:
            assert_torchs(case)
        else:
            with pytest.raises(NumericsError, match="samples of time"):
                case.fast(*inputs(case))


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    "values",
    [[1, 1, 1, 1, 1], [0, 2, 2, 2, 0], [1, NAN, 2, 3, 4], [NAN, NAN, NAN, 1, 1], [-INF] * 5],
)
@pytest.mark.parametrize("window", [(3, 2, 1), (3, 1, 1), (2, 1, 0), (5, 5, 0)])
def test_max_pool_treats_ties_and_nan_as_torch_does(
    values: list[float], window: tuple[int, int, int]
) -> None:
    x = torch.tensor(values, dtype=torch.float32).view(1, 5, 1).requires_grad_()
    ours, theirs = pooling.max_pool1d(x, *window), F.max_pool1d(x.mT, *window).mT
    assert torch.equal(ours.nan_to_num(99), theirs.nan_to_num(99))
    assert torch.equal(gradients(ours, [x])[0], gradients(theirs, [x])[0])


def test_an_infinity_stays_in_its_bins() -> None:
    x = torch.tensor([1.0, 2.0, INF, 3.0, 4.0]).view(1, 5, 1)
    assert torch.equal(pooling.adaptive_avg_pool1d(x, 3), F.adaptive_avg_pool1d(x.mT, 3).mT)


@pytest.mark.parametrize("stride", [1, 2])
def test_a_layers_state_dict_fits_torchs_layer(stride: int) -> None:
    x = torch.linspace(-1, 1, 2 * 11 * 3).view(2, 11, 3)
    ours, torchs = Conv1d(3, 4, 5, stride), nn.Conv1d(3, 4, 5, stride, padding=2)
    torchs.load_state_dict(ours.state_dict())
    torch.testing.assert_close(ours(x), torchs(x.mT).mT)
    depth, depthwise_torchs = DepthwiseConv1d(3, 5), nn.Conv1d(3, 3, 5, padding=2, groups=3)
    depthwise_torchs.load_state_dict(depth.state_dict())
    torch.testing.assert_close(depth(x), depthwise_torchs(x.mT).mT)


def test_autocast_is_followed_in_both_directions() -> None:
    tensors = inputs(CASES[0], torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        y = CASES[0].fast(*tensors)
    assert y.dtype == torch.bfloat16
    found = gradients(y, tensors)
    expected = gradients(CASES[0].fast(*tensors), tensors)
    torch.testing.assert_close(found, expected, rtol=0.05, atol=0.1)


X, W = torch.zeros(2, 6, 3), torch.zeros(4, 3, 5)


@pytest.mark.parametrize(
    ("op", "arguments", "message"),
    [
        (convolution.conv1d, (X[0], W), r"\(batch, time, channel\).*got torch.float32.*\(6, 3\)"),
        (convolution.conv1d, (X[:, :0], W), r"not empty; got .*\(2, 0, 3\)"),
        (convolution.conv1d, (X.mT, W), r"6 channels; got \(4, 3, 5\)"),
        (convolution.conv1d, (X, W[0]), r"\(out, in, kernel\).*got \(3, 5\)"),
        (convolution.conv1d, (X, W, torch.zeros(3)), r"\(4,\) or None; got \(3,\)"),
        (convolution.conv1d, (X, W, None, 0), "stride to be an integer >= 1, got 0"),
        (convolution.conv1d, (X, W, None, 1, -1), "padding to be an integer >= 0, got -1"),
        (pooling.avg_pool1d, (X, 7, 1), "kernel = 7 samples.*got 6"),
        (convolution.depthwise_conv1d, (X, W), r"3 channels; got \(4, 3, 5\)"),
        (convolution.depthwise_conv1d, (X, W[:3]), r"\(channel, 1, kernel\); got \(3, 3, 5\)"),
        (pooling.adaptive_avg_pool1d, (X, 0), "size to be an integer >= 1, got 0"),
        (pooling.adaptive_avg_pool1d, (X, 2.0), "size to be an integer >= 1, got 2.0"),
        (pooling.adaptive_avg_pool1d, (X[0], 2), r"got torch.float32 of shape \(6, 3\)"),
        (pooling.adaptive_avg_pool2d, (X, (1, 1)), r"height, width.*got .*\(2, 6, 3\)"),
        (pooling.adaptive_avg_pool2d, (X[None], 1), "pair of integers; got 1"),
        (pooling.adaptive_avg_pool2d, (X[None], (1, 0)), "width to be an integer >= 1, got 0"),
        (pooling.max_pool1d, (X, True, 1), "kernel to be an integer >= 1, got True"),
        (pooling.max_pool1d, (X, 3, 1, 2), "half the kernel, 3 // 2; got 2"),
    ],
)
def test_refuses_bad_input(op: Callable[..., Tensor], arguments: Any, message: str) -> None:
    with pytest.raises(NumericsError, match=message):
        op(*arguments)
