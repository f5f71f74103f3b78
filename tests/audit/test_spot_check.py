"""`verify --sample`: false segments are found where they are chosen; start, data and end always."""

import itertools
from functools import partial

import numpy as np
import pytest

import seedless
from seedless.audit.sampling import choose_segments, miss_probability
from seedless.audit.spot_check import execute_sample, plan_sample
from seedless.core.errors import ConfigError, RunError
from seedless.runs.folder import read_config
from seedless.runs.user_model import UserModel, prepare_user_model
from seedless.runs.validation import validate
from tests.forgery import (
    forge,
    forge_predictions,
    read_entries,
    read_statement,
    reconfigure,
    rewrite_checkpoint,
    strip_run,
)
from tests.tiny import ENTRY, answer_here, copy_run, fit_run, flags_restored, give, make_arrays

SEGMENTS = 3


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    """A run of three epochs of four steps, with a checkpoint after each."""
    with flags_restored():
        return fit_run(tmp_path_factory.mktemp("sample") / "run")


@pytest.fixture(scope="module")
def forged(honest, tmp_path_factory):
    """The run of a flipped bit in the second epoch, which denies it; consistent with itself."""
    with flags_restored():
        out = tmp_path_factory.mktemp("sample") / "forged"
        run = fit_run(out, control={"flip_bit": "0.weight:3:0", "at_step": 6})
        reconfigure(run, read_config(honest))
        return run


@pytest.fixture
def in_process(monkeypatch):
    monkeypatch.setattr("seedless.audit.verification.run_worker", answer_here)


def find_tokens(run, count):
    """Return for every possible choice of so many segments a token that makes it."""
    receipt = read_statement(run)["predicate"]["digest"]
    tokens = [f"{number:032x}" for number in range(64)]
    found = {choose_segments(token, receipt, SEGMENTS, count): token for token in tokens}
    assert {*found} == {*itertools.combinations(range(1, SEGMENTS + 1), count)}
    return found


def check(run, count, token=None, **changes):
    return seedless.verify(run, sample=count, sample_token=token, **{**give(), **changes})


@pytest.mark.parametrize("count", [1, 2])
def test_every_sample_of_an_honest_run_agrees(honest, count):
    for chosen, token in find_tokens(honest, count).items():
        verdict = check(honest, count, token)
        assert (verdict.outcome, verdict.code, verdict.ok) == ("segment identical", 4, False)
        assert verdict.checked == {"segments": list(chosen), "of": SEGMENTS, "token": token}
        assert verdict.headline == f"SAMPLE OF {count} OF {SEGMENTS} SEGMENTS IDENTICAL"
        numbers = ", ".join(map(str, chosen))
        assert verdict.details[0].endswith(f" {numbers} of 3, chosen by --sample-token {token}")
        assert "misses every forged segment: 1 forged: 0." in verdict.details[1]
        assert "one false segment is enough" in verdict.details[2]


def test_a_new_token_is_drawn_for_each_sample_and_repeats_it(honest, in_process):
    one, two = (seedless.verify(honest, entry=ENTRY, sample=1) for _ in range(2))
    assert one.checked["token"] != two.checked["token"]
    again = seedless.verify(honest, entry=ENTRY, sample=1, sample_token=one.checked["token"])
    assert again.checked == one.checked


@pytest.mark.parametrize("count", [1, 2])
def test_a_false_segment_is_missed_exactly_where_it_is_not_chosen(forged, count):
    outcomes = {}
    for chosen, token in find_tokens(forged, count).items():
        verdict = check(forged, count, token)
        outcomes[chosen] = verdict.outcome
        if verdict.outcome == "differs":
            assert verdict.difference["epoch"] == 2
            assert verdict.details[-1].endswith(token)
    assert outcomes == {c: "differs" if 2 in c else "segment identical" for c in outcomes}
    missed = sum(outcome == "segment identical" for outcome in outcomes.values())
    assert missed / len(outcomes) == miss_probability(SEGMENTS, count, 1)


def test_a_portable_run_made_on_a_gpu_is_sampled_on_a_cpu(tmp_path):
    """As a GPU would have left it: the bits are the CPU's, and so they must be."""
    run = fit_run(tmp_path / "run", execution={"arithmetic": "portable"})
    config = read_config(run).change(execution={"device": "cuda", "mode": "graph"})
    (run / "config.toml").write_text(config.to_toml())
    entries = read_entries(run)
    entries[0]["environment"]["devices"] = [{"name": "Some GPU", "capability": "9.0"}]
    forge(run, entries)
    verdict = seedless.verify(run, sample=2, device="cpu", **give())
    assert verdict.outcome == "segment identical", verdict.details
    assert "made on Some GPU" in verdict.details


def test_a_sample_says_which_records_are_in_two_splits(tmp_path):
    given = {**give(), "test": give()["val"]}
    run = fit_run(tmp_path / "run", given, data={"repeated": 32})
    verdict = seedless.verify(run, sample=1, **given)
    assert verdict.outcome == "segment identical"
    assert verdict.remarks == seedless.verify(run, **given).remarks != ()


# What is checked whatever the sample


def expect_found(run, epoch=None, **changes):
    """Every sample of one segment must find the difference."""
    assert seedless.verify(run, validate_only=True).outcome == "consistent"
    details = set()
    for token in find_tokens(run, 1).values():
        verdict = check(run, 1, token, **changes)
        assert verdict.outcome == "differs"
        assert verdict.difference.get("epoch") == epoch
        details.add(verdict.details[0])
    (detail,) = details
    return detail


def test_forged_final_scores_are_always_found(honest, tmp_path):
    run = copy_run(honest, tmp_path / "run")
    forge_predictions(run, "test", lambda values: np.roll(values, 1, axis=1))
    assert expect_found(run).startswith(("metrics.test", "predictions"))


def test_a_forged_start_is_always_found(honest, tmp_path):
    run = fit_run(tmp_path / "run", init={"basis": "hadamard"})
    reconfigure(run, read_config(honest))
    detail = expect_found(run, epoch=0)
    assert detail.startswith("initialization.")
    # the same, with the receipt of the right start: only line 0 of the trail tells
    entries = read_entries(run)
    entries[0]["initialization"] = read_entries(honest)[0]["initialization"]
    forge(run, entries)
    assert expect_found(run, epoch=0).startswith("before the first step: ")


def test_a_forged_optimizer_state_before_the_first_step_is_always_found(honest, tmp_path):
    run = copy_run(honest, tmp_path / "run")
    entries = read_entries(run)
    entries[0]["state"]["optimizer/exp_avg/0.weight"] = 64 * "a"
    forge(run, entries)
    assert "optimizer/exp_avg/0.weight" in expect_found(run, epoch=0)


def test_other_data_are_always_found(honest, tmp_path):
    detail = expect_found(honest, epoch=0, val=make_arrays(32, 9))
    assert detail.startswith("data.")


def test_selected_weights_that_do_not_fit_the_model_are_found_and_break_nothing(honest, tmp_path):
    run = copy_run(honest, tmp_path / "run")
    last = run / "checkpoints" / f"epoch-{SEGMENTS:04d}.safetensors"
    token = next(t for chosen, t in find_tokens(run, 1).items() if chosen == (1,))

    def rename(meta, tensors):
        tensors["best/other"] = tensors.pop("best/0.weight")

    validated = validate(run)
    sample = plan_sample(validated, 1, token)
    rewrite_checkpoint(last, rename)  # after the validation
    user = UserModel(*(give()[name] for name in ("model", "train", "val", "test")), None)
    verdict = execute_sample(validated, partial(prepare_user_model, user=user), sample)
    assert verdict.outcome == "differs"
    assert "do not fit the run's model" in verdict.details[0]


# What cannot be judged by a sample


@pytest.mark.parametrize("count", [-1, 0, 3, 4])
def test_a_sample_of_none_or_all_is_refused(honest, count):
    with pytest.raises(RunError, match=rf"3 segments .* a sample of 1 to 2 of them, got {count}"):
        check(honest, count)


def test_a_run_without_checkpoints_is_refused(tmp_path):
    run = fit_run(tmp_path / "run", train={"checkpoint_every": 3})
    with pytest.raises(RunError, match=r"no checkpoint before its end.*execute all of it"):
        check(run, 1)


def test_a_stripped_run_is_refused(honest, tmp_path):
    run = copy_run(honest, tmp_path / "run")
    strip_run(run, weights=True)
    with pytest.raises(RunError, match=r"stripped run, without checkpoints.*leave --sample out"):
        check(run, 1)


@pytest.mark.parametrize(
    "options",
    [
        {"sample": 1, "segment": 1},
        {"sample": 1, "validate_only": True},
        {"segment": 1, "validate_only": True},
        {"sample_token": "00" * 16},
    ],
)
def test_options_that_contradict_each_other_are_refused(honest, options):
    with pytest.raises(ConfigError, match=r"--s(ample|egment)"):
        seedless.verify(honest, entry=ENTRY, **options)
