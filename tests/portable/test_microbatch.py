"""A batch in parts gives the bits of the whole batch; what cannot be cut is refused by name."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import seedless
from seedless.core.errors import NumericsError
from seedless.numerics.counter_random import draw_uniform
from seedless.portable.batch.microbatch import Split
from seedless.portable.exact import sums
from seedless.portable.exact.engines import float64
from seedless.portable.mode import portable


def make_uniform(name, *shape):
    values = draw_uniform(0, name, math.prod(shape)) * 2 - 1
    return torch.from_numpy(values.astype(np.float32)).view(shape)


def fill(net):
    for name, parameter in net.named_parameters():
        parameter.data.copy_(make_uniform(name, *parameter.shape) + float("norm" in name))
    return net


class Encoder(nn.Module):
    """Tokens and numbers, a table of places spread over the batch, dropout keyed by sample."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, batch_first=True)
        self.words = nn.Embedding(7, 8, padding_idx=2)
        self.places = nn.Parameter(torch.zeros(1, 5, 8))
        self.body = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.drop = seedless.Dropout(0.3, layer=0)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        words = self.words((x.abs() * 2.3).long())
        return self.head(self.drop(self.body(words + self.places)).mean(1))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.GRU(1, 6, batch_first=True)
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        return self.head(self.body(x[:, :, None])[0][:, -1])


class Pictures(nn.Module):
    """Convolutions, a group norm, a batch norm at rest, pooling and a tied weight."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 4, 3, groups=2)
        self.norm, self.rest = nn.GroupNorm(2, 4), nn.BatchNorm2d(4).eval()
        self.head = nn.Linear(4, 4)

    def forward(self, x):
        x = self.norm(F.relu(self.one(x.view(-1, 1, 5, 1).expand(-1, 1, 5, 4))))
        x = self.rest(F.max_pool2d(self.two(x), (3, 1))).mean((2, 3))
        return self.head(F.gelu(self.head(x)))[:, :3]


class Warped(nn.Module):
    """Padding by reflection, an affine map for each picture, pooling undone, another size."""

    def __init__(self):
        super().__init__()
        self.map, self.head = nn.Linear(5, 6), nn.Linear(12, 3)

    def forward(self, x):
        x = x.view(-1, 1, 5, 1).expand(-1, 1, 5, 4)
        theta = self.map(x[:, 0, :, 0]).view(-1, 2, 3)
        grid = F.affine_grid(theta, list(x.shape), align_corners=False)
        x = F.grid_sample(x, grid, padding_mode="reflection", align_corners=False)
        x, indices = F.max_pool2d(F.pad(x, (1, 0, 0, 0), mode="reflect"), 2, 1, return_indices=True)
        x = F.max_unpool2d(x, indices, 2, 1, output_size=(5, 5))
        x = F.interpolate(x, (4, 3), mode="bicubic", antialias=True)
        return self.head(x.flatten(1))


def make_conformer():
    net = seedless.build("conformer", small=True)
    seedless.initialize(net)
    return net.train()


BATCH = 128
X, Y, KEYS = make_uniform("x", BATCH, 5) * 3, torch.arange(BATCH) % 3, torch.arange(BATCH) * 977
WEIGHTS = torch.tensor([0.2, 1.0, 3.0])
ORDER = torch.from_numpy(np.argsort(draw_uniform(0, "order", BATCH)))
WITHIN = torch.cat(
    [torch.from_numpy(np.argsort(draw_uniform(i, "in", 32))) + 32 * i for i in range(4)]
)


def losses(outputs, x, y, keys):
    return F.cross_entropy(outputs, y, WEIGHTS, label_smoothing=0.1)


def train(make, size, steps, batch=(X, Y, KEYS), loss_of=losses, split=Split):
    net = make()
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    parts, seen = split(net.parameters(), size), {}

    def forward(x, y, keys):
        with seedless.dropout_keys(samples=keys, epoch=0):
            return net(x)

    for step in range(steps):
        with portable():
            optimizer.zero_grad()
            seen[f"loss{step}"] = parts.step(forward, loss_of, *batch)
            nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            optimizer.step()
        for name, parameter in net.named_parameters():
            seen[f"{step}.{name}"] = parameter.grad.clone()
    return seedless.digest(seen | dict(net.state_dict()))


class Plain:
    """The whole batch by loss.backward(), without any of `Split`."""

    def __init__(self, parameters, size):
        pass

    def step(self, forward, loss_of, *batch):
        loss = loss_of(forward(*batch), *batch)
        loss.backward()
        return loss.detach()


class Accumulated(Plain):
    """What is usually done: gradients of parts, added in float32."""

    def __init__(self, parameters, size):
        self.size = size

    def step(self, forward, loss_of, *batch):
        parts = list(zip(*(tensor.split(self.size) for tensor in batch), strict=True))
        total = sum(loss_of(forward(*part), *part) / len(parts) for part in parts)
        total.backward()
        return total.detach()


@pytest.fixture(autouse=True)
def _one_thread():
    """Small tensors are quicker so; the number of threads cannot change the bits."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("model", [Encoder, Recurrent, Pictures, Warped])
def test_no_split_shows_in_losses_gradients_or_weights(model):
    def make():
        return fill(model())

    whole = train(make, 0, 2, split=Plain)
    for size in (128, 64, 32, [100, 28]):
        assert train(make, size, 2) == whole
    for order in (ORDER, WITHIN):
        assert train(make, 64, 2, [tensor[order] for tensor in (X, Y, KEYS)]) == whole


def test_no_split_shows_after_ten_steps():
    assert train(lambda: fill(Encoder()), 64, 10) == train(lambda: fill(Encoder()), 128, 10)


def test_no_split_shows_where_the_products_of_an_op_are_computed_in_chunks():
    """On a CPU a large product is computed in chunks, a small one at once: 2 samples are small."""
    net = fill(nn.Conv1d(150, 160, 3, padding=1))
    x = make_uniform("wide", 4, 150, 25)
    grads = []
    for size in (4, 2):
        net.zero_grad()
        with portable():
            Split(net.parameters(), size).step(
                lambda x: net(F.relu(net(x)[:, :150])), lambda out, x: out.square().mean(), x
            )
        grads.append(seedless.digest({"weight": net.weight.grad, "bias": net.bias.grad}))
    assert grads[0] == grads[1]


def test_no_split_shows_in_a_conformer():
    batch = make_uniform("ecg", 6, 12, 60), (torch.arange(6)[:, None] + torch.arange(12)) % 3 == 0
    batch = (batch[0], batch[1].float(), torch.arange(6))

    def loss_of(outputs, x, y, keys):
        return F.binary_cross_entropy_with_logits(outputs, y)

    whole = train(make_conformer, 0, 2, batch, loss_of, Plain)
    assert train(make_conformer, 3, 2, batch, loss_of) == whole
    assert train(make_conformer, [2, 4], 2, batch, loss_of) == whole


def test_negative_control_added_gradients_show_the_split():
    def make():
        return fill(Encoder())

    def loss_of(outputs, x, y, keys):
        return F.cross_entropy(outputs, y)

    found = {train(make, size, 2, loss_of=loss_of, split=Accumulated) for size in (128, 64, 32)}
    assert len(found) == 3


def test_negative_control_a_part_on_its_own_grid_shows(monkeypatch):
    """Without the batch's exponents each part rounds for itself."""
    monkeypatch.setattr(Split, "_try", lambda *_: None)
    monkeypatch.setattr(torch, "maximum", lambda one, two: two)
    assert train(lambda: fill(Encoder()), 32, 1) != train(lambda: fill(Encoder()), 128, 1)


def test_long_sums_are_cut_as_those_of_the_whole_batch(monkeypatch):
    """The whole batch needs two parts of integers where a part needs one: 640 and 80 addends."""
    whole = train(lambda: fill(Encoder()), 128, 1)
    monkeypatch.setattr(float64, "MAX_HALVED_ADDENDS", 100)
    monkeypatch.setattr(sums, "MAX_EXACT_ADDENDS", 100)
    assert train(lambda: fill(Encoder()), 16, 1) == whole


@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_what_is_not_finite_reaches_the_gradient(bad):
    x = X.clone()
    x[70, 2] = bad
    grads = []
    for size in (128, 32):
        net = fill(nn.Linear(5, 3))
        with portable():
            Split(net.parameters(), size).step(
                lambda x, y, net=net: net(x), lambda out, x, y: F.cross_entropy(out, y), x, Y
            )
        grads.append(net.weight.grad.nan_to_num(nan=7.0))
    assert torch.equal(*grads)
    assert (grads[0] == 7.0).any()


def test_a_loss_in_which_samples_meet_takes_a_pass_more():
    def contrast(outputs, x, y, keys):
        near = F.normalize(outputs) @ F.normalize(outputs).T
        return F.cross_entropy(near * 4, torch.arange(len(y)))

    def make():
        return fill(Recurrent())

    whole = train(make, 0, 2, loss_of=contrast, split=Plain)
    made = []

    def split(parameters, size):
        made.append(Split(parameters, size))
        return made[0]

    assert train(make, 32, 2, loss_of=contrast, split=split) == whole
    assert made[0].loss_mixes_samples


@pytest.mark.parametrize(
    ("loss_of", "is_constant"),
    [(lambda out, x, y: out.mean(), True), (lambda out, x, y: F.cross_entropy(out, y), False)],
)
def test_each_part_runs_forward_twice(loss_of, is_constant):
    net, calls = fill(nn.Linear(5, 3)), []

    def forward(x, y):
        calls.append(len(x))
        return net(x)

    parts = Split(net.parameters(), 32)
    with portable():
        parts.step(forward, loss_of, X, Y)
        calls.clear()
        parts.step(forward, loss_of, X, Y)
    assert calls == [32] * 8
    assert [plan.has_constant_gradient for plan in parts._plans.values()] == [is_constant]


def test_gradients_are_added_to_those_that_are_there():
    net = fill(nn.Linear(5, 3))
    with portable():
        parts = Split(net.parameters(), 64)
        parts.step(lambda x: net(x), lambda out, x: out.sum(), X)
        once = net.weight.grad.clone()
        parts.step(lambda x: net(x), lambda out, x: out.sum(), X)
    assert torch.equal(net.weight.grad, once * 2)


class Centred(nn.Module):
    def __init__(self, mix):
        super().__init__()
        self.head, self.mix = nn.Linear(5, 3), mix

    def forward(self, x):
        return self.head(self.mix(x))


class FlippedGradient(torch.autograd.Function):
    """Computes each sample alone, and gives it the gradient of another one."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient.flip(0)


MIXED = {
    "subtracts a sum": (lambda x: x - x.sum(0) / 9, "sub.*depends on the others"),
    "softmax over samples": (lambda x: x.softmax(0), "depends on the others|not as a sum"),
    "largest": (lambda x: x / x.amax(), "takes one value from all samples"),
    "first": (lambda x: x + x[0], "takes one value from all samples"),
    "running": (lambda x: x.cumsum(0), "a grid that it shares"),
    "numbers": (lambda x: x + torch.arange(len(x))[:, None], "numbers the samples"),
    "mean": (lambda x: x - x.mean(0), "depends on the others"),
    "count": (lambda x: x * (1.0 / len(x)), "the number of samples"),
    "similarity": (lambda x: (x @ x.t()) @ x, "a grid that it shares|depends"),
    "branch": (lambda x: x * 2 if len(x) == 2 else x, "becomes|is there or not"),
    "flip": (lambda x: x + x.flip(0), "another order.* aten::flip at .*test_microbatch.py"),
    "far": (lambda x: x + x.roll(64, 0), "another order.* aten::roll at .*test_microbatch.py"),
}


@pytest.mark.parametrize("name", MIXED)
def test_a_model_that_mixes_samples_is_refused_with_the_op(name):
    mix, words = MIXED[name]
    net = fill(Centred(mix))
    with portable(), pytest.raises(NumericsError, match=words):
        Split(net.parameters(), 64).step(
            lambda x, y: net(x), lambda out, x, y: F.cross_entropy(out, y), X, Y
        )


def test_a_model_that_mixes_gradients_is_refused():
    net = fill(nn.Linear(5, 3))
    with portable(), pytest.raises(NumericsError, match="four samples and two times two differ"):
        Split(net.parameters(), 64).step(
            lambda x, y: FlippedGradient.apply(net(x)),
            lambda out, x, y: F.cross_entropy(out, y),
            X,
            Y,
        )


@pytest.mark.parametrize("size", [128, 50])
def test_a_loss_may_have_parameters_of_its_own_and_outputs_names(size):
    net, scale = fill(nn.Linear(5, 3)), nn.Parameter(torch.tensor(0.3))

    def loss_of(out, x, y):
        return F.cross_entropy(out["kind"] * scale.exp(), y)

    with portable():
        loss_of({"kind": net(X)}, X, Y).backward()
        expected = [each.grad.clone() for each in (net.weight, net.bias, scale)]
        for each in (net.weight, net.bias, scale):
            each.grad = None
        Split(net.parameters(), size).step(lambda x, y: {"kind": net(x)}, loss_of, X, Y)
    for each, grad in zip((net.weight, net.bias, scale), expected, strict=True):
        assert torch.equal(each.grad, grad)


def test_a_loss_that_keeps_outputs_is_refused_in_parts():
    """It is computed several times."""
    net, earlier = fill(nn.Linear(5, 3)), torch.zeros(128, 3)

    def loss_of(out, x, y):
        loss = F.mse_loss(out, earlier[: len(out)].clone())
        earlier[: len(out)] = out.detach()
        return loss

    with portable(), pytest.raises(NumericsError, match="changes a tensor of 384 values"):
        Split(net.parameters(), 64).step(lambda x, y: net(x), loss_of, X, Y)
    assert not earlier.any()


@pytest.mark.parametrize("samples", [2, 3])
@pytest.mark.parametrize(
    "mix", [lambda x: x + x.flip(0), lambda x: x + x.roll(1, 0), lambda x: x + x.roll(2, 0)]
)
def test_a_batch_of_fewer_samples_than_a_trial_hides_no_mixing(samples, mix):
    """Two samples that are repeated in the same order look the same after such a mixture."""
    net = fill(Centred(mix))
    with portable(), pytest.raises(NumericsError, match="four samples and two times two differ"):
        Split(net.parameters(), 1).step(
            lambda x, y: net(x), lambda out, x, y: F.cross_entropy(out, y), X[:samples], Y[:samples]
        )


def test_a_loss_may_change_between_the_steps_of_a_split():
    """The gradient of the first loss depends on no outputs, that of the second one does."""
    net, grads = fill(nn.Linear(5, 3)), []
    for size in (128, 32):
        parts = Split(net.parameters(), size)
        with portable():
            parts.step(lambda x: net(x), lambda out, x: out.mean(), X)
            net.zero_grad()
            parts.step(lambda x: net(x), lambda out, x: (out.square() * 1e6).mean(), X)
        grads.append(net.weight.grad)
        net.zero_grad()
    assert torch.equal(*grads)


@pytest.mark.parametrize("track", [True, False])
def test_a_batch_norm_in_training_is_refused_by_name(track):
    net = fill(nn.Sequential(nn.Linear(5, 3), nn.BatchNorm1d(3, track_running_stats=track)))
    with portable(), pytest.raises(NumericsError, match="BatchNorm1d"):
        Split(net.parameters(), 64).step(
            lambda x, y: net(x), lambda out, x, y: F.cross_entropy(out, y), X, Y
        )


@pytest.mark.parametrize(
    ("loss_of", "words"),
    [
        (lambda out, x: out.square(), r"a Tensor of shape \(\d+, 3\)"),
        (lambda out, x: out.sum().item(), "got a float"),
    ],
)
def test_a_loss_that_is_not_one_number_is_refused(loss_of, words):
    net = fill(nn.Linear(5, 3))
    with portable(), pytest.raises(NumericsError, match=words):
        Split(net.parameters(), 64).step(lambda x: net(x), loss_of, X)


def test_what_cannot_be_a_step_is_refused():
    net = fill(nn.Linear(5, 3))

    def forward(x):
        return net(x)

    with pytest.raises(NumericsError, match="Move step"):
        Split(net.parameters(), 64).step(forward, lambda out, x: out.sum(), X)
    with portable():
        with pytest.raises(NumericsError, match=r"shape \(3, 5\) in both.*term\.expand"):
            Split(net.parameters(), 64).step(
                forward, lambda out, x: out.sum() + net.weight.sum(), X
            )
        with pytest.raises(NumericsError, match="one row for each"):
            Split(net.parameters(), 64).step(
                lambda x: net(x).flatten(), lambda out, x: out.sum(), X
            )
        with pytest.raises(NumericsError, match="got one with a int"):
            Split(net.parameters(), 64).step(
                lambda x: {"logits": net(x), "count": len(x)}, lambda out, x: out["logits"].sum(), X
            )
        with pytest.raises(NumericsError, match="add up to the batch's 128"):
            Split(net.parameters(), [100, 20]).step(forward, lambda out, x: out.sum(), X)
        with pytest.raises(NumericsError, match="at least one sample"):
            Split(net.parameters(), 0).step(forward, lambda out, x: out.sum(), X)
        with pytest.raises(NumericsError, match="one row a sample"):
            Split(net.parameters(), 64).step(forward, lambda out, x, y: out.sum(), X, Y[:5])


def test_a_part_that_takes_other_sums_is_refused():
    """A table spread over one sample needs no sum: such a part cannot join the others."""
    net = fill(Encoder())
    with portable(), pytest.raises(NumericsError, match="Parts of one sample"):
        Split(net.parameters(), [127, 1]).step(lambda x, y, keys: net.eval()(x), losses, X, Y, KEYS)


@pytest.mark.gpu
@pytest.mark.parametrize("model", [Encoder, Recurrent, Pictures])
def test_a_gpu_finds_the_same_bits(model):
    batch = [tensor.cuda() for tensor in (X, Y, KEYS)]

    def loss_of(outputs, x, y, keys):
        return F.cross_entropy(outputs, y, WEIGHTS.to(outputs.device), label_smoothing=0.1)

    here = train(lambda: fill(model()), 32, 10)
    there = train(lambda: fill(model()).cuda(), 64, 10, batch, loss_of)
    assert here == there
