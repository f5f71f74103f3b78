"""The page about engines shows what the benchmark recorded and estimates."""

import json
import math

import torch

from benchmarks.engines import (
    CARDS,
    ENGINES,
    WORK,
    estimate_cards,
    write_measured,
    write_rates,
    write_table,
)
from benchmarks.step_work import (
    OpCounter,
    WorkCounter,
    estimate_step,
    write_counts,
    write_steps,
)
from seedless.portable.context import CONTEXT
from seedless.portable.mode import portable
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "explanation" / "engines.md").read_text()
RECORD = json.loads((ROOT / "benchmarks" / "results" / "engines-cpu.json").read_text())["results"]
STEPS = json.loads((ROOT / "benchmarks" / "results" / "step-work.json").read_text())["results"]


def test_the_page_has_the_estimates_that_the_program_makes():
    assert write_table(estimate_cards()) in PAGE
    assert write_rates() in PAGE
    for product, cards in estimate_cards().items():  # a card may be newer than the record
        assert RECORD["estimates_ms"][product].items() <= cards.items()
    assert RECORD["sources"].items() <= {name: card.source for name, card in CARDS.items()}.items()


def test_the_page_has_the_steps_that_the_program_counts_and_estimates():
    assert write_counts(STEPS) in PAGE
    assert write_steps(STEPS) in PAGE
    for counted in STEPS["models"].values():
        sizes = [math.prod(each["shape"]) * each["times"] for each in counted["products"]]
        assert counted["multiply_adds"] == sum(sizes)


def test_the_work_of_a_step_is_counted():
    """A linear layer of 5 x 4 on 3 samples, and its gradients: two products, one sum, one relu."""
    layer = torch.nn.Linear(5, 4)
    with OpCounter() as ops, CONTEXT.without_kernels(), portable():
        work = WorkCounter(ops)
        with CONTEXT.evaluate_sums_with(work):
            layer(torch.ones(3, 5)).relu().sum().backward()
    assert work.products == {(1, 3, 5, 4): 1, (1, 4, 3, 5): 1}
    assert work.operations > 12  # the sum rounds 12 values to a grid, adds and scales them
    assert work.moved_bytes >= 2 * 12 * 4  # relu alone reads and writes 12 values


def test_negative_control_another_size_has_other_counts():
    wider = STEPS["models"]["conformer"] | {"float64_operations": 10**15}
    card = CARDS["RTX 4090"]
    taken = [
        estimate_step(x, card, WORK["int8"], True) for x in (STEPS["models"]["conformer"], wider)
    ]
    assert taken[1] > taken[0] + 700  # seconds: 10^15 operations at 1.29 T a second


def test_the_page_has_what_was_measured():
    assert write_measured(RECORD) in PAGE
    for found in RECORD["models"].values():
        assert set(found["weights"]) == set(ENGINES)
        assert len(set(found["weights"].values())) == 1


def test_the_record_has_every_committed_digest():
    digests = RECORD["digests"]
    assert (digests["same"], digests["engine"], digests["differences"]) == (True, "int8", [])
    count = len(digests["models"]) + len(digests["models in published size"])
    assert f"{digests['ops']} ops and {count} models" in PAGE
    assert RECORD["self_test"]["wrong"] == []
