"""The registry is a manifest: no overload of a replaced op is without a rule."""

import inspect

import pytest
import torch

from seedless.core.errors import NumericsError
from seedless.portable.mode import portable
from seedless.portable.ops.registry import (
    EXACT,
    INTEGER,
    REFUSED,
    REGISTRY,
    REPLACED,
    Kind,
    find_rule,
    name_op,
)
from seedless.portable.refusal import RANDOM
from tests.portable.reference_cases import some


def list_overloads(op):
    """Return the overloads of an op, and of its in-place form, that a dispatch mode can see."""
    names = [op, f"{op}_"] if hasattr(torch.ops.aten, f"{op}_") else [op]
    packets = [getattr(torch.ops.aten, name) for name in names]
    overloads = [getattr(packet, name) for packet in packets for name in packet.overloads()]
    return [one for one in overloads if is_dispatched(one)]


def is_dispatched(overload):
    """Leave out what only TorchScript calls: overloads without tensors, or without a kernel."""
    try:
        overload._can_decompose()
    except RuntimeError:
        return False
    values = [*overload._schema.arguments, *overload._schema.returns]
    return any("Tensor" in str(value.type) for value in values)


def find_overload(name):
    space, op, overload = *name.partition("::")[::2][:1], name_op(name), name.partition(".")[2]
    return getattr(getattr(getattr(torch.ops, space), op), overload or "default")


def try_rule(overload):
    try:
        return find_rule(overload), None
    except NumericsError as refusal:
        return None, str(refusal)


@pytest.mark.parametrize("op", sorted(REPLACED))
def test_every_overload_of_a_replaced_op_is_accounted_for(op):
    for overload in list_overloads(op):
        if overload.name() in REGISTRY:
            continue
        rule, refusal = try_rule(overload)
        if rule is None:
            named = "Dimname" in str(overload._schema)
            assert named or any(advice in refusal for advice in REFUSED.values()), overload
        else:
            assert rule.kind is Kind.PARTS or rule.overload in REGISTRY, overload


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_an_implementation_takes_the_arguments_of_its_overload(name):
    arguments = find_overload(name)._schema.arguments
    signature = inspect.signature(REGISTRY[name])
    positional = [None for one in arguments if not one.kwarg_only]
    signature.bind(*positional, **{one.name: None for one in arguments if one.kwarg_only})
    required = [one for one in arguments if not one.has_default_value()]
    signature.bind(
        *[None for one in required if not one.kwarg_only],
        **{one.name: None for one in required if one.kwarg_only},
    )


def test_no_op_is_in_two_tables():
    tables = (REPLACED, EXACT, INTEGER, RANDOM)
    assert len(frozenset.union(*tables)) == sum(map(len, tables))
    assert not REFUSED.keys() & REGISTRY.keys()


def test_negative_control_an_overload_that_is_not_listed_stops(monkeypatch):
    """Its op has others that are listed: none of them is taken in its place."""
    x = some(3, 4)
    with portable():
        pass  # the first block tests the kernels, with every overload
    monkeypatch.delitem(REGISTRY, "aten::sum.dim_IntList")
    with portable():
        assert torch.sum(x).shape == ()
        with pytest.raises(NumericsError, match=r"aten\.sum\.dim_IntList is not portable"):
            torch.sum(x, 1)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_refused_overload_says_what_to_use_instead(name):
    with pytest.raises(NumericsError, match="is not portable") as refusal:
        find_rule(find_overload(name))
    assert REFUSED[name] in str(refusal.value)


def same(one, other):
    return torch.equal(one.view(torch.int32), other.view(torch.int32))


def test_results_are_written_into_tensors_as_into_new_ones():
    x, y = some(5, 6), some(5, 6, name="b")
    with portable():
        out = torch.empty(5)
        assert torch.sum(x, 1, out=out) is out
        assert same(out, torch.sum(x, 1))
        best, place = torch.empty(5), torch.empty(5, dtype=torch.int64)
        torch.max(x, 1, out=(best, place))
        assert same(best, torch.max(x, 1)[0])
        assert torch.equal(place, torch.max(x, 1)[1])
        counted = torch.empty(4, dtype=torch.int64)
        torch.arange(1, 5, out=counted)
        assert counted.tolist() == [1, 2, 3, 4]
        changed = x.clone()
        assert changed.pow_(y) is changed
        assert same(changed, torch.pow(x, y))


@pytest.mark.parametrize(
    ("op", "rest", "each"),
    [
        ("add", (0.3,), lambda x, i: x + 0.3),
        ("add", ([0.3, 0.4],), lambda x, i: x + (0.3, 0.4)[i]),
        ("div", (7.0,), lambda x, i: x / 7.0),
        ("pow", (1.7,), lambda x, i: x**1.7),
        ("mul", ([0.3, 0.4],), lambda x, i: x * (0.3, 0.4)[i]),
        ("maximum", (0.3,), lambda x, i: x.clamp_min(0.3)),
        ("sqrt", (), lambda x, i: x.sqrt()),
        ("norm", (2,), lambda x, i: x.norm(2)),
    ],
)
def test_ops_on_lists_are_the_ops_on_each_tensor(op, rest, each):
    tensors = [some(7, shift=2.5), some(3, 4, name="b", shift=2.5)]
    with portable():
        results = getattr(torch, f"_foreach_{op}")(tensors, *rest)
        expected = [each(x, i) for i, x in enumerate(tensors)]
        if op != "norm":
            changed = [x.clone() for x in tensors]
            getattr(torch, f"_foreach_{op}_")(changed, *rest)
            assert all(map(same, changed, expected))
    assert all(map(same, results, expected))


def test_variances_have_the_same_bits_in_every_form():
    """In inference mode torch does not take these overloads apart before they reach the mode."""
    x = some(5, 6)
    with portable():
        plain = x.var(1), x.var(), x.var(unbiased=False), x.std(0, unbiased=False)
        with torch.inference_mode():
            other = x.var(1), x.var(), x.var(unbiased=False), x.std(0, unbiased=False)
    assert all(map(same, plain, other))
