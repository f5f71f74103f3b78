"""Weight normalization: the layer's weight is what it would be without."""

import pytest
import torch
from torch import nn

import seedless
from seedless.init import INITIALIZATIONS

STARTS = sorted(set(INITIALIZATIONS) - {"mixed"})
LAYERS = {
    "conv": lambda: nn.Conv1d(4, 6, 5),
    "dense": lambda: nn.Linear(5, 3),
    "transposed": lambda: nn.ConvTranspose1d(4, 6, 3),
}


@pytest.mark.parametrize("basis", ["dct", "walsh"])
@pytest.mark.parametrize("dim", [0, 1, None])
@pytest.mark.parametrize("kind", sorted(LAYERS))
def test_the_weight_is_that_of_the_plain_layer(kind, dim, basis):
    plain = LAYERS[kind]()
    normed = nn.utils.parametrizations.weight_norm(LAYERS[kind](), dim=dim)
    seedless.initialize(plain, basis)
    seedless.initialize(normed, basis)
    assert torch.equal(normed.parametrizations.weight.original1, plain.weight)
    assert torch.allclose(normed.weight, plain.weight, rtol=1e-6, atol=1e-8)


@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")
def test_the_older_form_too():
    plain, normed = nn.Conv1d(4, 6, 5), nn.utils.weight_norm(nn.Conv1d(4, 6, 5))
    seedless.initialize(plain, "dct")
    seedless.initialize(normed, "dct")
    assert torch.equal(normed.weight_v, plain.weight)
    norms = plain.weight.detach().double().flatten(1).norm(dim=1)
    assert torch.allclose(normed.weight_g.flatten().double(), norms, rtol=1e-7)


@pytest.mark.parametrize("basis", STARTS)
def test_every_start_fills_it(basis):
    model = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(4, 4)))
    plan = seedless.initialize(model, basis)
    weight = model[0].parametrizations.weight
    assert torch.allclose(weight.original0.flatten(), weight.original1.norm(dim=1))
    rows = {row.parameter: row for row in plan.rows}
    assert rows["0.parametrizations.weight.original0"].rule == "norms"
    again = seedless.initialize(model, basis)
    assert again.digest == plan.digest
    assert len(str(plan)) > 100
