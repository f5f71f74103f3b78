"""Rivals start alike, take turns, and are found to repeat or not."""

import random

import pytest
import torch
from torch import nn

import seedless
from seedless.bench.comparison import compare, describe_verdict, make_config
from seedless.bench.measure import measure
from seedless.bench.rivals import OURS, PLAIN, PUBLISHED, Rival, Runner
from seedless.core.errors import ConfigError
from seedless.numerics.environment import capture_environment
from seedless.runs.prepare import prepare
from seedless.train.step_modes import make_step

SMALL = ["model.small=true", "execution.threads=1", "execution.device=cpu"]
EAGER = ["ours eager fp32", "plain"]


@pytest.fixture(scope="module")
def compared():
    config = make_config("baseline", 8, settings=SMALL)
    before = capture_environment()
    found = compare(config, steps=1, rounds=2, only=EAGER)
    after = capture_environment()
    for part in ("flags", "precision", "threads"):
        assert after[part] == before[part]
    return config, found


def test_every_rival_has_its_figures(compared):
    _, found = compared
    names = [row.name for row in found.rows]
    assert names == [
        "ours eager fp32",
        "ours eager fp32, deterministic mode off",
        "plain",
        "plain deterministic",
    ]
    for row in found.rows:
        assert row.error is None
        assert row.repeats
        assert row.ms_per_step > 0
        assert row.samples_per_second == pytest.approx(8e3 / row.ms_per_step)
        assert len(row.rounds_ms) == 2
        assert row.peak_bytes is None
    plain = found.rows[2]
    assert plain.to_plain == 1
    assert found.rows[3].to_deterministic == 1
    assert found.rows[0].to_plain == pytest.approx(plain.ms_per_step / found.rows[0].ms_per_step)
    assert found.verdict.startswith(f"ours fp32 is {found.rows[0].to_plain:.2f} x plain and ")


def test_ours_is_the_step_a_run_makes(compared):
    config, found = compared
    problem = prepare(config).problem
    problem.model.train()
    step = make_step(problem)
    batches = problem.order.schedule(0).batches
    for number in range(3):
        step(torch.from_numpy(batches[number]), 0)
    digests = {row.name: row.digest for row in found.rows}
    assert digests["ours eager fp32"] == seedless.digest(problem.model)
    assert digests["ours eager fp32, deterministic mode off"] == digests["ours eager fp32"]
    assert digests["plain"] != digests["ours eager fp32"]


def test_images_are_compared_as_well():
    found = compare(make_config("resnet18", 4, settings=SMALL), steps=1, rounds=1, only=EAGER)
    assert [row.error for row in found.rows] == [None] * 4


def test_settings_the_plain_step_lacks_are_refused():
    for setting in ("train.clip_norm=1.0", "execution.mode=eager", "augment.padding=1"):
        with pytest.raises(ConfigError, match=setting.split("=")[0]):
            compare(make_config("baseline", 8, settings=[*SMALL, setting]))


def test_an_unknown_rival_and_too_few_samples_are_refused():
    config = make_config("baseline", 8, settings=SMALL)
    with pytest.raises(ConfigError, match=r"'fastest' names no rival.*plain deterministic"):
        compare(config, only=["fastest"])
    with pytest.raises(ConfigError, match="too few for a batch of 500"):
        compare(config.change(order={"batch_size": 500}))


def make_rival(name, kind, seen, noise=0.0):
    """Return a rival whose step adds to one weight, and ``noise`` times something random."""

    def make():
        model = nn.Linear(1, 1)
        nn.init.zeros_(model.weight)
        nn.init.zeros_(model.bias)

        def step(rows):
            seen.append(name)
            with torch.no_grad():
                model.weight += 1 + noise * random.random()

        return Runner(model, step)

    return Rival(name, kind, "fp32", lambda: None, make)


def test_turns_alternate_and_what_does_not_repeat_is_found():
    seen, batches = [], [torch.arange(2)]
    rivals = [make_rival("a", OURS, seen), make_rival("b", PLAIN, seen, noise=1.0)]
    found = measure(rivals, batches, steps=2, rounds=3)
    assert [one.repeats for one in found] == [True, False]
    turns = seen[-18:]  # one step that is not counted and two that are, twice a round
    assert turns == [name for turn in ("ab", "ba", "ab") for name in turn for _ in range(3)]


def test_a_rival_that_does_not_run_leaves_the_others():
    def fail():
        raise RuntimeError("pool_backward does not have a deterministic implementation\nmore")

    seen = []
    broken = Rival(PUBLISHED, PUBLISHED, "fp32", lambda: None, fail)
    found = measure([broken, make_rival("a", OURS, seen)], [torch.arange(2)], steps=1, rounds=1)
    assert found[0].error == "pool_backward does not have a deterministic implementation"
    assert found[0].median is None
    assert found[1].seconds


def test_no_verdict_without_ours_or_without_a_rival(compared):
    _, found = compared
    assert "no form of ours" in describe_verdict(found.rows[2:])
    assert describe_verdict(()).startswith("no verdict")
