"""Which tensors of a model are taken from a weights file, and which files are refused."""

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from seedless.core.config import parse_config
from seedless.core.digests import digest, digest_each, digest_value, name_tensors
from seedless.core.errors import InitError, RunError
from seedless.core.weights_file import pin_weights
from seedless.init import initialize
from seedless.runs.initial_weights import begin_with_file, match_tensors


class Net(nn.Module):
    """A body, a norm, a head, a tied pair, and a buffer that a state dict leaves out."""

    def __init__(self, classes=3):
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.norm = nn.BatchNorm1d(4)
        self.head = nn.Linear(4, classes)
        self.first = nn.Linear(4, 4, bias=False)
        self.last = nn.Linear(4, 4, bias=False)
        self.last.weight = self.first.weight
        self.register_buffer("table", torch.arange(4.0), persistent=False)


def make_state(**changes):
    """Return the state of a model whose tensors hold 1, 2, 3, ..., with some of them replaced."""
    net = Net()
    state = {
        name: torch.full_like(tensor, place)
        for place, (name, tensor) in enumerate(net.state_dict().items(), start=1)
    }
    state["last.weight"] = state["first.weight"].clone()
    return {k: v for k, v in {**state, **changes}.items() if v is not None}


def begin(tmp_path, net, state, **init):
    path = tmp_path / "base.safetensors"
    save_file(state, path)
    config = pin_weights(parse_config({"init": {"weights": str(path), **init}}))
    return begin_with_file(config.init, net)


def test_every_tensor_is_taken_and_named(tmp_path):
    net, state = Net(), make_state()
    plan, file = begin(tmp_path, net, state)
    assert plan is None
    assert all(torch.equal(net.state_dict()[name], state[name]) for name in state)
    assert file["taken"] == sorted(state)
    assert (file["started"], file["kept"]) == ([], ["table"])
    assert file["name"] == "base.safetensors"
    taken = {f"model/{name}": state[name] for name in state}
    assert file["tensors"] == digest_value(digest_each(taken))


def test_a_new_head_is_started_as_initialize_starts_it(tmp_path):
    """Its numbers follow from its name and shape: those of a model that is started as a whole."""
    net, started = Net(classes=5), Net(classes=5)
    settings = {"basis": "canonical_kaiming", "reinitialize": ["head.*"]}
    plan, file = begin(tmp_path, net, make_state(), **settings)
    initialize(started, "canonical_kaiming")
    for part in ("weight", "bias"):
        assert torch.equal(getattr(net.head, part), getattr(started.head, part))
    assert file["started"] == ["head.bias", "head.weight"]
    assert {row.parameter for row in plan.rows} == {"head.bias", "head.weight"}
    assert torch.equal(net.body.weight, make_state()["body.weight"])
    # [Negative control] Without the list the head of another shape is refused.
    with pytest.raises(InitError, match=r"expected head\.weight \(5, 4\), got \(3, 4\)"):
        begin(tmp_path, Net(classes=5), make_state())


def test_running_statistics_are_reset_where_they_are_named(tmp_path):
    net = Net()
    _, file = begin(tmp_path, net, make_state(), basis="dct", reinitialize=["norm.*"])
    assert {"norm.running_mean", "norm.num_batches_tracked"} <= {*file["started"]}
    assert torch.equal(net.norm.running_var, torch.ones(4))
    assert not net.norm.running_mean.any()
    assert net.norm.num_batches_tracked == 0
    assert torch.equal(net.norm.weight, torch.ones(4))


def test_a_buffer_that_no_state_dict_has_is_taken_where_the_file_has_it(tmp_path):
    net, table = Net(), torch.full((4,), 9.0)
    _, file = begin(tmp_path, net, make_state(table=table))
    assert file["kept"] == []
    assert torch.equal(net.table, table)


def test_one_name_of_a_tied_tensor_is_enough_and_two_must_agree(tmp_path):
    net, tied = Net(), torch.full((4, 4), 7.0)
    _, file = begin(tmp_path, net, make_state(**{"first.weight": None, "last.weight": tied}))
    assert torch.equal(net.first.weight, tied)
    assert {"first.weight", "last.weight"} <= {*file["taken"]}
    with pytest.raises(InitError, match=r"first\.weight and last\.weight are one tensor"):
        begin(tmp_path, Net(), make_state(**{"last.weight": tied}))
    with pytest.raises(InitError, match="name both, or neither"):
        begin(tmp_path, Net(), make_state(), basis="dct", reinitialize=["last.*"])


def test_halves_are_widened_and_nothing_is_rounded(tmp_path):
    net, third = Net(), torch.full((4, 4), 1 / 3)
    begin(tmp_path, net, make_state(**{"body.weight": third.half()}))
    assert torch.equal(net.body.weight, third.half().float())
    for wrong in (third.double(), third.int(), third.to(torch.float8_e4m3fn)):
        with pytest.raises(InitError, match=r"expected body\.weight as torch\.float32, got"):
            begin(tmp_path, Net(), make_state(**{"body.weight": wrong}))


REFUSED = {
    "a missing tensor": ({"body.bias": None}, r"expected body\.bias \(4,\), got none"),
    "a tensor too many": ({"fc.bias": torch.ones(2)}, r"got fc\.bias \(2,\), which the model la"),
    "another shape": ({"body.bias": torch.ones(5)}, r"expected body\.bias \(4,\), got \(5,\)"),
    "NaN": ({"body.bias": torch.full((4,), torch.nan)}, r"body\.bias holds NaN or infinity"),
    "infinity": ({"body.bias": torch.full((4,), torch.inf)}, r"body\.bias holds NaN or infinity"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_that_does_not_fit_is_refused_and_changes_nothing(tmp_path, case):
    changes, message = REFUSED[case]
    net = Net()
    before = digest(net)
    with pytest.raises(InitError, match=message):
        begin(tmp_path, net, make_state(**changes))
    assert digest(net) == before


def test_all_that_does_not_fit_is_named_with_the_patterns_that_would_help(tmp_path):
    with pytest.raises(InitError) as refusal:
        begin(tmp_path, Net(classes=5), make_state(**{"fc.bias": torch.ones(2)}))
    text = str(refusal.value)
    for part in ("head.weight (5, 4), got (3, 4)", "head.bias (5,), got (3,)", "fc.bias (2,)"):
        assert part in text
    assert '["fc.*", "head.*"]' in text
    _, file = begin(
        tmp_path,
        Net(classes=5),
        make_state(**{"fc.bias": torch.ones(2)}),
        basis="dct",
        reinitialize=["fc.*", "head.*"],
    )
    assert file["started"] == ["head.bias", "head.weight"]


def test_names_that_mean_nothing_are_refused(tmp_path):
    for patterns, message in ((["haed.*"], "'haed.*' names no tensor"), (["*"], "leaves nothing")):
        with pytest.raises(InitError, match=message.replace("*", r"\*")):
            begin(tmp_path, Net(), make_state(), basis="dct", reinitialize=patterns)


def test_a_frozen_tensor_is_not_started_anew(tmp_path):
    net = Net()
    net.head.requires_grad_(False)
    with pytest.raises(InitError, match=r"head\.weight, head\.bias: frozen"):
        begin(tmp_path, net, make_state(), basis="dct", reinitialize=["head.*"])


def test_a_parameter_without_a_rule_needs_none_where_the_file_has_it(tmp_path):
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.odd = nn.Parameter(torch.randn(6))
            self.head = nn.Linear(6, 2)

        def forward(self, x):
            return self.head(x * self.odd + (x + self.odd))

    state = {name: torch.ones_like(value) for name, value in Odd().state_dict().items()}
    with pytest.raises(InitError, match="no rule for 'odd'"):
        initialize(Odd(), "dct")
    net = Odd()
    begin(tmp_path, net, state, basis="dct", reinitialize=["head.*"])
    assert torch.equal(net.odd, torch.ones(6))


def test_the_norms_of_a_weight_are_not_started_without_it(tmp_path):
    def make():
        return nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(3, 2)))

    state = {name: value.detach().clone() for name, value in make().state_dict().items()}
    (norms,) = [name for name in state if name.endswith("original0")]
    with pytest.raises(InitError, match="name both, or neither"):
        begin(tmp_path, make(), state, basis="dct", reinitialize=[norms])


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "base.safetensors"
    save_file(make_state(), path)
    path.write_bytes(path.read_bytes()[:-3])
    config = pin_weights(parse_config({"init": {"weights": str(path)}}))
    with pytest.raises(RunError, match="does not describe a tensor in this file"):
        begin_with_file(config.init, Net())


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path):
    path = tmp_path / "base.safetensors"
    save_file(make_state(), path)
    config = pin_weights(parse_config({"init": {"weights": str(path)}}))
    save_file(make_state(**{"body.bias": torch.zeros(4)}), path)
    with pytest.raises(InitError, match="was changed while it was read"):
        begin_with_file(config.init, Net())


def test_the_lists_cover_every_tensor_once():
    net = Net()
    match = match_tensors(net, make_state(), ["head.*", "norm.*"], "a file")
    listed = [*match.taken, *match.started, *match.kept]
    assert sorted(listed) == sorted(name_tensors(net))
