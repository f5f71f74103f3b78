"""The facts on operations name operations that exist, and agree with torch on those it refuses."""

import pytest
import torch

from seedless.audit.doctor.op_facts import KNOWN_OPS, explain_op

SWITCHED = {"deterministic_algorithms": True}


@pytest.mark.parametrize("name", sorted(KNOWN_OPS))
def test_every_operation_exists(name):
    aten = torch.ops.aten
    assert hasattr(aten, name) or hasattr(aten, f"{name}_")


def test_an_unknown_operation_has_no_fact():
    assert explain_op("aten.relu.default", "cuda:0", {}) is None
    assert explain_op("mine.index_add.default", "cuda:0", {}) is None


@pytest.mark.parametrize("op", ["aten.index_add_.default", "aten.index_add.out", "index_add"])
def test_namespace_overload_and_in_place_form_do_not_matter(op):
    fact = explain_op(op, "cuda:1", {})
    assert (fact.op, fact.cause, fact.has_deterministic_form) == (
        "index_add",
        "nondeterministic-op",
        True,
    )
    assert "use_deterministic_algorithms" in fact.advice


def test_the_switch_settles_what_has_a_deterministic_form_and_nothing_else():
    assert explain_op("aten.scatter_add.default", "cuda", SWITCHED) is None
    assert explain_op("aten.histc.default", "cuda", SWITCHED).has_deterministic_form is False


def test_a_convolution_is_explained_by_the_flags():
    tuned = explain_op("aten.convolution.default", "cuda:0", {"cudnn.benchmark": True})
    assert tuned.cause == "cudnn-autotune"
    plain = explain_op("aten.convolution.default", "cuda:0", {})
    assert plain.cause == "nondeterministic-op"
    assert explain_op("aten.convolution.default", "cuda:0", {"cudnn.deterministic": True}) is None
    assert explain_op("aten.convolution.default", "cpu", {}).cause == "threads"


def test_what_torch_refuses_on_a_cpu_is_listed_without_a_deterministic_form():
    """An independent reference: torch itself raises for these."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        x, at = torch.zeros(1, 1, 2, 2), torch.zeros(1, 1, 2, 2, dtype=torch.int64)
        with pytest.raises(RuntimeError, match="deterministic"):
            torch.nn.functional.max_unpool2d(x, at, 2)
        with pytest.raises(RuntimeError, match="deterministic"):
            torch.zeros(3).put_(torch.tensor([0]), torch.ones(1), accumulate=False)
        torch.zeros(3).index_add_(0, torch.tensor([0, 0]), torch.ones(2))  # control: it is allowed
    finally:
        torch.use_deterministic_algorithms(before)
    for op in ("aten.max_unpool2d.default", "aten.put_.default"):
        assert explain_op(op, "cpu", SWITCHED).has_deterministic_form is False
    assert explain_op("aten.index_add_.default", "cpu", SWITCHED) is None
