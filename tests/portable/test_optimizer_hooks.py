"""Optimizers inside the block: torch's, a user's own, averages of weights, and a refused scaler."""

import math
from contextlib import nullcontext
from fractions import Fraction

import mpmath
import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_avg_fn, get_ema_multi_avg_fn

from seedless.core.errors import NumericsError
from seedless.portable.exact import portable_float
from seedless.portable.exact.portable_float import PortableFloat, raise_number
from seedless.portable.mode import portable
from seedless.portable.ops.optimizer_hooks import prepare_optimizers
from seedless.portable.test_inputs import Input

CPU = torch.device("cpu")


class Lion(torch.optim.Optimizer):
    """Chen et al., 2023, as users write it."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                state = self.state[p]
                average = state.setdefault("exp_avg", torch.zeros_like(p))
                p.mul_(1 - group["lr"] * group["weight_decay"])
                update = average.clone().mul_(beta1).add(p.grad, alpha=1 - beta1).sign_()
                p.add_(update, alpha=-group["lr"])
                average.mul_(beta2).add_(p.grad, alpha=1 - beta2)


class OwnAdam(torch.optim.Optimizer):
    """Adam with a power of Python's, as many write it."""

    def __init__(self, params, lr=1e-2, betas=(0.9, 0.999)):
        super().__init__(params, {"lr": lr, "betas": betas})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                state = self.state[p]
                state["step"] = state.get("step", 0) + 1
                m = state.setdefault("m", torch.zeros_like(p))
                v = state.setdefault("v", torch.zeros_like(p))
                m.lerp_(p.grad, 1 - beta1)
                v.mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
                c1, c2 = 1 - beta1 ** state["step"], 1 - beta2 ** state["step"]
                p.addcdiv_(m, (v.sqrt() / c2**0.5).add_(1e-8), value=-group["lr"] / c1)


MAKERS = {
    "NAdam": lambda p: torch.optim.NAdam(p, lr=0.01),
    "NAdam-foreach": lambda p: torch.optim.NAdam(
        p, lr=0.01, foreach=True, weight_decay=0.1, decoupled_weight_decay=True
    ),
    "RAdam": lambda p: torch.optim.RAdam(p, lr=0.01, weight_decay=0.1),
    "RAdam-foreach": lambda p: torch.optim.RAdam(p, lr=0.01, foreach=True),
    "Adamax": lambda p: torch.optim.Adamax(p, lr=0.01),
    "ASGD": lambda p: torch.optim.ASGD(p, lr=0.01, alpha=0.7),
    "Rprop": lambda p: torch.optim.Rprop(p, lr=0.01),
    "Lion": lambda p: Lion(p),
    "own Adam": lambda p: OwnAdam(p),
}


def train(make, arithmetic=portable, dtype=torch.float32, threads=1, steps=9):
    """Return weights after some steps; RAdam needs more than five to correct its variance."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        net = nn.Linear(300, 200, dtype=dtype)
        with torch.no_grad():
            net.weight.copy_(Input((200, 300), 0.1).make("weight", CPU))
            net.bias.zero_()
        x = Input((16, 300)).make("x", CPU).to(dtype)
        optimizer = make(net.parameters())
        with arithmetic():
            for _ in range(steps):
                optimizer.zero_grad()
                net(x).pow(2).mean().backward()
                optimizer.step()
    finally:
        torch.set_num_threads(before)
    return net.weight.detach(), optimizer


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_an_optimizer_trains_as_in_float64_and_its_bits_do_not_depend_on_threads(name):
    found, optimizer = train(MAKERS[name])
    assert torch.equal(found, train(MAKERS[name], threads=2)[0])
    expected, _ = train(MAKERS[name], nullcontext, torch.float64)
    # The step of a gradient of nearly zero depends on its last bits: its sign, or a quotient.
    is_close = (found.double() - expected).abs() < 1e-5
    assert is_close.double().mean() > 0.999
    settings = [value for group in optimizer.param_groups for value in group.values()]
    assert not any(isinstance(value, PortableFloat) for value in settings)


@pytest.mark.parametrize("name", ["NAdam", "RAdam", "Adamax", "ASGD", "own Adam"])
def test_negative_control_a_step_uses_powers_of_ours(name, monkeypatch):
    """Other powers of ours change the weights, so that the step uses them."""
    before, exact = train(MAKERS[name])[0], raise_number
    monkeypatch.setattr(portable_float, "raise_number", lambda x, y: exact(x, y) * (1.0 + 2.0**-20))
    assert not torch.equal(before, train(MAKERS[name])[0])


def test_settings_are_restored_after_a_step_that_was_refused():
    weight = nn.Parameter(torch.ones(3, dtype=torch.bfloat16))
    weight.grad = torch.ones_like(weight)
    optimizer = Lion([weight])
    with pytest.raises(NumericsError, match="float32"), portable():
        optimizer.step()
    assert type(optimizer.param_groups[0]["lr"]) is float
    assert all(type(beta) is float for beta in optimizer.param_groups[0]["betas"])


@pytest.mark.parametrize("make", [Lion, torch.optim.AdamW, torch.optim.NAdam])
def test_settings_are_restored_where_the_blocks_of_two_threads_overlap(make):
    weight = nn.Parameter(torch.ones(3))
    weight.grad = torch.ones_like(weight)
    optimizer = make([weight])
    before = {k: v for k, v in optimizer.param_groups[0].items() if k != "params"}
    with portable(), prepare_optimizers():  # the second block's hooks run after the first one's
        optimizer.step()
    after = optimizer.param_groups[0]
    assert all(after[key] is value for key, value in before.items())


def test_whole_powers_are_products_and_others_close_to_the_true_value():
    assert raise_number(0.9, 3) == 0.9 * (0.9 * 0.9)
    assert raise_number(0.9, 0) == 1.0
    assert raise_number(2.0, -3) == 0.125
    assert raise_number(0.3, 0.5) == math.sqrt(0.3)
    assert math.isnan(raise_number(-0.3, 0.5))
    steps = 1000
    assert raise_number(0.999, steps) == pytest.approx(
        float(Fraction(0.999) ** steps), rel=steps * 2.0**-52
    )
    with mpmath.workprec(100):
        true = float(mpmath.mpf(0.96) ** mpmath.mpf(0.036))
    assert raise_number(0.96, 0.036) == pytest.approx(true, rel=2.0**-40)


def test_what_is_computed_from_a_portable_number_is_one():
    x = PortableFloat(0.25)
    results = (x + 1, 1 + x, x - 1, 1 - x, x * 2, 2 * x, x / 3, 3 / x, -x, x**2, 2.0**x)
    assert all(type(one) is PortableFloat for one in results)
    assert [float(one) for one in results[:9]] == [
        *(1.25, 1.25, -0.75, 0.75, 0.5, 0.5, 0.25 / 3, 12.0, -0.25)
    ]


@pytest.mark.parametrize("kind", ["mean", "ema", "ema one by one"])
def test_averages_of_weights_are_torchs_and_do_not_depend_on_threads(kind):
    options = {
        "mean": {},
        "ema": {"multi_avg_fn": get_ema_multi_avg_fn(0.9)},
        "ema one by one": {"avg_fn": get_ema_avg_fn(0.9)},
    }[kind]

    def average(threads, arithmetic=portable):
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            net = nn.Sequential(nn.Linear(200, 300), nn.BatchNorm1d(300))
            averaged = AveragedModel(net, use_buffers=True, **options)
            for step in range(4):
                with torch.no_grad():
                    net[0].weight.copy_(Input((300, 200)).make(f"step {step}", CPU))
                with arithmetic():
                    averaged.update_parameters(net)
            return averaged.module[0].weight.detach()
        finally:
            torch.set_num_threads(before)

    found = average(1)
    assert torch.equal(found, average(2))
    assert torch.allclose(found, average(1, nullcontext), atol=1e-6)


def test_a_gradient_scaler_is_refused_and_the_message_says_why():
    net = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    with portable():
        scaler.scale(net(torch.ones(2, 3)).sum()).backward()
        with pytest.raises(NumericsError, match=r"float16 gradients.*leave it out"):
            scaler.step(optimizer)
    switched_off = torch.amp.GradScaler("cpu", enabled=False)
    with portable():
        switched_off.scale(net(torch.ones(2, 3)).sum()).backward()
        switched_off.step(optimizer)
        switched_off.update()


def test_an_optimizer_without_a_portable_step_is_refused():
    weight = nn.Parameter(torch.ones(3))
    weight.grad = torch.ones_like(weight)
    optimizer = torch.optim.Adafactor([weight])
    with portable(), pytest.raises(NumericsError, match=r"NAdam.*got Adafactor"):
        optimizer.step()
