"""However a batch is split, ordered or shared out, its gradient is the same bit for bit."""

import math
from fractions import Fraction

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

import seedless
from seedless.core.errors import NumericsError
from seedless.numerics.portable.accumulate import Accumulator, Gradients
from seedless.numerics.portable.cases import Drawn
from seedless.numerics.portable.mode import portable

FLOATS = st.floats(width=32, min_value=-(2.0**39), max_value=2.0**39)
CPU = torch.device("cpu")
X = Drawn((6, 12, 120), 2.0).make("x", CPU)
Y = (torch.arange(6)[:, None] + torch.arange(12)) % 3 == 0
PLANS = [[[0, 1, 2, 3, 4, 5]], [[0, 1, 2], [3, 4, 5]], [[5, 1], [0], [4, 3, 2]]]


def add_all(values):
    total = Accumulator(torch.zeros(1))
    for value in values:
        total.add(torch.tensor([value]))
    return total


@settings(max_examples=100)
@given(st.lists(FLOATS, min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_a_sum_is_exact_in_any_order_and_split(values, random):
    exact = sum(map(Fraction, values), Fraction(0))
    found = add_all(values)
    limbs = zip(found.limbs, (0, -40, -80, -120, -160), strict=True)
    assert sum(Fraction(int(limb)) * Fraction(2) ** exponent for limb, exponent in limbs) == exact
    assert found.value().item() == pytest.approx(float(exact), rel=2.0**-51, abs=0)
    shuffled = list(values)
    random.shuffle(shuffled)
    cut = random.randint(0, len(values))
    parts = add_all(shuffled[:cut])
    parts.merge(add_all(shuffled[cut:]))
    assert parts.value().item() == found.value().item()


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 2.0**41])
def test_what_does_not_fit_is_not_a_number(bad):
    assert math.isnan(add_all([1.0, bad, 2.0]).value())


def make_model():
    model = seedless.build("conformer", small=True)
    seedless.initialize(model)
    return model


def loss_of(model, rows):
    return F.binary_cross_entropy_with_logits(model(X[rows]), Y[rows].float())


def gather(plan):
    model = make_model()
    whole = Gradients(model.parameters())
    for rows in plan:
        part = Gradients(model.parameters())
        with portable():
            for row in rows:
                part.add(loss_of(model, [row]))
        whole.merge(part)
    with portable():
        whole.write()
    return model


def test_no_split_shows_in_a_gradient():
    models = [gather(plan) for plan in PLANS]
    digests = {
        seedless.digest({name: p.grad for name, p in model.named_parameters()}) for model in models
    }
    assert len(digests) == 1
    plain = make_model()
    loss_of(plain, list(range(6))).backward()
    for one, two in zip(models[0].parameters(), plain.parameters(), strict=True):
        assert torch.allclose(one.grad, two.grad, atol=1e-5, rtol=1e-3)


def test_negative_control_plain_accumulation_shows_the_split():
    digests = set()
    for plan in PLANS:
        model = make_model()
        for rows in plan:
            with portable():
                (loss_of(model, rows) * (len(rows) / 6)).backward()
        digests.add(seedless.digest({name: p.grad for name, p in model.named_parameters()}))
    assert len(digests) > 1


def test_gathering_outside_the_mode_is_refused():
    model = make_model()
    with pytest.raises(NumericsError, match="Move forward and add"):
        Gradients(model.parameters()).add(loss_of(model, [0]))
    with portable(), pytest.raises(NumericsError, match="some samples"):
        Gradients(model.parameters()).write()
