"""Modules of anyone's: what a parameter is, is read from what its module does with it."""

import math

import pytest
import torch
from torch import nn

import seedless
from seedless.init import INITIALIZATIONS, make_plan

STARTS = sorted(set(INITIALIZATIONS) - {"mixed"})


class Tokens(nn.Module):
    """The beginning of a vision transformer; names say nothing, on purpose."""

    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.randn(1, 1, 8))
        self.b = nn.Parameter(torch.randn(1, 4, 8))
        self.c = nn.Parameter(torch.zeros(1, 17, 8))
        self.weight = nn.Parameter(torch.randn(1, 8))

    def forward(self, x, mask=None):
        x = torch.where(mask, self.weight.to(x.dtype), x)
        first = self.a.expand(len(x), -1, -1)
        x = torch.cat((first, self.b.expand(len(x), -1, -1), x), dim=1)
        return x + self.resize(x)

    def resize(self, x):
        if x.shape[1] == self.c.shape[1]:
            return self.c
        return torch.cat((self.c[:, :1], self.c[:, 1:].flip(1)), dim=1)


@pytest.mark.parametrize("basis", STARTS)
def test_tokens_are_zero_and_tables_have_the_spread_of_positions(basis):
    model = Tokens()
    seedless.initialize(model, basis)
    assert not model.a.any()
    assert not model.weight.any()
    for table in (model.b, model.c):
        assert float(table.detach().double().std()) == pytest.approx(0.02, rel=0.15)
        assert len(torch.unique(table.detach()[0], dim=0)) == table.shape[1]


def test_positions_are_rows_of_the_basis():
    model = Tokens()
    plan = seedless.initialize(model, "dct")
    (row,) = [row for row in plan.rows if row.parameter == "c"]
    assert (row.rule, row.basis, row.filters) == ("filters", "dct", (17, 8))
    assert row.sigma == pytest.approx(0.02)
    # Not the constant row: with a token of zeros it would be a constant input of a norm layer.
    assert float(model.c.detach()[0].std(dim=1).min()) > 0.005
    expected = torch.from_numpy(seedless.basis("dct", 18)[1:, :8])
    expected = (expected - expected.mean()) * (0.02 / expected.std(correction=0))
    assert torch.allclose(model.c[0].double(), expected, atol=1e-8)


class Window(nn.Module):
    """Attention with a table of relative positions, in the way of Swin."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(49, 3))
        self.heat = nn.Parameter(torch.log(10 * torch.ones(3, 1, 1)))
        self.register_buffer("index", torch.zeros(16, 16, dtype=torch.long))

    def read_bias(self):
        bias = self.table[self.index.view(-1)].view(16, 16, -1)
        return bias.permute(2, 0, 1).contiguous()

    def forward(self, scores):
        scores = scores * torch.clamp(self.heat, max=4.6).exp()
        return (scores + self.read_bias().unsqueeze(0)).softmax(dim=-1)


def test_tables_of_relative_positions_are_zero_and_constants_stay():
    model = Window()
    plan = seedless.initialize(model, "dct")
    assert not model.table.any()
    assert torch.equal(model.heat, torch.log(10 * torch.ones(3, 1, 1)))
    assert [row.kept for row in plan.rows] == ["", "constant"]
    assert "kept 2.3" in str(plan)


class Experts(nn.Module):
    """Dense layers in a stack, one of them stored the other way round, and a router."""

    def __init__(self):
        super().__init__()
        self.up = nn.Parameter(torch.empty(4, 6, 5))
        self.down = nn.Parameter(torch.empty(4, 6, 5))
        self.offset = nn.Parameter(torch.empty(4, 5))
        self.router = nn.Parameter(torch.empty(4, 5))
        self.shift = nn.Parameter(torch.empty(4))

    def forward(self, x):
        scores = nn.functional.linear(x, self.router, self.shift)
        for i in scores.argmax(-1).unique():
            x = nn.functional.linear(x, self.up[i]) @ self.down[i] + self.offset[i]
        return x


def test_experts_are_dense_layers_with_rows_of_their_own():
    model = Experts()
    plan = {row.parameter: row for row in seedless.initialize(model, "dct").rows}
    assert plan["up"].filters == (24, 5)
    assert plan["router"].filters == (4, 5)
    assert not model.shift.any()
    assert not model.offset.any()
    other = nn.Linear(5, 24)
    seedless.initialize(other, "dct")
    assert torch.equal(model.up.reshape(24, 5), other.weight)
    other = nn.Linear(6, 20)  # four experts of 6 inputs and 5 outputs each
    seedless.initialize(other, "dct")
    assert torch.equal(model.down.transpose(1, 2).reshape(20, 6), other.weight)
    assert plan["down"].sigma == pytest.approx(1 / math.sqrt(18))


class Product(nn.Module):
    """A dense layer with its weight stored as (I, O), in the way of GPT-2."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 7))
        self.bias = nn.Parameter(torch.randn(7))

    def forward(self, x):
        return torch.addmm(self.bias, x, self.weight)


def test_a_weight_stored_the_other_way_round_is_the_same_layer():
    model, other = Product(), nn.Linear(3, 7)
    seedless.initialize(model, "dct")
    seedless.initialize(other, "dct")
    assert torch.equal(model.weight.t(), other.weight)
    assert not model.bias.any()


class Sums(nn.Module):
    """Attention in the way of XLNet, and experts: weights of several axes."""

    def __init__(self):
        super().__init__()
        self.to_heads = nn.Parameter(torch.randn(6, 2, 3))
        self.from_heads = nn.Parameter(torch.randn(5, 2, 3))
        self.experts = nn.Parameter(torch.randn(4, 5, 7))

    def forward(self, x, split):
        heads = torch.einsum("bth, hnd -> btnd", x, self.to_heads)
        joined = torch.einsum("btnd,ond->bto", heads, self.from_heads)
        return torch.einsum("ebi,eij->ebj", split(joined), self.experts)


def test_weights_of_an_einsum_are_dense_layers():
    model = Sums()
    plan = {row.parameter: row for row in seedless.initialize(model, "dct").rows}
    layers = {
        "to_heads": nn.Linear(6, 6),
        "from_heads": nn.Linear(6, 5),
        "experts": nn.Linear(5, 28),
    }
    for layer in layers.values():
        seedless.initialize(layer, "dct")
    assert torch.equal(model.to_heads.reshape(6, 6).t(), layers["to_heads"].weight)
    assert torch.equal(model.from_heads.reshape(5, 6), layers["from_heads"].weight)
    assert torch.equal(model.experts.transpose(1, 2).reshape(28, 5), layers["experts"].weight)
    assert plan["experts"].sigma == pytest.approx(1 / math.sqrt(15))


class Unclear(nn.Module):
    def __init__(self):
        super().__init__()
        self.diagonal = nn.Parameter(torch.randn(4, 4))

    def forward(self, x):
        return torch.einsum("bi,ii->bi", x, self.diagonal)


def test_an_einsum_that_is_no_dense_layer_is_refused_and_offered_filters_first():
    with pytest.raises(seedless.SeedlessError, match=r'\{"diagonal": "filters"\}'):
        seedless.initialize(Unclear())


class Scaled(nn.Module):
    def __init__(self, value):
        super().__init__()
        self.gamma = nn.Parameter(value * torch.ones(6))
        self.rates = nn.Parameter(torch.log(torch.arange(1.0, 7.0)))

    def forward(self, x):
        return x * self.gamma * torch.exp(self.rates)


@pytest.mark.parametrize("value", [1e-6, 1.0, 0.0])
def test_layer_scales_keep_their_number_and_computed_tables_their_values(value):
    model = Scaled(value)
    before = seedless.digest(model)
    plan = seedless.initialize(model, "dct")
    assert seedless.digest(model) == before
    assert [row.kept for row in plan.rows] == ["constant", "table"]


class Unwritten(nn.Module):
    """Memory that nobody wrote: it is often zero, by chance."""

    def __init__(self):
        super().__init__()
        self.gamma = nn.Parameter(torch.empty(6))

    def forward(self, x):
        return x * self.gamma


def test_zeros_by_chance_are_not_a_constant():
    model = Unwritten()
    with torch.no_grad():
        model.gamma.zero_()
    with pytest.raises(seedless.SeedlessError, match="no rule for 'gamma'"):
        make_plan(model, "dct")


def test_a_gain_is_never_offered_zeros_first():
    model = Scaled(1.0)
    with torch.no_grad():
        model.gamma[0] = 2.0
    with pytest.raises(seedless.SeedlessError) as caught:
        make_plan(model, "dct")
    assert 'claims={"gamma": "ones"}), or "zeros"' in str(caught.value)


class Ambiguous(nn.Module):
    """Added in one place and multiplied in another: it cannot be known what it is."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Parameter(torch.randn(6))

    def forward(self, x):
        return x * self.mix + (x + self.mix)


def test_what_cannot_be_known_is_refused():
    with pytest.raises(seedless.SeedlessError, match="no rule for 'mix'"):
        make_plan(Ambiguous(), "dct")
