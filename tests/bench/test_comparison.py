"""Rivals start alike, take turns, and are found to repeat or not."""

import random
from dataclasses import replace

import pytest
import torch
from torch import nn

import seedless
from seedless.bench import comparison
from seedless.bench.comparison import compare, describe_verdict, make_config, make_rows
from seedless.bench.measure import Measured, describe_error, measure
from seedless.bench.rivals import OURS, PLAIN, PUBLISHED, Rival, Runner, list_rivals
from seedless.cli.bench import _print as print_comparison
from seedless.core.errors import ConfigError
from seedless.numerics.environment import capture_environment
from seedless.runs.prepare import prepare
from seedless.train.step_modes import make_step
from seedless.train.training_problem import TrainingProblem

SMALL = ["model.small=true", "execution.threads=1", "execution.device=cpu"]
EAGER = ["ours eager fp32", "plain eager", "plain deterministic"]


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
        "plain eager fp32",
        "plain deterministic",
    ]
    for row in found.rows:
        assert row.error is None
        assert row.repeats
        assert row.ms_per_step > 0
        assert row.samples_per_second == pytest.approx(8e3 / row.ms_per_step)
        assert len(row.rounds_ms) == 2
        assert row.peak_bytes is None
    ours, *_, published = found.rows
    assert published.to_deterministic == 1
    strongest = min(found.rows[2:], key=lambda row: row.ms_per_step)
    assert {row.strongest for row in found.rows} == {strongest.name}
    assert strongest.to_strongest == 1
    assert ours.to_strongest == pytest.approx(strongest.ms_per_step / ours.ms_per_step)
    assert found.complete
    assert found.verdict == (
        f"fp32: ours eager fp32 is {ours.to_strongest:.2f} times as fast as {strongest.name}, the "
        "strongest rival, and repeats bit for bit"
    )


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
    assert digests["plain eager fp32"] != digests["ours eager fp32"]


@pytest.fixture
def compiled(monkeypatch):
    """The modes in which plain steps were compiled, by a compiler that changes nothing."""
    modes = []

    def compile_nothing(function, *, mode):
        modes.append(mode)
        return function

    monkeypatch.setattr(torch, "compile", compile_nothing)
    return modes


def test_images_are_compared_compiled_and_with_the_channels_last(compiled):
    only = ["ours eager fp32", "plain"]
    found = compare(make_config("resnet18", 4, settings=SMALL), steps=1, rounds=1, only=only)
    assert [row.error for row in found.rows] == [None] * 7
    names = [row.name for row in found.rows]
    assert names[2:] == [
        "plain compiled fp32",
        "plain compiled fp32, channels last",
        "plain eager fp32",
        "plain eager fp32, channels last",
        "plain deterministic",
    ]
    assert compiled == ["reduce-overhead"] * 4  # twice each: the second to see that it repeats


def test_every_precision_of_a_gpu_has_its_own_rivals(monkeypatch):
    problem = prepare(make_config("resnet18", 4, settings=SMALL)).problem
    monkeypatch.setattr(TrainingProblem, "device", torch.device("cuda"))
    rivals = {rival.name: rival for rival in list_rivals(problem)}
    for precision in ("fp32", "tf32", "bf16"):
        assert f"ours compiled {precision}" in rivals
        for form in ("compiled", "eager"):
            for layout in ("", ", channels last"):
                assert rivals[f"plain {form} {precision}{layout}"].precision == precision
    assert rivals["plain eager, torch's defaults"].precision not in ("fp32", "tf32", "bf16")


def test_the_strongest_rival_is_of_the_same_precision():
    def found(name, kind, precision, *seconds):
        return Measured(
            Rival(name, kind, precision, lambda: None, lambda: None), seconds=[*seconds]
        )

    rows = make_rows(
        [
            found("ours", OURS, "fp32", 2.0),
            found("ours quick", OURS, "bf16", 1.0),
            found("slow", PLAIN, "fp32", 9.0),
            found("better", PUBLISHED, "fp32", 3.0, 5.0, 4.0),
            found("quick", PLAIN, "bf16", 0.5),
            found("stopped", PLAIN, "fp32"),
        ],
        batch=8,
    )
    assert [row.strongest for row in rows[:2]] == ["better", "quick"]
    assert [row.to_strongest for row in rows[:2]] == [2.0, 0.5]
    first, second = describe_verdict(rows).splitlines()
    assert first.startswith("fp32: ours is 2.00 times as fast as better, ")
    assert second.startswith("bf16: ours quick is 0.50 times as fast as quick, ")


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
    later = seen[-12:]  # one step that is not counted and two that are, twice a round
    assert later == [name for turn in ("ba", "ab") for name in turn for _ in range(3)]
    # The first round: three steps, three of a fresh copy, and the same turn.
    assert seen[:-12] == [name for name in "ab" for _ in range(9)]


def test_a_rival_that_does_not_run_leaves_the_others():
    def fail():
        raise RuntimeError("pool_backward does not have a deterministic implementation\nmore")

    seen = []
    broken = Rival(PUBLISHED, PUBLISHED, "fp32", lambda: None, fail)
    found = measure([broken, make_rival("a", OURS, seen)], [torch.arange(2)], steps=1, rounds=1)
    assert found[0].error == "pool_backward does not have a deterministic implementation"
    assert found[0].median is None
    assert found[1].seconds


def test_a_rival_that_takes_too_long_leaves_the_others_and_what_it_had_measured():
    def make():
        def step(rows):
            nonlocal count
            count += 1
            while count > 7:  # its first turn does not end
                pass

        return Runner(nn.Linear(1, 1), step)

    count, seen, recorded = 0, [], []
    slow = Rival("slow", PLAIN, "fp32", lambda: None, make)
    found = measure(
        [slow, make_rival("a", OURS, seen)],
        [torch.arange(2)],
        steps=1,
        rounds=2,
        limit=5.0,
        record=lambda some: recorded.append([(one.rival.name, len(one.seconds)) for one in some]),
    )
    assert found[0].error == "took longer than 5 s"
    assert [len(one.seconds) for one in found] == [0, 2]
    assert recorded == [[("slow", 0)], [("slow", 0), ("a", 1)], [("slow", 0), ("a", 2)]]


def test_an_error_is_told_in_a_line():
    text = "backend='inductor' raised:\nInvalidCxxCompiler: No working C++ compiler found\n\nmore"
    said = "backend='inductor' raised: InvalidCxxCompiler: No working C++ compiler found"
    assert describe_error(RuntimeError(text)) == said
    assert describe_error(AssertionError()) == "AssertionError"


def test_no_verdict_without_ours_or_without_a_rival(compared):
    _, found = compared
    assert describe_verdict(found.rows[2:]) == "no verdict: no step of ours was measured"
    alone = replace(found.rows[0], strongest=None, to_strongest=None)
    assert describe_verdict([alone]).startswith("fp32: no verdict")


def test_on_a_busy_machine_processor_time_is_counted(monkeypatch):
    config = make_config("baseline", 8, settings=SMALL)
    ticking = iter(range(10**6))
    monkeypatch.setitem(comparison.CLOCKS, "processor", lambda: 5.0 * next(ticking))
    found = compare(config, steps=2, rounds=1, only=["ours eager fp32"], clock="processor")
    assert found.clock == "processor"
    assert found.rows[0].ms_per_step == 2500.0  # the clock says 5 s, for two steps
    monkeypatch.setattr(TrainingProblem, "device", torch.device("cuda"))
    with pytest.raises(ConfigError, match="does not count a GPU's time"):
        compare(config, clock="processor")


def test_a_busy_machine_is_named_and_what_helps(compared, capsys):
    _, found = compared
    busy = replace(found, clock="wall", other_cores=1.6)
    for result, helps in ((busy, True), (replace(busy, clock="processor"), False)):
        print_comparison(result)
        printed = capsys.readouterr().out
        assert "other programs kept 1.6 cores busy." in printed
        assert ("--processor-time" in printed) == helps
    print_comparison(replace(busy, other_cores=None))
    assert "other programs" not in capsys.readouterr().out
