"""`initialize` on anyone's model: every layer type, marks, rules, controls, and refusals."""

import copy
import random

import numpy as np
import pytest
import torch
from torch import nn

import seedless
from seedless.init import INITIALIZATIONS, make_plan
from seedless.init.layer_weights import default_sigma
from seedless.numerics.exact_sums import exact_gram

STARTS = sorted(set(INITIALIZATIONS) - {"mixed"})


class Zoo(nn.Module):
    """One layer of every kind `initialize` knows."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            [
                nn.Conv1d(3, 8, 5),
                nn.Conv2d(3, 8, 3, groups=1),
                nn.Conv3d(2, 4, 3),
                nn.ConvTranspose1d(4, 6, 3, groups=2),
                nn.ConvTranspose2d(4, 6, 3),
                nn.ConvTranspose3d(2, 2, 2),
                nn.Linear(5, 7),
                nn.Bilinear(3, 4, 5),
                nn.Embedding(11, 6, padding_idx=2),
                nn.EmbeddingBag(9, 4),
                nn.MultiheadAttention(8, 2),
                nn.MultiheadAttention(8, 2, kdim=6, vdim=4, add_bias_kv=True),
                nn.LSTM(4, 6, num_layers=2, bidirectional=True, proj_size=3),
                nn.GRU(4, 6),
                nn.RNN(4, 6),
                nn.LSTMCell(4, 6),
                nn.BatchNorm1d(4),
                nn.BatchNorm2d(4),
                nn.BatchNorm3d(4),
                nn.InstanceNorm1d(4, affine=True),
                nn.LayerNorm(4),
                nn.GroupNorm(2, 4),
                nn.RMSNorm(4),
                nn.PReLU(4),
                nn.TransformerEncoderLayer(8, 2, 16),
            ]
        )

    def forward(self, x):
        raise AssertionError("initialization must not run the model")


@pytest.mark.parametrize("basis", STARTS)
def test_every_layer_type_is_filled(basis):
    model = Zoo()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(float("nan"))
    plan = seedless.initialize(model, basis)
    assert {row.parameter for row in plan.rows} == {name for name, _ in model.named_parameters()}
    for name, parameter in model.named_parameters():
        assert torch.isfinite(parameter).all(), name
    for row in plan.rows:
        parameter = model.get_parameter(row.parameter)
        if row.rule == "filters" and row.zero_row is None:
            spread = float(parameter.detach().double().std(correction=0))
            assert spread == pytest.approx(row.sigma, rel=1e-6), row.parameter
    embedding = model.get_parameter("layers.8.weight")
    assert not embedding[2].any()
    assert embedding[3].any()


def test_norms_start_at_one_and_biases_at_zero():
    model = Zoo()
    seedless.initialize(model, "dct")
    for module in model.modules():
        if isinstance(module, nn.LayerNorm | nn.GroupNorm | nn.BatchNorm1d):
            assert (module.weight == 1).all()
            assert (module.bias == 0).all()
        if isinstance(module, nn.Linear | nn.Conv1d):
            assert (module.bias == 0).all()


@pytest.mark.parametrize("basis", STARTS)
def test_twice_is_the_same_whatever_was_there_before(basis):
    first, second = Zoo(), Zoo()
    for module in second.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.running_mean.fill_(3.0)
    one, two = seedless.initialize(first, basis), seedless.initialize(second, basis)
    assert seedless.digest(first) == seedless.digest(second)
    assert one.digest == two.digest


def test_transposed_convolutions_have_orthonormal_outputs():
    layer = nn.ConvTranspose1d(6, 4, 5, groups=2)
    seedless.initialize(layer, "dct")
    weight = layer.weight.detach().double().numpy()  # (in, out / groups, kernel)
    filters = np.stack([weight[3 * g : 3 * g + 3, o].ravel() for g in range(2) for o in range(2)])
    other = nn.Conv1d(6, 4, 5, groups=2)
    seedless.initialize(other, "dct")
    np.testing.assert_array_equal(filters, other.weight.detach().double().numpy().reshape(4, -1))


def test_dense_rows_are_orthogonal_up_to_centring():
    layer = nn.Linear(64, 16)
    plan = seedless.initialize(layer, "walsh")
    inner = exact_gram(plan.tensors()["weight"])
    off = inner - np.diag(np.diagonal(inner))
    assert np.abs(off).max() / np.diagonal(inner).mean() < 0.1


class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Parameter(torch.randn(1, 1, 8))
        self.inner = nn.Linear(8, 8)
        self.inner.gamma = nn.Parameter(torch.zeros(8))


def test_a_parameter_without_a_rule_is_an_error_that_says_how_to_declare_one():
    with pytest.raises(seedless.SeedlessError) as caught:
        seedless.initialize(Own(), "dct")
    message = str(caught.value)
    assert "'token' of shape (1, 1, 8) in Own" in message
    assert 'seedless.mark(model, claims={"token": "zeros"})' in message
    assert 'seedless.mark(model.get_submodule("inner"), claims={"gamma": "zeros"})' in message


def test_declared_rules_fill_parameters_of_your_own():
    model = Own()
    seedless.mark(model, claims={"token": "filters"})
    seedless.mark(model.inner, claims={"gamma": "ones"})
    seedless.initialize(model, "hartley")
    assert (model.inner.gamma == 1).all()
    assert model.token.abs().min() > 0


def test_a_refusal_changes_nothing():
    model = Own()
    before = seedless.digest(model)
    with pytest.raises(seedless.SeedlessError):
        seedless.initialize(model, "dct")
    assert seedless.digest(model) == before


def test_a_rule_for_a_missing_parameter_is_refused():
    model = seedless.mark(nn.Linear(2, 2), claims={"wieght": "zeros"})
    with pytest.raises(seedless.SeedlessError, match="'wieght'"):
        seedless.initialize(model, "dct")


def test_filters_need_two_axes():
    model = seedless.mark(nn.Linear(2, 2), claims={"bias": "filters"})
    with pytest.raises(seedless.SeedlessError, match="two axes"):
        seedless.initialize(model, "dct")


def make_staged():
    return nn.Sequential(
        *[seedless.mark(nn.Sequential(nn.Linear(12, 12)), stage=stage) for stage in range(4)]
    )


def test_mixed_gives_each_stage_its_basis():
    model = make_staged()
    plan = seedless.initialize(model, "mixed")
    found = [row.basis for row in plan.rows if row.rule == "filters"]
    assert found == ["dct", "hadamard", "hartley", "dct"]
    for layer, basis in zip(model, found, strict=True):
        other = nn.Linear(12, 12)
        seedless.initialize(other, basis)
        assert torch.equal(layer[0].weight, other.weight)


def test_mixed_is_refused_without_stages():
    with pytest.raises(seedless.SeedlessError, match="stage"):
        seedless.initialize(nn.Linear(3, 3), "mixed")
    model = nn.Sequential(seedless.mark(nn.Linear(3, 3), stage=1), nn.Linear(3, 3))
    with pytest.raises(seedless.SeedlessError, match=r"1\.weight is in none"):
        seedless.initialize(model, "mixed")


def test_without_marks_every_layer_is_stage_zero():
    plan = make_plan(nn.Sequential(nn.Linear(3, 3), nn.Conv1d(3, 3, 1)), "dct")
    assert {row.stage for row in plan.rows} == {0}
    assert {row.stage for row in make_plan(nn.Linear(3, 3), "kaiming").rows} == {0}


@pytest.mark.parametrize("alpha", [0.0, 0.01, 0.42, 1.0])
def test_residual_exits_are_scaled(alpha):
    exit_ = seedless.mark(nn.Conv1d(8, 8, 3), residual_exit=True)
    plain = nn.Conv1d(8, 8, 3)
    plan = seedless.initialize(nn.Sequential(plain, exit_), "dct", residual_scale=alpha)
    expected = alpha * default_sigma((8, 8, 3))
    spread = float(exit_.weight.detach().double().std(correction=0))
    assert spread == pytest.approx(expected, rel=1e-6)
    assert plan.rows[2].sigma == expected
    assert float(plain.weight.detach().double().std(correction=0)) > 0


def test_zero_gain_norms_start_silent():
    norm = seedless.mark(nn.BatchNorm1d(4), zero_gain=True)
    for basis in ("dct", "kaiming"):
        seedless.initialize(norm, basis)
        assert (norm.weight == 0).all()


def test_heads_as_declared_or_as_asked():
    etf, dense = nn.Linear(6, 4), nn.Linear(6, 4)
    model = nn.ModuleDict(
        {"a": seedless.mark(etf, head="etf"), "b": seedless.mark(dense, head="basis")}
    )
    rules = lambda **kw: [row.rule for row in make_plan(model, "dct", **kw).rows if row.filters]  # noqa: E731
    assert rules() == ["frame", "filters"]
    assert rules(heads="etf") == ["frame", "frame"]
    assert rules(heads="basis") == ["filters", "filters"]
    seedless.initialize(model, "dct")
    lengths = torch.linalg.vector_norm(etf.weight.detach(), dim=1)
    assert torch.allclose(lengths, torch.ones(4))


def test_kaiming_is_pytorchs_distribution_by_name_index_and_seed():
    model = nn.Sequential(nn.Conv1d(40, 400, 5), nn.Conv1d(40, 400, 5))
    seedless.initialize(model, "kaiming")
    bound = 1 / np.sqrt(200)
    for layer in model:
        weight = layer.weight.detach()
        assert weight.abs().max() <= bound
        assert weight.abs().max() > 0.999 * bound
        assert float(weight.std()) == pytest.approx(bound / np.sqrt(3), rel=0.01)
        assert layer.bias.abs().max() <= bound
        assert layer.bias.abs().max() > 0
    assert not torch.equal(model[0].weight, model[1].weight)
    again = copy.deepcopy(model)
    seedless.initialize(again, "kaiming", seed=1)
    assert not torch.equal(model[0].weight, again[0].weight)
    seedless.initialize(again, "kaiming", seed=0)
    assert seedless.digest(again) == seedless.digest(model)


def test_kaiming_normal_is_normal_with_zero_biases():
    model = nn.Conv2d(64, 128, 3)
    seedless.initialize(model, "kaiming_normal", seed=7)
    weight = model.weight.detach().double() * np.sqrt(64 * 9 / 2)
    assert float(weight.mean()) == pytest.approx(0, abs=0.02)
    assert float(weight.std()) == pytest.approx(1, abs=0.01)
    assert float((weight**4).mean()) == pytest.approx(3, abs=0.1)
    assert not model.bias.any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"basis": "dtc"}, "did you mean 'dct'"),
        ({"basis": "dct", "seed": 1}, "has no seed"),
        ({"basis": "kaiming", "offset": 1}, "has no offset"),
        ({"basis": "scrambled", "offset": -1}, "from 0 to 18446744073709551615"),
        ({"basis": "kaiming", "heads": "etf"}, "needs a declared head"),
        ({"basis": "kaiming", "seed": -1}, "from 0 to 18446744073709551615"),
        ({"basis": "dct", "residual_scale": -1}, "from 0 to 1e6"),
        ({"basis": "dct", "residual_scale": float("nan")}, "from 0 to 1e6"),
        ({"basis": "dct", "residual_scale": True}, "from 0 to 1e6"),
        ({"basis": "dct", "residual_scale": 1e300}, "from 0 to 1e6"),
        ({"basis": "dct", "heads": "eft"}, "expected heads to be one of etf, basis, got .eft"),
        ({"basis": "dct", "heads": "etf"}, "needs a declared head"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(seedless.SeedlessError, match=message):
        seedless.initialize(nn.Linear(4, 4), **arguments)


def test_models_that_cannot_be_filled_are_refused():
    with pytest.raises(seedless.SeedlessError, match="lazy"):
        seedless.initialize(nn.LazyLinear(4), "dct")
    with torch.device("meta"):
        ghost = nn.Linear(2, 2)
    with pytest.raises(seedless.SeedlessError, match="meta"):
        seedless.initialize(ghost, "dct")
    with pytest.raises(seedless.SeedlessError, match="needs a Linear head"):
        seedless.initialize(seedless.mark(nn.Conv1d(4, 4, 3), head="etf"), "dct")


@pytest.mark.parametrize(
    "marks",
    [
        {"stage": 4},
        {"stage": -1},
        {"stage": 1.0},
        {"stage": True},
        {"head": "x"},
        {"claims": {"a": "random"}},
    ],
)
def test_bad_marks(marks):
    with pytest.raises(seedless.SeedlessError):
        seedless.mark(nn.Linear(2, 2), **marks)


def test_marks_survive_a_copy_and_add_up():
    layer = seedless.mark(seedless.mark(nn.Linear(4, 4), stage=2), residual_exit=True)
    plan = make_plan(copy.deepcopy(layer), "mixed")
    assert (plan.rows[0].basis, plan.rows[0].scale) == ("hartley", 0.01)


def test_shared_parameters_are_filled_once():
    model = nn.ModuleDict({"embed": nn.Embedding(10, 4), "out": nn.Linear(4, 10, bias=False)})
    model["out"].weight = model["embed"].weight
    plan = seedless.initialize(model, "dct")
    assert len(plan.rows) == 1


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_other_dtypes_hold_the_same_values(dtype):
    model = nn.Linear(8, 8).to(dtype)
    other = nn.Linear(8, 8)
    seedless.initialize(model, "dct")
    seedless.initialize(other, "dct")
    assert torch.equal(model.weight, other.weight.to(dtype))


def test_no_generator_moves():
    before = (torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate())
    for basis in STARTS:
        seedless.initialize(nn.utils.skip_init(nn.Linear, 30, 30), basis)
    assert torch.equal(before[0], torch.get_rng_state())
    assert (before[1] == np.random.get_state()[1]).all()
    assert before[2] == random.getstate()


def test_a_plan_touches_nothing_and_its_digest_sees_everything():
    model = make_staged()
    before = seedless.digest(model)
    digests = {
        make_plan(model, "mixed").digest,
        make_plan(model, "dct").digest,
        make_plan(model, "kaiming").digest,
        make_plan(model, "kaiming", seed=1).digest,
    }
    assert len(digests) == 4
    assert seedless.digest(model) == before


def test_a_plan_reports_what_was_filled():
    model = nn.Sequential(nn.Conv2d(3, 64, 3, bias=False), nn.Linear(40, 160), nn.Linear(40, 160))
    plan = make_plan(model, "hadamard")
    image, dense = plan.measures["0.weight"], plan.measures["1.weight"]
    assert image["distinct"] == 27  # 3 * 3 * 3 products, cycled through
    assert image["coherence"] == 1.0
    assert dense["distinct"] == 64  # rows of the cut Sylvester matrix repeat
    assert dense["orthogonality_error"] > 0.01
    table = str(plan)
    assert plan.digest in table
    assert "*.weight x2" in table
    assert (
        make_plan(nn.Linear(64, 64), "hadamard").measures["weight"]["orthogonality_error"] < 1e-15
    )


@pytest.mark.parametrize(
    ("marked", "message"),
    [
        (lambda: seedless.mark(nn.Sequential(nn.Linear(4, 4)), residual_exit=True), "Sequential"),
        (lambda: seedless.mark(nn.Sequential(nn.Linear(4, 4)), head="etf"), "marked head"),
        (lambda: seedless.mark(nn.Linear(4, 4), zero_gain=True), "not a norm layer"),
        (lambda: seedless.mark(nn.MultiheadAttention(4, 2), residual_exit=True), "out_proj"),
    ],
)
def test_a_mark_with_nothing_to_act_on_is_refused(marked, message):
    for basis in ("dct", "kaiming"):
        with pytest.raises(seedless.SeedlessError, match=message):
            seedless.initialize(marked(), basis)


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # torch warns of itself
@pytest.mark.parametrize("wrap", [torch.compile, nn.DataParallel])
def test_a_wrapped_model_is_refused(wrap):
    with pytest.raises(seedless.SeedlessError, match="initialize the model first, then wrap"):
        seedless.initialize(wrap(nn.Linear(4, 4)), "dct")


def test_recurrent_layers_have_rules_for_their_own_parameters_and_no_others():
    layer = nn.LSTM(4, 3)
    layer.weight_gain = nn.Parameter(torch.zeros(3))
    with pytest.raises(seedless.SeedlessError, match="'weight_gain'"):
        seedless.initialize(layer, "dct")


def test_random_biases_are_scaled_by_their_own_matrix():
    layer = nn.LSTM(400, 100)
    seedless.initialize(layer, "kaiming")
    assert 0.045 < layer.bias_ih_l0.abs().max() <= 1 / 20
    assert 0.09 < layer.bias_hh_l0.abs().max() <= 1 / 10


def test_buffers_that_nobody_resets_are_named():
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    model[0].register_buffer("table", torch.arange(3.0))
    plan = seedless.initialize(model, "dct")
    assert plan.kept_buffers == ("0.table",)
    assert "buffers left as they are: 0.table" in str(plan)


def test_coherence_is_that_of_the_centred_filters():
    # Rows of the DCT are orthogonal; centring leaves each with a little of the constant row.
    plan = make_plan(nn.Conv1d(12, 40, 5), "dct")
    weights = plan.tensors()["weight"].reshape(40, -1).astype(np.float64)
    cosines = weights @ weights.T
    norms = np.sqrt(np.diagonal(cosines))
    expected = np.abs(cosines / norms[:, None] / norms)[~np.eye(40, dtype=bool)].max()
    assert plan.measures["weight"]["coherence"] == pytest.approx(expected, abs=1e-6)
    assert 0.02 < expected < 0.03


def test_an_embeddings_padding_row_counts_in_what_is_measured():
    padded = make_plan(nn.Embedding(6, 6, padding_idx=2), "dct").measures["weight"]
    whole = make_plan(nn.Embedding(6, 6), "dct").measures["weight"]
    assert padded["distinct"] == whole["distinct"] == 6
    assert padded["coherence"] <= whole["coherence"]


def make_branch():
    """A layer, a norm that its author switched off, and a table of positions that is frozen."""
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Embedding(6, 4))
    with torch.no_grad():
        model[1].weight.zero_()
        model[2].weight.copy_(torch.arange(24.0).reshape(6, 4))
    model[2].weight.requires_grad_(False)
    return model


@pytest.mark.parametrize("basis", STARTS)
def test_frozen_parameters_stay_as_they_are(basis):
    model = make_branch()
    plan = seedless.initialize(model, basis)
    assert torch.equal(model[2].weight, torch.arange(24.0).reshape(6, 4))
    assert not model[2].weight.requires_grad
    row = plan.rows[-1]
    assert (row.rule, row.kept) == ("kept", "frozen")
    assert "2.weight" not in plan.tensors()
    assert "frozen" in str(plan)


def test_what_is_frozen_is_part_of_the_digest():
    one, two = make_branch(), make_branch()
    with torch.no_grad():
        two[2].weight.add_(1.0)
    assert make_plan(one, "dct").digest != make_plan(two, "dct").digest
    assert make_plan(one, "dct").digest == make_plan(make_branch(), "dct").digest


def test_a_claim_is_stronger_than_frozen():
    model = make_branch()
    seedless.mark(model[2], claims={"weight": "zeros"})
    seedless.initialize(model, "dct")
    assert not model[2].weight.any()


def test_a_frozen_norm_keeps_its_statistics():
    frozen, free = nn.BatchNorm1d(3).requires_grad_(False), nn.BatchNorm1d(3)
    for norm in (frozen, free):
        norm.running_mean.fill_(2.0)
    model = nn.Sequential(frozen, free)
    plan = seedless.initialize(model, "dct")
    assert (frozen.running_mean == 2).all()
    assert (free.running_mean == 0).all()
    assert "0.running_mean" in plan.kept_buffers


def test_what_is_no_model_is_refused():
    with pytest.raises(seedless.SeedlessError, match=r"expected a model, an nn\.Module, got list"):
        seedless.initialize([nn.Linear(2, 2)])


def test_a_model_that_is_frozen_whole_is_refused():
    with pytest.raises(seedless.SeedlessError, match="every parameter is frozen"):
        seedless.initialize(nn.Linear(3, 3).requires_grad_(False), "dct")


def test_zeros_are_kept_where_asked_and_the_plan_says_so():
    model = make_branch()
    seedless.initialize(model, "dct")
    assert (model[1].weight == 1).all()  # by default a gain is 1
    model = make_branch()
    plan = seedless.initialize(model, "dct", keep="zeros")
    assert not model[1].weight.any()
    assert model[0].weight.any()
    assert [row.kept for row in plan.rows if row.parameter == "1.weight"] == ["zeros"]
    assert "kept zeros" in str(plan)


def test_keep_is_zeros_or_nothing():
    with pytest.raises(seedless.SeedlessError, match='expected keep to be "zeros" or None'):
        seedless.initialize(nn.Linear(3, 3), "dct", keep="ones")
