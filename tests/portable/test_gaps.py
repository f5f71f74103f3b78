"""Ways around portable arithmetic: integers that become real, threads, steps that raise."""

from __future__ import annotations

import math
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from seedless.core.errors import NumericsError
from seedless.portable.batch.microbatch import Split
from seedless.portable.mode import portable

COUNTS = torch.arange(1, 9)


@pytest.mark.parametrize(
    "run",
    [
        lambda: torch.prod(COUNTS, dtype=torch.float32),
        lambda: torch.cumprod(COUNTS, 0, dtype=torch.float32),
        lambda: torch.remainder(COUNTS, 0.3),
        lambda: torch.fmod(COUNTS, 0.3),
    ],
    ids=["prod", "cumprod", "remainder", "fmod"],
)
def test_an_op_on_integers_alone_is_refused_where_its_result_is_real(
    run: Callable[[], Tensor],
) -> None:
    with portable(), pytest.raises(NumericsError, match="not portable"):
        run()


@pytest.mark.parametrize("divisor", [0.3, -0.7, 2, math.inf, -math.inf, 0.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_division_rounded_to_whole_numbers_is_torchs(divisor: float, dtype: torch.dtype) -> None:
    special = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e30, -3.0, 7.5]
    x = torch.cat([torch.linspace(-9, 9, 999), torch.tensor(special)])
    x = x.nan_to_num(0.0, 9.0, -9.0).clamp(-9, 9).to(dtype) if dtype == torch.int64 else x

    def run() -> list[Tensor]:
        return [x // divisor, *(torch.div(x, divisor, rounding_mode=m) for m in ("floor", "trunc"))]

    with portable():
        found = run()
    for one, two in zip(found, run(), strict=True):
        assert one.dtype == two.dtype
        assert torch.equal(one.nan_to_num(12345.0), two.nan_to_num(12345.0))
        assert torch.equal(one.isnan(), two.isnan())


def test_float64_is_not_divided_with_a_floor() -> None:
    """1.0 // 0.1 is 9 in Python, and the rounded quotient is 10."""
    with portable(), pytest.raises(NumericsError, match="cast to float32"):
        torch.ones(3, dtype=torch.float64) // 0.1


@pytest.mark.parametrize("name", ["atan", "asin", "acos"])
def test_arcs_of_special_values_and_their_gradients_are_torchs(name: str) -> None:
    special = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, math.inf, -math.inf, math.nan]
    x, inside = torch.tensor(special), torch.linspace(-0.99, 0.99, 200).requires_grad_()
    with portable():
        found = getattr(torch, name)(x)
        (slope,) = torch.autograd.grad(getattr(torch, name)(inside).sum(), inside)
    assert torch.equal(found.nan_to_num(9.0), getattr(torch, name)(x).nan_to_num(9.0))
    (expected,) = torch.autograd.grad(getattr(torch, name)(inside).sum(), inside)
    assert torch.allclose(slope, expected, rtol=1e-5)


def test_values_are_counted_in_torch_s_bins() -> None:
    x = torch.linspace(-3, 3, 1001) + 0.00123  # none at an edge
    with portable():
        found = torch.histc(x, 12, -2, 2), torch.histc(x, 7)
        assert torch.histc(torch.ones(4), 2).tolist() == [0.0, 4.0]
        with pytest.raises(NumericsError, match="finite bounds"):
            torch.histc(x, 12, 2, -2)
    assert torch.equal(found[0], torch.histc(x, 12, -2, 2))
    assert torch.equal(found[1], torch.histc(x, 7))


def test_integers_raised_to_a_fraction_are_computed_as_reals_are() -> None:
    counts = torch.arange(1, 5000)
    with portable():
        assert torch.equal(counts**0.3, counts.to(torch.float32) ** 0.3)
        assert torch.equal(counts**2, counts * counts)


def test_a_running_total_of_integers_in_float32_is_exact_before_it_is_rounded() -> None:
    counts = torch.arange(1, 100_001)
    with portable():
        out = torch.cumsum(counts, 0, dtype=torch.float32)
    assert torch.equal(out, torch.cumsum(counts, 0).to(torch.float32))


@pytest.mark.parametrize("threads", [1, 2])
def test_counting_past_2_to_the_24_does_not_show_the_threads(threads: int) -> None:
    start, end = (1 << 24) - 5, (1 << 24) + 200_001
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with portable():
            out = torch.arange(start, end, dtype=torch.float32)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(out, torch.arange(start, end).to(torch.float32))


def test_arange_keeps_torch_s_types_and_ends() -> None:
    with portable():
        ours = [torch.arange(5), torch.arange(5.0), torch.arange(7, 1, -2), torch.arange(0.0, 6, 4)]
        with pytest.raises(NumericsError, match="whole numbers"):
            torch.arange(0.0, float("inf"))
    plain = [torch.arange(5), torch.arange(5.0), torch.arange(7, 1, -2), torch.arange(0.0, 6, 4)]
    for one, two in zip(ours, plain, strict=True):
        assert one.dtype == two.dtype
        assert torch.equal(one, two)


def test_masks_and_integers_reduce_as_in_torch() -> None:
    mask = torch.tensor([True, False, True])
    with portable():
        assert mask.sum(dtype=torch.float32).item() == 2.0
        assert mask.mean(dtype=torch.float32).item() == torch.tensor(2 / 3).item()
        assert mask.max().dtype == mask.max(0).values.dtype == torch.bool
        assert torch.clamp(COUNTS, 2.5, 6.5).tolist() == [2.5, 2.5, 3, 4, 5, 6, 6.5, 6.5]
        assert torch.clamp(COUNTS, 2, 6).dtype == torch.int64


def test_high_powers_of_negative_numbers_have_their_sign() -> None:
    x = torch.tensor([-2.0, -1.5, 0.0, 2.0, -1.0])
    exponents = (9, 10, -9, -10)
    with portable():
        found = [x**exponent for exponent in exponents]
        assert bool(((x**2.5).isnan() == (x < 0)).all())
    for exponent, one in zip(exponents, found, strict=True):
        assert torch.allclose(one, x.double().pow(exponent).float(), rtol=1e-6)


def test_the_last_part_of_a_batch_is_not_one_sample_alone() -> None:
    net = nn.Sequential(nn.Conv1d(1, 3, 3), nn.InstanceNorm1d(3, affine=True), nn.Flatten())
    x, y = torch.arange(42.0).view(7, 1, 6).sin(), torch.arange(7) % 2
    found = []
    for size in (7, 3, 6):  # with one sample its norm has no sum over samples
        net.zero_grad()
        with portable():
            Split(net.parameters(), size).step(
                lambda part, _: net(part),
                lambda out, _, y: nn.functional.cross_entropy(out, y),
                x,
                y,
            )
        found.append([parameter.grad.clone() for parameter in net.parameters()])
    for others in found[1:]:
        assert all(map(torch.equal, found[0], others))


def test_dropout_that_drops_nothing_runs_in_inference_mode() -> None:
    x = torch.arange(6.0)
    with portable(), torch.inference_mode():
        assert torch.equal(nn.Dropout(0.5).eval()(x), x)
        with pytest.raises(NumericsError, match="random numbers from torch's generator"):
            nn.Dropout(0.5)(x)


def test_an_optimizer_keeps_its_form_after_a_step_that_was_refused() -> None:
    weight = nn.Parameter(torch.ones(3, dtype=torch.bfloat16))
    weight.grad = torch.ones_like(weight)
    optimizer = torch.optim.Adam([weight], foreach=False)
    group = optimizer.param_groups[0]
    with pytest.raises(NumericsError, match="float32"), portable():
        optimizer.step()
    assert (group["fused"], group["foreach"]) == (None, False)


def _read_switches() -> tuple[bool, ...]:
    return (
        torch.backends.cudnn.enabled,
        bool(torch.backends.mkldnn.enabled),
        torch.backends.mha.get_fastpath_enabled(),
        torch.backends.cuda.flash_sdp_enabled(),
    )


def test_blocks_of_two_threads_that_overlap_leave_torch_as_it_was() -> None:
    before = _read_switches()
    entered, other = threading.Event(), threading.Event()
    seen: list[tuple[bool, ...]] = []

    def run_first() -> None:
        with portable():
            entered.set()
            other.wait(60)

    def run_second() -> None:
        entered.wait(60)
        with portable():
            other.set()
            first.join(60)
            seen.append(_read_switches())

    first, second = threading.Thread(target=run_first), threading.Thread(target=run_second)
    first.start()
    second.start()
    second.join(60)
    assert seen == [(False, False, False, False)]
    assert _read_switches() == before


FLUSHING = """
import torch
from seedless import portable
torch.set_num_threads(2)
torch.set_flush_denormal(True)
torch.ones(1 << 20).mul(2)  # starts a thread, which inherits the switch
torch.set_flush_denormal(False)
with portable():
    out = torch.full((1 << 17,), 1e-40) * 0.5
print(int((out.view(torch.int32) == 0).sum()))
"""


def test_a_thread_that_flushes_denormals_is_found_although_the_first_one_does_not() -> None:
    if not torch.set_flush_denormal(False):
        pytest.skip("this processor cannot flush")
    done = subprocess.run([sys.executable, "-c", FLUSHING], capture_output=True, text=True)
    assert done.returncode != 0, done.stdout
    assert "expected all 2 threads of the CPU to keep denormal numbers" in done.stderr


def test_the_gradient_of_a_diagonal_is_that_of_torch() -> None:
    """It moves values and computes none; losses of decorrelation take the diagonal of a matrix."""
    values = torch.arange(12.0).reshape(3, 4).requires_grad_()
    weights = torch.tensor([0.1, -0.7, 1.3])
    (expected,) = torch.autograd.grad((values.diagonal() * weights).sum(), values)
    with portable():
        (found,) = torch.autograd.grad((values.diagonal() * weights).sum(), values)
    assert torch.equal(found, expected)
