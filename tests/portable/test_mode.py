"""The mode: what it restores, which devices it trusts, that it trains as torch does."""

import copy
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import seedless
from seedless.core.errors import NumericsError
from seedless.numerics.counter_random import draw_uniform
from seedless.portable import ieee_check, mode
from seedless.portable.mode import portable


def make_uniform(name, *shape):
    values = draw_uniform(0, name, math.prod(shape)) * 2 - 1
    return torch.from_numpy(values.astype(np.float32)).view(shape)


def make_net():
    net = nn.Sequential(
        nn.Linear(6, 8),
        nn.LayerNorm(8),
        nn.GELU(),
        nn.Linear(8, 8, bias=False),
        nn.BatchNorm1d(8),
        nn.Tanh(),
        nn.Linear(8, 3),
    )
    for name, parameter in net.named_parameters():
        parameter.data.copy_(make_uniform(name, *parameter.shape))
    return net


X, Y = make_uniform("x", 10, 6), torch.arange(10) % 3


def fit(net, optimizer, steps=5):
    for _ in range(steps):
        optimizer.zero_grad()
        F.cross_entropy(net(X), Y).backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
    return [parameter.detach().clone() for parameter in net.parameters()]


def test_portable_is_exported():
    """The package has the function's name, so that it is called itself."""
    with seedless.portable():
        assert mode.is_active()
    assert not mode.is_active()


def test_backward_outside_is_refused_and_says_where():
    net = make_net()
    with portable():
        loss = F.cross_entropy(net(X), Y)
    with pytest.raises(NumericsError, match=r"test_mode\.py.*Move it inside"):
        loss.backward()


def test_backward_inside_a_later_block_is_accepted():
    net = make_net()
    with portable():
        loss = F.cross_entropy(net(X), Y)
    with portable():
        loss.backward()
    assert net[0].weight.grad is not None


def test_blocks_may_be_nested_and_everything_is_restored():
    flags = (torch.backends.cudnn.enabled, torch.backends.mkldnn.enabled)
    fast = torch.backends.mha.get_fastpath_enabled()
    with portable():
        with portable():
            assert mode.is_active()
        assert mode.is_active()
    assert not mode.is_active()
    assert (torch.backends.cudnn.enabled, torch.backends.mkldnn.enabled) == flags
    assert torch.backends.mha.get_fastpath_enabled() == fast


@pytest.mark.parametrize(
    "make",
    [
        lambda p: torch.optim.SGD(p, lr=0.1),
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, fused=True),
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, foreach=True),
        lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=0.1),
        lambda p: torch.optim.Adam(p, lr=0.01, foreach=True, amsgrad=True),
        lambda p: torch.optim.AdamW(p, lr=0.01),
        lambda p: torch.optim.AdamW(p, lr=torch.tensor(0.01), fused=True),
        lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.5),
        lambda p: torch.optim.Adagrad(p, lr=0.01),
    ],
)
def test_optimizers_train_as_torchs_do(make):
    plain, ours = make_net(), make_net()
    expected = fit(plain, make(list(plain.parameters())))
    optimizer = make(list(ours.parameters()))
    before = [(group.get("fused"), group.get("foreach")) for group in optimizer.param_groups]
    with portable():
        found = fit(ours, optimizer)
    for one, two in zip(found, expected, strict=True):
        assert torch.allclose(one, two, atol=2e-5, rtol=1e-4)
    after = [(group.get("fused"), group.get("foreach")) for group in optimizer.param_groups]
    assert before == after


def test_fused_foreach_and_plain_adam_are_one_and_the_same():
    results = []
    for options in ({}, {"fused": True}, {"foreach": True}):
        net = make_net()
        with portable():
            results.append(fit(net, torch.optim.Adam(net.parameters(), lr=0.01, **options)))
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_a_device_that_flushes_denormals_is_refused():
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot flush denormals")
    try:
        with pytest.raises(NumericsError, match="denormal"), portable():
            pass
    finally:
        torch.set_flush_denormal(False)


def test_the_ieee_check_finds_each_broken_rule(monkeypatch):
    for rule in ieee_check.CHECKS:
        monkeypatch.setitem(ieee_check.CHECKS, rule, lambda make: False)
        with pytest.raises(NumericsError, match=rule):
            ieee_check.check_device(torch.device("cpu"))
        monkeypatch.undo()


def test_the_ieee_check_distinguishes_a_fused_multiply_add_from_two_roundings():
    class Fusing:
        """A number whose product stays exact until something is added, as fused kernels do."""

        def __init__(self, exact):
            self.exact = exact

        def __mul__(self, other):
            return Fusing(self.exact * other.exact)

        def __add__(self, other):
            return torch.tensor([float(self.exact + other.exact)], dtype=torch.float64)

    assert not ieee_check._separate(lambda value: Fusing(Fraction(value)))
    assert ieee_check._separate(lambda value: torch.full((4,), value, dtype=torch.float64))


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_do_not_show(threads):
    before = torch.get_num_threads()
    digests = []
    try:
        for count in (1, threads):
            torch.set_num_threads(count)
            net = make_net()
            with portable():
                fit(net, torch.optim.SGD(net.parameters(), lr=0.1))
            digests.append(seedless.digest(net))
    finally:
        torch.set_num_threads(before)
    assert len(set(digests)) == 1


@pytest.mark.parametrize("train", [True, False])
def test_layers_agree_with_torch(train):
    layers = {
        "mha": (nn.MultiheadAttention(8, 2, batch_first=True), lambda m, x: m(x, x, x)[0]),
        "encoder": (nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), None),
        "gru": (nn.GRU(8, 5, 2, bidirectional=True), lambda m, x: m(x)[0]),
        "lstm": (nn.LSTM(8, 5, batch_first=True), lambda m, x: m(x)[0]),
        "rnn": (nn.RNN(8, 5), lambda m, x: m(x)[0]),
    }
    x = make_uniform("layer", 4, 6, 8)
    for name, (layer, call) in layers.items():
        for key, parameter in layer.named_parameters():
            parameter.data.copy_(make_uniform(f"{name}{key}", *parameter.shape) * 0.5)
        layer.train(train)
        plain = copy.deepcopy(layer)
        run = call or (lambda m, x: m(x))
        run(plain, x).square().sum().backward()
        with portable():
            run(layer, x).square().sum().backward()
        for one, two in zip(layer.parameters(), plain.parameters(), strict=True):
            assert torch.allclose(one.grad, two.grad, atol=1e-4, rtol=1e-4), name


def test_a_sort_is_stable():
    x = torch.tensor([1.0, 0.0, 1.0, 0.0])
    with portable():
        values, places = x.sort()
        descending = x.sort(descending=True)[1]
    assert values.tolist() == [0, 0, 1, 1]
    assert places.tolist() == [1, 3, 0, 2]
    assert descending.tolist() == [0, 2, 1, 3]


@pytest.mark.parametrize("name", ["conformer", "baseline", "xresnet1d101", "resnet18"])
def test_grad_no_grad_and_inference_mode_agree(name):
    """Each reaches the ops by another route: taken apart by autograd, or by the mode itself."""
    model = seedless.build(name, small=True)
    seedless.initialize(model)
    model.eval()
    x = (
        make_uniform("eval", 3, 3, 16, 16)
        if name == "resnet18"
        else make_uniform("eval", 3, 12, 120)
    )
    with portable():
        plain = model(x).detach()
        with torch.no_grad():
            quiet = model(x)
        with torch.inference_mode():
            inferred = model(x)
    assert torch.equal(plain, quiet)
    assert torch.equal(plain, inferred)
    assert torch.allclose(plain, model(x), atol=1e-5, rtol=1e-4)


def test_a_sample_does_not_see_the_rest_of_its_batch():
    model = seedless.build("conformer", small=True)
    seedless.initialize(model)
    x = make_uniform("batch", 5, 12, 120)
    with portable(), torch.no_grad():
        whole, alone = model(x), model(x[2:3])
    assert torch.equal(whole[2:3], alone)
