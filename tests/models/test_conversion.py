"""A converted model draws by sample, epoch and layer alone, and says what it cannot convert."""

import copy
import pickle
import random

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils.checkpoint import checkpoint

import seedless
from seedless.core.errors import ModelError, NumericsError
from seedless.models.converted_layers import REPLACEMENTS
from seedless.numerics.generator_guard import GeneratorGuard

# Torch says so of every layer with a projection, on a CPU.
pytestmark = pytest.mark.filterwarnings("ignore:LSTM with projections is not supported")

B = 6
KEYS = torch.arange(B) * 7919 - 5
ORDER = torch.tensor([3, 0, 5, 1, 4, 2])


def fill(*shape, start=0.1):
    size = torch.Size(shape).numel()
    return torch.sin(start + torch.arange(size) * 0.7).view(shape)


def call(model, *inputs, keys=KEYS, epoch=0, **options):
    with seedless.dropout_keys(samples=keys, epoch=epoch, **options):
        return model(*inputs)


class Lambda(nn.Module):
    """A model that someone wrote: what it does in its forward pass is given."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class DropPath(nn.Module):
    """As several libraries write it: one Bernoulli number for each sample."""

    def __init__(self, drop_prob=0.5):
        super().__init__()
        self.drop_prob = drop_prob

    def forward(self, x):
        if self.drop_prob == 0.0 or not self.training:
            return x
        keep = 1 - self.drop_prob
        return x * x.new_empty((x.shape[0],) + (1,) * (x.ndim - 1)).bernoulli_(keep).div_(keep)


def drop_connect(x, p=0.5):
    """As the first EfficientNet for torch has it: one uniform number for each sample."""
    return x / (1 - p) * torch.floor(1 - p + torch.rand([len(x), 1, 1], device=x.device))


class Attention(nn.Module):
    def __init__(self, causal=False):
        super().__init__()
        self.linear, self.causal = nn.Linear(8, 24), causal

    def forward(self, x):
        q, k, v = self.linear(x).view(*x.shape[:2], 3, 2, 4).permute(2, 0, 3, 1, 4)
        p = 0.4 if self.training else 0.0
        out = F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=self.causal)
        return out.transpose(1, 2).flatten(2)


class SelfAttention(nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, dropout=0.4, batch_first=True)
        self.weights = weights

    def forward(self, x):
        return self.attention(x, x, x, need_weights=self.weights)[0]


class Recurrent(nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.layers = kind(8, 5, 3, dropout=0.5, batch_first=True, **options)

    def forward(self, x):
        return self.layers(x)[0]


class Packed(Recurrent):
    def forward(self, x):
        lengths = (x[:, 0, 0].abs() * 100).long().cpu() % 6 + 1  # a function of the sample
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(self.layers(packed)[0], batch_first=True, total_length=7)[0]


MODELS = {
    **{kind.__name__: lambda kind=kind: nn.Sequential(kind(0.5)) for kind in REPLACEMENTS},
    "F.dropout": lambda: Lambda(lambda x: F.dropout(x, 0.5)),
    "F.dropout in place": lambda: Lambda(lambda x: F.dropout(x + 0, 0.5, inplace=True)),
    "torch.dropout": lambda: Lambda(lambda x: torch.dropout(x, 0.5, True)),
    "torch.dropout_": lambda: Lambda(lambda x: torch.dropout_(x + 0, p=0.5, train=True)),
    "native_dropout": lambda: Lambda(lambda x: torch.native_dropout(x, 0.5, True)[0]),
    "F.dropout1d": lambda: Lambda(lambda x: F.dropout1d(x, 0.5)),
    "F.alpha_dropout": lambda: Lambda(lambda x: F.alpha_dropout(x, 0.5, True)),
    "F.feature_alpha_dropout": lambda: Lambda(lambda x: F.feature_alpha_dropout(x, 0.5, True)),
    "rand_like": lambda: Lambda(lambda x: x * (torch.rand_like(x) < 0.5)),
    "uniform_": lambda: Lambda(lambda x: x * x.new_empty(len(x), 1, 1).uniform_(-1, 1)),
    "bernoulli": lambda: Lambda(lambda x: x * torch.bernoulli(torch.full_like(x, 0.5))),
    "DropPath": DropPath,
    "drop_connect": lambda: Lambda(drop_connect),
    "attention": Attention,
    "causal attention": lambda: Attention(causal=True),
    "MultiheadAttention": lambda: SelfAttention(weights=False),
    "MultiheadAttention with weights": lambda: SelfAttention(weights=True),
    "LSTM": lambda: Recurrent(nn.LSTM, bidirectional=True),
    "LSTM with projection": lambda: Recurrent(nn.LSTM, proj_size=3),
    "GRU": lambda: Recurrent(nn.GRU),
    "RNN": lambda: Recurrent(nn.RNN, bias=False),
    "packed LSTM": lambda: Packed(nn.LSTM),
    "TransformerEncoderLayer": lambda: nn.TransformerEncoderLayer(8, 2, 16, 0.3, batch_first=True),
    "TransformerDecoder": lambda: Lambda2(),
    "windows": lambda: Lambda(
        lambda x: F.dropout(x[:, :6].reshape(B * 3, 2, 8), 0.5).view(B, 6, 8)
    ),
}


class Lambda2(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerDecoderLayer(8, 2, 16, 0.3, batch_first=True)

    def forward(self, x):
        return self.layer(x, x)


def make(name):
    torch.manual_seed(3)
    model = MODELS[name]()
    return seedless.convert(model), fill(B, 7, 8)


@pytest.mark.parametrize("name", MODELS)
def test_draws_belong_to_samples_and_epochs_and_use_no_generator(name):
    model, x = make(name)
    guard = GeneratorGuard()
    out = call(model, x)
    torch.testing.assert_close(call(model, x), out, rtol=0, atol=0)
    moved = call(model, x[ORDER], keys=KEYS[ORDER])
    torch.testing.assert_close(moved, out[ORDER], rtol=0, atol=1e-6)
    assert not torch.equal(call(model, x, epoch=1), out)
    assert guard.moved() == ()


@pytest.mark.parametrize("name", MODELS)
def test_negative_control_other_keys_give_other_draws(name):
    model, x = make(name)
    assert not torch.equal(call(model, x), call(model, x, keys=KEYS + 1))


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:RNN module weights are not part of single contiguous chunk")
@pytest.mark.parametrize("name", MODELS)
def test_a_gpu_draws_the_same(name):
    model, x = make(name)
    out = call(model, x)
    with torch.backends.cudnn.flags(allow_tf32=False):
        on_gpu = call(model.cuda(), x.cuda()).cpu()
    torch.testing.assert_close(on_gpu, out, rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", ["Dropout", "LSTM", "MultiheadAttention with weights"])
def test_evaluation_mode_is_as_before(name):
    model, x = make(name)
    torch.manual_seed(3)
    plain = MODELS[name]().eval()
    torch.testing.assert_close(model.eval()(x), plain(x), rtol=0, atol=0)


def test_training_without_keys_is_refused():
    model, x = make("F.dropout")
    with pytest.raises(NumericsError, match=r"seedless\.dropout_keys.*seedless\.Sampler"):
        model(x)


@pytest.mark.parametrize("name", ["Dropout", "AlphaDropout", "F.dropout"])
def test_rates_and_scales_are_those_of_torch(name):
    torch.manual_seed(0)
    model = MODELS[name]()
    x = fill(B, 4000)
    plain = model(x)
    out = call(seedless.convert(model), x)
    changed = [float((y != y.mode().values[0]).float().mean()) for y in (out, plain)]
    assert changed[0] == pytest.approx(changed[1], abs=0.03)
    assert float(out.std()) == pytest.approx(float(plain.std()), rel=0.03)
    assert float(out.mean()) == pytest.approx(float(plain.mean()), abs=0.03)
    assert out.max() == plain.max()


def test_channels_are_dropped_whole():
    out = call(seedless.convert(nn.Sequential(nn.Dropout2d(0.5))), torch.ones(B, 16, 3, 3))
    assert set(out.flatten(2).mean(-1).unique().tolist()) == {0.0, 2.0}


def test_attention_without_dropout_is_the_formula_of_torch():
    from seedless.numerics.attention_dropout import attend

    q, k, v = fill(3, 2, 4, 5, 6)
    mask = fill(2, 4, 5, 5) > -0.5
    for options in (
        {},
        {"is_causal": True},
        {"scale": 0.3},
        {"attn_mask": mask},
        {"attn_mask": fill(5, 5)},
    ):
        torch.testing.assert_close(
            attend(q, k, v, **options, layer=0), F.scaled_dot_product_attention(q, k, v, **options)
        )
    grouped = k[:, :2], v[:, :2]
    torch.testing.assert_close(
        attend(q, *grouped, enable_gqa=True, layer=0),
        F.scaled_dot_product_attention(q, *grouped, enable_gqa=True),
    )


def test_a_query_that_sees_no_key_has_finite_gradients():
    model = Lambda(
        lambda x: F.scaled_dot_product_attention(
            x, x, x, attn_mask=torch.zeros(7, 7, dtype=torch.bool), dropout_p=0.5
        )
    )
    x = fill(B, 7, 8).requires_grad_()
    call(seedless.convert(model), x).sum().backward()
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers_one_by_one_are_those_together(kind):
    model = Recurrent(kind, bidirectional=True).train()
    x = fill(B, 7, 8)
    seedless.convert(model)
    model.layers.dropout = 1e-12  # which drops nothing
    out = call(model, x)
    torch.testing.assert_close(out, model.eval()(x))


def test_layers_of_unlike_names_and_calls_have_unlike_masks():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Dropout(0.5), nn.Dropout(0.5)

        def forward(self, x):
            parts = [self.a(x), self.b(x), self.a(x), F.dropout(x, 0.5), F.dropout(x, 0.5)]
            return torch.stack([part != 0 for part in parts])

    masks = call(seedless.convert(Twice()), torch.ones(B, 64))
    for i in range(5):
        for j in range(i):
            assert not torch.equal(masks[i], masks[j])


def test_the_rate_may_be_read_and_changed():
    model = seedless.convert(nn.Sequential(nn.Dropout(0.5), DropPath(0.3)))
    assert (model[0].p, model[1].drop_prob) == (0.5, 0.3)
    assert isinstance(model[0], nn.Dropout)
    model[0].p, model[1].drop_prob = 0.9, 0.0
    assert float((call(model, torch.ones(B, 1000)) == 0).float().mean()) > 0.85
    model[0].p = 0.0
    assert torch.equal(model(torch.ones(B, 9)), torch.ones(B, 9))  # which needs no keys
    model[0].p = 2
    with pytest.raises(NumericsError, match="probability"):
        call(model, torch.ones(B, 9))


class LayerDrop(nn.Module):
    """Skips layers for all samples at once, as speech and text models do."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(12))

    def forward(self, x):
        taken = [bool(torch.rand([]) >= 0.5) for _ in self.layers]
        return torch.tensor(taken) if self.training else x


def test_layer_drop_belongs_to_epoch_and_step():
    model, x = seedless.convert(LayerDrop()), fill(B, 4)
    first = call(model, x, step=3)
    assert torch.equal(call(model, x[:2], keys=KEYS[:2], step=3), first)  # as on another rank
    assert not torch.equal(call(model, x, step=4), first)
    assert not torch.equal(call(model, x, step=3, epoch=1), first)
    without = call(model, x)
    assert torch.equal(call(model, x[ORDER], keys=KEYS[ORDER]), without)
    assert not torch.equal(call(model, x, keys=KEYS + 1), without)


class Shuffled(nn.Module):
    """Draws what has no form by sample."""

    def forward(self, x):
        return x + torch.randperm(x.shape[-1])


@pytest.mark.parametrize(
    "draw",
    [
        lambda x: torch.poisson(x.abs()),
        lambda x: x.clone().cauchy_(),
        lambda x: torch.randperm(3),
        lambda x: torch.multinomial(x.abs()[0], 2),
        lambda x: F.rrelu(x, training=True),
        lambda x: F.fractional_max_pool2d(x[None], 2, output_size=2),
    ],
)
def test_other_draws_are_refused_with_module_and_line(draw):
    model = nn.Sequential(nn.Linear(8, 8), Lambda(draw))
    with pytest.raises(NumericsError, match=r"module '1' calls \w+ at .*test_conversion\.py:\d+"):
        call(seedless.convert(model), fill(B, 7, 8))


@pytest.mark.parametrize(
    ("name", "draw"),
    [
        ("Python's random", random.random),
        ("numpy's np.random", np.random.rand),
        ("torch's CPU generator", lambda: torch.ops.aten.rand([2]).sum()),
    ],
)
def test_draws_that_torch_does_not_show_are_refused_after_the_first_pass(name, draw):
    model = nn.Sequential(Lambda(lambda x: x * float(draw())))
    with pytest.raises(NumericsError, match=rf"first forward pass of module '' used {name}.*keep="):
        call(seedless.convert(model), fill(B, 8))
    kept = seedless.convert(nn.Sequential(Lambda(lambda x: x * float(draw()))), keep=["0"])
    assert call(kept, fill(B, 8)).shape == (B, 8)


def test_after_an_error_torch_draws_as_ever():
    with pytest.raises(NumericsError):
        call(seedless.convert(Shuffled()), fill(B, 8))
    assert torch.randn(3).shape == (3,)  # no mode was left behind
    assert F.dropout(torch.ones(3), 0.0).shape == (3,)


def test_modules_to_keep_draw_from_the_generator():
    model = nn.Sequential(Shuffled(), nn.Sequential(nn.Dropout(0.5)), nn.Dropout(0.5))
    seedless.convert(model, keep=["0", "1"])
    guard = GeneratorGuard()
    call(model, fill(B, 8))
    assert guard.moved() == ("torch's CPU generator",)
    assert [one.name for one in model.seedless_report.replaced] == ["2"]
    assert {one.name for one in model.seedless_report.remaining} == {"0", "1.0"}


def test_a_generator_of_its_own_is_left_alone():
    own = torch.Generator().manual_seed(1)
    model = seedless.convert(Lambda(lambda x: x + torch.rand(x.shape, generator=own)))
    assert not torch.equal(call(model, fill(B, 8)), call(model, fill(B, 8)))


def test_the_report_says_what_was_done():
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.drop, self.path = nn.Dropout(0.2), DropPath()
            self.rnn = nn.LSTM(8, 8, 2, dropout=0.1)

        def forward(self, x):
            return self.noise(self.path(self.drop(F.dropout(x, 0.3))))

        def noise(self, x):
            return x + torch.randperm(8) * random.random()

    model = Mixed()
    assert seedless.convert(model) is model
    report = model.seedless_report
    assert [str(one) for one in report.replaced] == ["drop: Dropout(p=0.2)"]
    assert {(one.name, one.draw.function) for one in report.intercepted} == {
        ("", "F.dropout"),
        ("path", ".bernoulli_"),
        ("rnn", "LSTM"),
    }
    assert {one.draw.function for one in report.remaining} == {"torch.randperm", "random.random"}
    lines = str(report).splitlines()
    assert lines[0] == "replaced: 1"
    assert any("test_conversion.py:" in line for line in lines)


def test_a_shared_layer_is_replaced_wherever_it_is():
    shared = nn.Dropout(0.5)
    model = seedless.convert(nn.Sequential(shared, nn.Sequential(shared)))
    assert model[0] is model[1][0]
    assert type(model[0]) is not nn.Dropout


def test_converting_again_and_copies_change_nothing():
    model, x = make("TransformerEncoderLayer")
    out = call(model, x)
    for other in (seedless.convert(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(call(other, x), out)


class Checkpointed(nn.Module):
    """Blocks with both kinds of dropout, computed again in the backward pass."""

    def __init__(self, reentrant=None, shared=False):
        super().__init__()
        torch.manual_seed(1)
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.reentrant, self.shared = reentrant, shared

    def forward(self, x):
        for number in range(2):
            block = self.blocks[0 if self.shared else number]
            again = self.reentrant is not None
            x = checkpoint(block, x, use_reentrant=self.reentrant) if again else block(x)
        return x


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.drop = nn.Linear(8, 8), nn.Dropout(0.5)

    def forward(self, x):
        return F.dropout(torch.tanh(self.drop(self.linear(x))), 0.5, self.training)


@pytest.mark.parametrize("reentrant", [False, True])
def test_what_is_computed_again_has_the_masks_of_its_forward_pass(reentrant):
    gradients = []
    for model in (Checkpointed(), Checkpointed(reentrant)):
        x = fill(B, 8).requires_grad_()
        loss = call(seedless.convert(model), x).square().sum()
        loss.backward()
        gradients.append(x.grad)
    assert torch.equal(*gradients)


def test_a_module_called_twice_cannot_be_computed_again():
    model = seedless.convert(Checkpointed(False, shared=True))
    loss = call(model, fill(B, 8).requires_grad_()).sum()
    with pytest.raises(NumericsError, match=r"'blocks\.0'.*called 2 times.*checkpointing"):
        loss.backward()


def test_time_first_input():
    x = fill(B, 7, 8)
    batch_first, time_first = (
        seedless.convert(nn.TransformerEncoderLayer(8, 2, 16, 0.3, batch_first=first))
        for first in (True, False)
    )
    time_first.load_state_dict(batch_first.state_dict())
    out = call(time_first, x.transpose(0, 1)).transpose(0, 1)
    torch.testing.assert_close(out, call(batch_first, x))
    positional = seedless.convert(nn.Sequential(nn.Dropout(0.5)))
    assert torch.equal(call(positional, x.transpose(0, 1)).transpose(0, 1), call(positional, x))


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((B, B, 8), "axis 0 or 1"),
        ((2 * B, B, 8), "axis 0 or 1"),
        ((7, 8), "no axis is that of the samples"),
        ((7, 5, 8), "no axis"),
    ],
)
def test_input_without_a_clear_axis_is_refused(shape, message):
    model = nn.Sequential(nn.Dropout(0.5))
    named = r"module '0' draws at .*test_conversion\.py:\d+ for an input"
    with pytest.raises(NumericsError, match=rf"{named}.*{message}.*axes={{'0': 0}}"):
        call(seedless.convert(model), fill(*shape))
    shared = seedless.convert(model, axes={"0": "shared"})
    out = call(shared, torch.ones(shape), step=1)
    assert torch.equal(call(shared, torch.ones(shape), step=1, keys=KEYS + 1), out)
    assert not torch.equal(call(shared, torch.ones(shape), step=2), out)
    if shape[1] == B:
        for axis in (0, 1):
            assert call(seedless.convert(model, axes={"0": axis}), fill(*shape)).shape == shape
    with pytest.raises(NumericsError, match="with samples on axis 2"):
        call(seedless.convert(model, axes={"0": 2}), fill(*shape))


def test_an_axis_holds_for_all_modules_inside_that_name_none_of_their_own():
    x = fill(B, B, 8)

    def make(**axes):
        inner = nn.Sequential(nn.Dropout(0.5), Lambda(lambda x: F.dropout(x, 0.5)))
        return seedless.convert(nn.Sequential(inner, nn.Dropout(0.5)), axes=axes)

    alone = call(make(**{"0.0": 1, "0.1": 1, "1": 0}), x)
    assert torch.equal(call(make(**{"": 0, "0": 1}), x), alone)
    assert not torch.equal(call(make(**{"": 0}), x), alone)


@pytest.mark.parametrize("axis", ["time", 1.5, True])
def test_an_axis_that_is_none_is_refused(axis):
    with pytest.raises(ModelError, match=r"axes of '0': expected a whole number or 'shared', got"):
        seedless.convert(nn.Sequential(nn.Dropout(0.5)), axes={"0": axis})


NORMAL = {
    "randn_like": torch.randn_like,
    "randn": lambda x: torch.randn(x.shape),
    "randn of sizes": lambda x: torch.randn(*x.shape, dtype=x.dtype),
    "normal_": lambda x: x.clone().normal_(),
    "normal of numbers": lambda x: torch.normal(0.0, 1.0, x.shape),
    "normal of tensors": lambda x: torch.normal(torch.zeros_like(x), torch.ones_like(x)),
    "normal of a mean": lambda x: torch.normal(torch.zeros_like(x)),
}


@pytest.mark.parametrize("name", NORMAL)
def test_normal_numbers_are_drawn_by_sample(name):
    model = seedless.convert(nn.Sequential(Lambda(NORMAL[name])))
    x, guard = fill(B, 500), GeneratorGuard()
    out = call(model, x)
    assert guard.moved() == ()
    assert torch.equal(call(model, x[ORDER], keys=KEYS[ORDER]), out[ORDER])
    assert not torch.equal(call(model, x, epoch=1), out)
    assert abs(float(out.mean())) < 0.1
    assert abs(float(out.std()) - 1.0) < 0.1
    assert torch.equal(out, call(seedless.convert(nn.Sequential(Lambda(torch.randn_like))), x))


def test_normal_numbers_have_mean_and_standard_deviation():
    plain = call(seedless.convert(nn.Sequential(Lambda(torch.randn_like))), fill(B, 9))
    for draw in (
        lambda x: torch.normal(2.0, 0.5, x.shape),
        lambda x: torch.normal(torch.full_like(x, 2.0), 0.5),
        lambda x: torch.normal(2.0, torch.full_like(x, 0.5)),
        lambda x: x.clone().normal_(2.0, 0.5),
        lambda x: x.clone().normal_(mean=2.0, std=0.5),
    ):
        out = call(seedless.convert(nn.Sequential(Lambda(draw))), fill(B, 9))
        assert torch.equal(out, plain * 0.5 + 2.0)
    with pytest.raises(NumericsError, match="a type of real numbers"):
        call(
            seedless.convert(nn.Sequential(Lambda(lambda x: torch.randn_like(x.long())))),
            fill(B, 9),
        )


def test_exponential_numbers_and_gumbel_softmax_are_drawn_by_sample():
    x, guard = fill(B, 500), GeneratorGuard()
    model = seedless.convert(nn.Sequential(Lambda(lambda x: x.clone().exponential_())))
    out = call(model, x)
    assert torch.equal(call(model, x[ORDER], keys=KEYS[ORDER]), out[ORDER])
    assert not torch.equal(call(model, x, epoch=1), out)
    assert float(out.min()) > 0
    assert abs(float(out.mean()) - 1.0) < 0.1
    faster = seedless.convert(nn.Sequential(Lambda(lambda x: x.clone().exponential_(lambd=4.0))))
    assert torch.equal(call(faster, x), out / 4)
    expected = ((x - out.log()) / 0.5).softmax(-1)
    soft = seedless.convert(nn.Sequential(Lambda(lambda x: F.gumbel_softmax(x, tau=0.5))))
    torch.testing.assert_close(call(soft, x), expected)
    hard = seedless.convert(nn.Sequential(Lambda(lambda x: F.gumbel_softmax(x, 0.5, hard=True))))
    assert torch.equal(call(hard, x).argmax(-1), expected.argmax(-1))
    assert guard.moved() == ()


def test_normal_numbers_in_a_captured_step_are_refused(monkeypatch):
    model = seedless.convert(nn.Sequential(Lambda(torch.randn_like)))
    for question in ("is_available", "is_current_stream_capturing"):
        monkeypatch.setattr(torch.cuda, question, lambda: True)
    with pytest.raises(NumericsError, match=r"module '0' draws normal or exp.* at .*mode='eager'"):
        call(model, fill(B, 9))


def test_one_row_for_all_samples_belongs_to_the_batch():
    model = seedless.convert(nn.Sequential(nn.Dropout(0.5)))
    out = call(model, torch.ones(1, 64), step=1)
    assert torch.equal(call(model, torch.ones(1, 64), step=1, keys=KEYS[:3]), out)
    assert not torch.equal(call(model, torch.ones(1, 64), step=2), out)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keep": ["nowhere"]}, r"keep names 'nowhere'.*named_modules"),
        ({"axes": {"nowhere": 0}}, r"axes names 'nowhere'.*named_modules"),
    ],
)
def test_unknown_modules_are_refused(options, message):
    with pytest.raises(ModelError, match=message):
        seedless.convert(nn.Sequential(nn.Dropout(0.5)), **options)


def test_what_is_no_model_is_refused():
    with pytest.raises(ModelError, match=r"expected a model, an nn\.Module, got list"):
        seedless.convert([nn.Dropout(0.5)])


def test_a_single_layer_is_refused():
    with pytest.raises(ModelError, match=r"convert the model that holds it"):
        seedless.convert(nn.Dropout(0.5))


@pytest.mark.parametrize("wrap", [nn.DataParallel, torch.compile])
def test_a_wrapped_model_is_refused(wrap):
    model = nn.Sequential(nn.Dropout(0.5))
    with pytest.raises(ModelError, match=r"wrapped in \w+: call seedless\.convert\(model\) first"):
        seedless.convert(wrap(model))
    assert type(model[0]) is nn.Dropout


def test_channels_need_an_axis():
    with pytest.raises(NumericsError, match=r"\(samples, channels, \.\.\.\)"):
        call(seedless.convert(nn.Sequential(nn.Dropout1d(0.5))), fill(B))


def test_portable_arithmetic_gives_the_same_masks():
    model, x = make("F.dropout")
    plain = call(model, x)
    with seedless.portable():
        assert torch.equal(call(model, x), plain)


@pytest.mark.parametrize("functional", [False, True])
def test_a_compiled_model_has_the_same_masks(functional):
    model = Lambda(lambda x: F.dropout(x, 0.5)) if functional else nn.Sequential(nn.Dropout(0.5))
    x = fill(B, 8)
    expected = [call(seedless.convert(model), x, epoch=epoch) for epoch in (0, 1)]
    compiled = torch.compile(model, backend="eager")
    assert all(torch.equal(call(compiled, x, epoch=epoch), expected[epoch]) for epoch in (0, 1))
