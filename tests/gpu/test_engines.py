"""The int8 engine on a CUDA device: exact sums, the shipped digests, and capture as a graph."""

import pytest
import torch

from seedless.audit.portable_check import check
from seedless.portable import engine_check, engine_choice
from seedless.portable.context import CONTEXT
from seedless.portable.exact.product import multiply
from tests.portable.reference_cases import some

pytestmark = pytest.mark.gpu
CUDA = torch.device("cuda", 0)


def test_int8_products_are_exact_there():
    assert engine_check.find_wrong_cases(CUDA) == []


def test_the_digests_are_the_shipped_ones():
    with CONTEXT.multiply_with("int8"):
        assert check("cuda").differences == ()


def test_an_engine_is_chosen_there_and_the_digests_are_the_shipped_ones(monkeypatch):
    monkeypatch.setattr(CONTEXT, "engine", "auto")
    monkeypatch.setattr(CONTEXT, "engine_choices", {})
    found = check("cuda")
    assert found.differences == ()
    assert found.engine == CONTEXT.engine_choices[CUDA].engine
    assert "chosen by timing" in found.engine_reason


def test_nothing_is_timed_while_a_graph_is_captured(monkeypatch):
    monkeypatch.setattr(CONTEXT, "engine", "auto")
    monkeypatch.setattr(CONTEXT, "engine_choices", {})
    x = torch.ones(4, device=CUDA)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        engine_choice.prepare_engine(CUDA)
        x.add_(1)
    assert CUDA not in CONTEXT.engine_choices


def test_a_graph_holds_a_product():
    left, right = some(3, 20, 300).to(CUDA), some(3, 300, 30, name="b").to(CUDA)
    expected = multiply(left, right)
    with CONTEXT.multiply_with("int8"):
        multiply(left, right)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = multiply(left, right)
    graph.replay()
    assert torch.equal(found, expected)
