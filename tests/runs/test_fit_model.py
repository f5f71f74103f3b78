"""`fit` on a user's model and arrays: generator guard, scores, resuming, loading, refusals."""

import copy
import json
import random
import shutil

import numpy as np
import pytest
import torch
from torch import nn

import seedless
from seedless.core.config import FLOAT32_MAX
from seedless.core.digests import digest, digest_samples
from seedless.core.errors import (
    ConfigError,
    DataError,
    NumericsError,
    RunError,
    TrainError,
    TrainingDivergedError,
)
from seedless.init.starts import DEFAULT_START
from seedless.runs.fit_model import fit
from seedless.runs.opened_run import load
from seedless.train.checkpoint import list_checkpoints
from tests.train.problems import linear, make_arrays, small_conformer

TRAIN, VAL, TEST = make_arrays(40), make_arrays(20, start=40), make_arrays(20, start=60)
DCT = {"basis": "dct"}


def settings(**sections):
    """Three epochs on one thread."""
    train = {"epochs": 3, "evaluate_every": 1, "checkpoint_every": 1, "rate": 0.01}
    return {
        "init": DCT,
        "execution": {"device": "cpu", "threads": 1},
        "order": {"batch_size": 8},
        **sections,
        "train": {**train, **sections.get("train", {})},
    }


@pytest.mark.parametrize("model", [linear, small_conformer], ids=["plain", "with stages"])
def test_a_model_needs_no_settings(tmp_path, model):
    """The start is the same one with marked stages and without: the docstring names it."""
    run = fit(model, TRAIN, VAL, config={"train": {"epochs": 1}}, out=tmp_path / "run")
    assert run.claims["initialization"]["basis"] == DEFAULT_START
    assert DEFAULT_START in str(fit.__doc__)


def test_the_memory_layout_of_the_arrays_does_not_change_a_bit(tmp_path):
    """Images are often kept as (n, height, width, channels) and turned for torch."""
    images = torch.arange(24 * 32 * 32 * 3.0).sin().view(24, 32, 32, 3).permute(0, 3, 1, 2)
    labels = torch.arange(24) % 2

    def make():
        features = nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(1)
        return nn.Sequential(*features, nn.Flatten(), nn.Linear(16, 2))

    turned = fit(make, (images, labels), config=settings(), out=tmp_path / "turned")
    plain = fit(make, (images.contiguous(), labels), config=settings(), out=tmp_path / "plain")
    assert turned.digest == plain.digest


def test_basis_given_keeps_the_weights_of_the_model(tmp_path):
    model = linear()
    before = digest(model)
    settled = settings(init={"basis": "given"})
    run = fit(model, TRAIN, VAL, config=settled, out=tmp_path / "run")
    assert run.claims["initialization"] == {"basis": "given", "plan": None, "weights": before}
    assert run.digest != before


def test_trained_weights_are_not_discarded_without_a_word(tmp_path, capsys):
    """Once they are kept, and in a model that was not trained, there is nothing to say."""
    model = nn.Sequential(nn.LayerNorm(TRAIN[0].shape[-1]), linear())
    new = copy.deepcopy(model)
    nn.init.constant_(model[0].bias, 0.5)
    one = {"train": {"epochs": 1}}
    fit(copy.deepcopy(model), TRAIN, VAL, config=one, out=tmp_path / "replaced")
    said = capsys.readouterr().err
    assert "seen in 0)" in said
    assert 'init.basis to "given"' in said
    fit(model, TRAIN, VAL, config=one | {"init": {"basis": "given"}}, out=tmp_path / "kept")
    fit(new, TRAIN, VAL, config=one, out=tmp_path / "new")
    assert "init.basis" not in capsys.readouterr().err


def test_basis_given_is_verified_with_the_first_weights(tmp_path):
    model = linear()
    begun = copy.deepcopy(model)
    settled = settings(init={"basis": "given"})
    run = fit(model, TRAIN, VAL, config=settled, out=tmp_path / "run").path
    assert seedless.verify(run, model=begun, train=TRAIN, val=VAL).outcome == "identical"
    with pytest.raises(ConfigError, match="as it was before training"):
        seedless.verify(run, model=model, train=TRAIN, val=VAL)


def test_a_run_is_a_folder_that_says_what_it_is(tmp_path):
    run = fit(linear, TRAIN, VAL, test=TEST, classes=list("abc"), config=settings(), out=tmp_path)
    names = {path.name for path in tmp_path.iterdir()} - {".lock"}
    assert names == {
        "config.toml",
        "receipt.json",
        "trail.jsonl",
        "log.jsonl",
        "metrics.json",
        "predictions.npz",
        "weights.safetensors",
        "checkpoints",
    }
    assert json.loads((tmp_path / "metrics.json").read_text()) == run.claims["metrics"]
    assert list(run.claims["metrics"]["test"]["classes"]) == ["a", "b", "c"]
    with np.load(tmp_path / "predictions.npz") as file:
        assert file["validation_probabilities"].shape == (20, 3)
        assert file["test_probabilities"].dtype == np.float64
        assert file["test_ids"].tolist() != file["validation_ids"].tolist()
    assert digest(run.model) == run.digest
    assert run.claims["metrics"]["selected"]["score"] == run.metrics["validation"]["macro_auc"]


def test_predictions_are_those_of_the_weights_in_the_folder(tmp_path):
    """Of the selected epoch, not of the last one; rows are named by their content."""
    fit(linear, TRAIN, VAL, config=settings(train={"rate": 3.0, "epochs": 4}), out=tmp_path)
    run = load(tmp_path, model=linear())
    assert run.claims["metrics"]["selected"]["epoch"] < 4  # such a rate does more harm than good
    logits = run.model(torch.from_numpy(VAL[0]).float()).detach().double()
    with np.load(tmp_path / "predictions.npz") as file:
        names = [row.tobytes().hex()[:16] for row in digest_samples(VAL[0])]
        rows = [names.index(name) for name in file["validation_ids"]]
        np.testing.assert_allclose(
            file["validation_probabilities"], logits.sigmoid()[rows], rtol=1e-5, atol=1e-12
        )
        np.testing.assert_array_equal(file["validation_labels"], VAL[1][rows])


def test_twice_to_the_same_bits_and_from_shuffled_arrays_too(tmp_path):
    first, second = (fit(linear, TRAIN, VAL, config=settings(), out=tmp_path / n) for n in "ab")
    assert (first.digest, first.md5) == (second.digest, second.md5)
    assert first.claims["trail"] == second.claims["trail"]
    shuffled = [
        tuple(part[np.argsort(np.sin(np.arange(len(part))))] for part in pair)
        for pair in (TRAIN, VAL)
    ]
    third = fit(linear, *shuffled, config=settings(), out=tmp_path / "c")
    assert third.digest == first.digest
    assert third.claims["trail"] == first.claims["trail"]
    files = [np.load(tmp_path / name / "predictions.npz") for name in "ac"]
    key = "validation_probabilities"
    np.testing.assert_array_equal(files[0][key], files[1][key])


def test_a_run_is_verified_from_the_same_arrays_in_another_order(tmp_path):
    fit(linear, TRAIN, VAL, config=settings(), out=tmp_path)
    turned = [tuple(part[::-1] for part in pair) for pair in (TRAIN, VAL)]
    verdict = seedless.verify(tmp_path, model=linear, train=turned[0], val=turned[1])
    assert verdict.outcome == "identical", verdict.details


def test_negative_control_other_data_give_other_bits(tmp_path):
    first = fit(linear, TRAIN, VAL, config=settings(), out=tmp_path / "a")
    samples = TRAIN[0].copy()
    samples[0, 0, 0] += 1e-3
    second = fit(linear, (samples, TRAIN[1]), VAL, config=settings(), out=tmp_path / "b")
    assert second.digest != first.digest
    assert second.claims["data"]["digest"] != first.claims["data"]["digest"]


class Noisy(nn.Module):
    """A model that uses a global generator in its forward pass."""

    def __init__(self, draw):
        super().__init__()
        self.body = linear()
        self.draw = draw

    def forward(self, x):
        return self.body(x) + 0.01 * float(self.draw())


GENERATORS = {
    "torch's CPU generator": lambda: torch.rand(1),
    "numpy's np.random": np.random.rand,
    "Python's random": random.random,
}


def test_torchs_dropout_is_refused_and_the_message_names_ours(tmp_path):
    model = nn.Sequential(nn.Flatten(), nn.Dropout(0.1), nn.Linear(24, 3))
    with pytest.raises(NumericsError) as caught:
        fit(model, TRAIN, VAL, config=settings(), out=tmp_path / "run")
    message = str(caught.value)
    assert "1: Dropout(p=0.1)" in message
    assert "seedless.convert(model)" in message
    assert "seedless.Dropout" in message


class FunctionalDropout(nn.Module):
    """A model whose dropout is no layer, so that only a step shows it."""

    def __init__(self):
        super().__init__()
        self.body = linear()

    def forward(self, x):
        return self.body(nn.functional.dropout(x, 0.1, self.training))


def test_a_draw_in_the_first_step_is_located_and_leaves_no_folder(tmp_path):
    with pytest.raises(NumericsError) as caught:
        fit(FunctionalDropout(), TRAIN, VAL, config=settings(), out=tmp_path / "run")
    message = str(caught.value)
    assert f"torch's CPU generator moved in step 1, at {__file__}:" in message
    assert "seedless.convert(model)" in message
    assert not (tmp_path / "run").exists()  # the next call may use the name again


class DrawsInEvaluation(FunctionalDropout):
    """A model that draws where no training step shows it, as Monte Carlo dropout does."""

    def forward(self, x):
        return self.body(nn.functional.dropout(x, 0.1, not self.training))


@pytest.mark.parametrize("loss", [None, nn.functional.cross_entropy])
def test_a_draw_in_evaluation_is_located_before_the_first_step(tmp_path, loss):
    splits = [TRAIN, VAL] if loss is None else [(x, y.argmax(axis=1)) for x, y in (TRAIN, VAL)]
    with pytest.raises(NumericsError, match="called in evaluation mode, at") as caught:
        fit(DrawsInEvaluation(), *splits, loss=loss, config=settings(), out=tmp_path / "run")
    assert f"evaluation mode, at {__file__}:" in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_draws_in_the_last_evaluation_are_reported(tmp_path):
    config = settings(train={"guard": "report", "epochs": 1})
    run = fit(DrawsInEvaluation(), TRAIN, VAL, config=config, out=tmp_path / "run")
    assert "torch's CPU generator" in str(run.claims)


def test_draws_of_the_function_that_makes_the_optimizer_are_refused(tmp_path):
    def make(model):
        return torch.optim.SGD(model.parameters(), lr=float(torch.rand(())))

    with pytest.raises(NumericsError, match=r"torch's CPU generator moved in optimizer\(model\)"):
        fit(linear(), TRAIN, VAL, optimizer=make, config={"init": DCT}, out=tmp_path / "run")


@pytest.mark.parametrize("name", GENERATORS)
def test_any_global_generator_in_a_forward_pass_is_refused(tmp_path, name):
    with pytest.raises(NumericsError, match=f"{name} moved"):
        fit(Noisy(GENERATORS[name]), TRAIN, VAL, config=settings(), out=tmp_path / "run")


def test_a_clean_run_is_not_accused_even_if_generators_moved_before_it(tmp_path):
    torch.rand(3)
    model = nn.Sequential(nn.Flatten(), seedless.Dropout(0.5, layer=0), nn.Linear(24, 3))
    run = fit(model, TRAIN, VAL, config=settings(), out=tmp_path / "run")
    assert run.claims["promise"]["same_bits"] is True
    assert run.claims["promise"]["generators_moved"] == []


@pytest.mark.parametrize("name", GENERATORS)
def test_a_run_that_reports_generators_promises_no_repetition(tmp_path, name):
    model = Noisy(GENERATORS[name])
    told = settings(train={"guard": "report"})
    run = fit(model, TRAIN, VAL, config=told, out=tmp_path / "run")
    assert run.claims["promise"]["same_bits"] is False
    assert run.claims["promise"]["generators_moved"] == [name]


def test_a_resumed_run_remembers_that_a_generator_moved_before(tmp_path):
    """The checkpoint records it, because the rest of the run may use no generator."""
    model = Noisy(GENERATORS["Python's random"])
    told = settings(train={"guard": "report"})
    fit(model, TRAIN, VAL, config=told, out=tmp_path)
    for name in ("receipt.json", "checkpoints/epoch-0003.safetensors"):
        (tmp_path / name).unlink()
    lines = (tmp_path / "trail.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "trail.jsonl").write_bytes(b"".join(lines[:3]))
    model.draw = lambda: 0.5
    run = fit(model, TRAIN, VAL, config=told, out=tmp_path, resume=True)
    assert run.claims["promise"]["generators_moved"] == ["Python's random"]


def test_a_run_at_chance_is_marked_and_a_learning_one_is_not(tmp_path):
    """Labels that the samples say nothing of leave a run at chance."""
    unrelated = [(part[0], np.roll(part[1], 1, axis=0)[::-1]) for part in (TRAIN, VAL)]
    chance = fit(linear, *unrelated, config=settings(train={"rate": 1e-9}), out=tmp_path / "a")
    assert chance.metrics["validation"]["macro_auc"] <= 0.6
    assert chance.claims["metrics"]["converged"] is False
    learned = fit(linear, TRAIN, VAL, config=settings(train={"rate": 0.05}), out=tmp_path / "b")
    assert learned.metrics["validation"]["macro_auc"] > 0.6
    assert learned.claims["metrics"]["converged"] is True
    easy = settings(train={"rate": 1e-9, "converged_above": 0.01})
    assert (
        fit(linear, *unrelated, config=easy, out=tmp_path / "c").claims["metrics"]["converged"]
        is True
    )


def test_without_validation_the_training_split_shows_whether_it_learned(tmp_path):
    run = fit(linear, TRAIN, config=settings(train={"rate": 0.05}), out=tmp_path / "run")
    assert run.claims["metrics"]["selected"] == {"epoch": 3, "metric": "macro_auc", "score": None}
    assert run.claims["metrics"]["converged"] is True
    assert run.metrics["train"]["n"] == 40


def poison(step):
    """Settings that make a weight infinite before a step."""
    return settings(init={"basis": "given"}, control={"flip_bit": "1.weight:0:30", "at_step": step})


def ones():
    model = linear()
    with torch.no_grad():
        model[1].weight.fill_(1.9)
        model[1].bias.zero_()
    return model


def test_after_a_loss_that_is_no_number_the_last_good_checkpoint_stands(tmp_path):
    """A resumed run stops again at the same step."""
    out = tmp_path / "run"
    with pytest.raises(TrainError, match=r"diverged in epoch 2, step 8 \(batch 3\)") as first:
        fit(ones, TRAIN, VAL, config=poison(7), out=out)
    assert "train[" in str(first.value)
    assert [path.name for _, path in list_checkpoints(out)] == ["epoch-0001.safetensors"]
    assert not (out / "receipt.json").exists()
    trail = (out / "trail.jsonl").read_bytes()
    with pytest.raises(TrainError) as second:
        fit(ones, TRAIN, VAL, out=out, resume=True)
    assert str(second.value) == str(first.value)
    assert (out / "trail.jsonl").read_bytes() == trail
    with pytest.raises(RunError, match="not finished"):
        load(out, model=ones())


def test_a_rate_that_sends_the_weights_away_is_one_message(tmp_path):
    """The highest rate there can be; one beyond it is refused with the configuration."""
    with pytest.raises(TrainError, match=r"not finite.*lower train\.rate"):
        fit(linear, TRAIN, VAL, config=settings(train={"rate": FLOAT32_MAX}), out=tmp_path / "run")
    with pytest.raises(ConfigError, match=r"train\.rate"):
        fit(linear, TRAIN, VAL, config=settings(train={"rate": 1e300}), out=tmp_path / "b")


def test_out_of_memory_says_what_to_lower(tmp_path):
    class Greedy(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = linear()

        def forward(self, x):
            return self.body(x) + torch.empty(1 << 44)[: len(x), None]

    with pytest.raises(TrainError) as caught:
        fit(Greedy, TRAIN, VAL, config=settings(), out=tmp_path / "run")
    message = str(caught.value)
    assert "out of memory on cpu with batches of 8" in message
    assert "order.batch_size" in message
    assert "train.microbatch" in message
    assert "\n" not in message


def test_other_errors_of_a_model_are_not_called_out_of_memory(tmp_path):
    class Broken(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = linear()

        def forward(self, x):
            raise RuntimeError("my own mistake")

    with pytest.raises(ConfigError, match=r"cannot process the train samples.*my own mistake"):
        fit(Broken, TRAIN, VAL, config=settings(), out=tmp_path / "run")


@pytest.mark.parametrize("moment", ["checkpoint", "weights"])
def test_a_full_disk_is_one_message_and_what_was_written_stands(tmp_path, monkeypatch, moment):
    """While training, and while the finished run is written."""
    import errno
    import os

    from seedless.runs import seal as seal_module
    from seedless.train import checkpoint as checkpoint_module

    real = checkpoint_module.write_atomic

    def full(path, content):
        if "epoch-0002" in path.name or path.name == "weights.safetensors":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(path, content)

    out = tmp_path / "run"
    module = checkpoint_module if moment == "checkpoint" else seal_module
    with monkeypatch.context() as patch:
        patch.setattr(module, "write_atomic", full)
        with pytest.raises(RunError, match=f"cannot write {out}.*No space left"):
            fit(linear, TRAIN, VAL, config=settings(), out=out)
    resumed = fit(linear, TRAIN, VAL, out=out, resume=True)
    whole = fit(linear, TRAIN, VAL, config=settings(), out=tmp_path / "whole")
    assert resumed.digest == whole.digest


def test_resume_goes_on_and_of_a_finished_run_only_loads(tmp_path):
    whole = fit(linear, TRAIN, VAL, config=settings(), out=tmp_path / "whole")
    out = tmp_path / "run"
    shutil.copytree(tmp_path / "whole", out)
    again = fit(linear, TRAIN, VAL, out=out, resume=True)
    assert again.receipt == whole.receipt
    assert digest(again.model) == whole.digest
    (out / "receipt.json").unlink()
    for _, path in list_checkpoints(out)[1:]:
        path.unlink()
    resumed = fit(linear, TRAIN, VAL, out=out, resume=True)
    assert (resumed.digest, resumed.claims["trail"]) == (whole.digest, whole.claims["trail"])
    fresh = fit(linear, TRAIN, VAL, config=settings(), out=tmp_path / "new", resume=True)
    assert fresh.digest == whole.digest


def test_resume_with_other_data_is_refused(tmp_path):
    """The state of a run belongs to its samples: others would give a run of neither."""
    fit(linear, TRAIN, VAL, config=settings(), out=tmp_path)
    (tmp_path / "receipt.json").unlink()
    for _, path in list_checkpoints(tmp_path)[1:]:
        path.unlink()
    lines = (tmp_path / "trail.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "trail.jsonl").write_bytes(b"".join(lines[:2]))
    other = (TRAIN[0] + 0.5, TRAIN[1])
    with pytest.raises(RunError, match="data"):
        fit(linear, other, VAL, out=tmp_path, resume=True)
    assert not (tmp_path / "receipt.json").exists()


def test_load_puts_the_selected_weights_into_a_model(tmp_path):
    run = fit(linear, TRAIN, VAL, config=settings(), out=tmp_path)
    model = linear()
    loaded = load(tmp_path, model=model)
    assert loaded.model is model
    assert not model.training
    assert digest(model) == run.digest
    with pytest.raises(ConfigError, match="pass the model"):
        load(tmp_path)
    with pytest.raises(RunError, match="does not fit the model"):
        load(tmp_path, model=nn.Linear(24, 3))
    with pytest.raises(RunError, match="has shape"):
        load(tmp_path, model=linear(classes=4))


def test_runs_without_a_name_get_the_next_free_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number in (1, 2):
        run = fit(linear, TRAIN, config=settings(train={"epochs": 1}))
        assert str(run.path) == f"runs/fit-00{number}"


@pytest.mark.parametrize(
    ("train", "message"),
    [
        ((TRAIN[0], TRAIN[1][:-1]), "40 samples but 39 labels"),
        ((TRAIN[0], TRAIN[1] * 2), "labels of 0 and 1"),
        ((TRAIN[0], TRAIN[1][:, 0] - 1.5), "class numbers"),
        ((TRAIN[0], TRAIN[1][:, :, None]), r"\(n,\) or \(n, K\)"),
        ((TRAIN[0] * np.nan, TRAIN[1]), "NaN"),
        ((TRAIN[0][:0], TRAIN[1][:0]), "no samples"),
    ],
    ids=["lengths", "twos", "fractions", "three dimensions", "nan", "empty"],
)
def test_bad_arrays_are_refused_before_a_folder_is_made(tmp_path, train, message):
    with pytest.raises(DataError, match=message):
        fit(linear, train, VAL, config=settings(), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_bad_arguments_say_what_was_expected(tmp_path):
    out = tmp_path / "run"
    with pytest.raises(DataError, match="pair"):
        fit(linear, list(TRAIN), VAL, config=settings(), out=out)
    with pytest.raises(ConfigError, match="expected a model"):
        fit(lambda: "model", TRAIN, VAL, config=settings(), out=out)
    with pytest.raises(ConfigError, match="expected a model or a function that makes one, got 3"):
        fit(3, TRAIN, VAL, config=settings(), out=out)
    with pytest.raises(DataError, match="2 class names for 3"):
        fit(linear, TRAIN, VAL, classes=["a", "b"], config=settings(), out=out)
    with pytest.raises(ConfigError, match=r"fit's config.*train.epoch"):
        fit(linear, TRAIN, VAL, config={"train": {"epoch": 3}}, out=out)
    with pytest.raises(DataError, match="val"):
        fit(linear, TRAIN, (VAL[0], VAL[1][:, :2]), config=settings(), out=out)
    assert not out.exists()


def test_class_numbers_make_a_softmax(tmp_path):
    numbers = [(x, y.argmax(axis=1)) for x, y in (TRAIN, VAL)]
    run = fit(linear, *numbers, config=settings(), out=tmp_path)
    assert run.claims["data"]["task"] == "multi-class"
    with np.load(tmp_path / "predictions.npz") as file:
        np.testing.assert_allclose(file["validation_probabilities"].sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (lambda: linear(classes=5), "3 logits a sample"),
        (lambda: nn.Linear(7, 3), "cannot process the train samples"),
        (lambda: linear().double(), "cannot process the train samples"),
    ],
)
def test_a_model_that_does_not_fit_is_refused_before_a_folder_is_made(tmp_path, model, words):
    with pytest.raises(ConfigError, match=words):
        fit(model, TRAIN, VAL, config=settings(), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_whole_numbers_reach_an_embedding(tmp_path):
    words = np.arange(240).reshape(40, 6) % 11
    model = nn.Sequential(nn.Embedding(11, 5), nn.Flatten(), nn.Linear(30, 3))
    run = fit(model, (words, np.arange(40) % 3), config=settings(), out=tmp_path / "run")
    assert run.metrics["train"]["n"] == 40


def test_rows_without_a_one_are_trained_on(tmp_path):
    labels = (np.arange(40) % 2)[:, None]
    run = fit(lambda: linear(classes=1), (TRAIN[0], labels), config=settings(), out=tmp_path / "r")
    assert run.metrics["train"]["n"] == 40


def test_weights_that_are_not_finite_are_not_sealed(tmp_path):
    with pytest.raises(TrainError, match="not finite"):
        fit(linear, TRAIN, config=settings(train={"epochs": 1, "rate": 1e38}), out=tmp_path / "run")
    assert not (tmp_path / "run" / "receipt.json").exists()


@pytest.mark.parametrize("batch_size", [5, 40])
def test_a_run_that_diverges_before_its_first_checkpoint_leaves_no_folder(tmp_path, batch_size):
    """With one step an epoch, the losses are all finite and the validation split shows it."""
    changes = settings(train={"rate": FLOAT32_MAX}, order={"batch_size": batch_size})
    with pytest.raises(TrainingDivergedError, match=r"^the run diverged in epoch 1, step [12]\b"):
        fit(linear, TRAIN, VAL, config=changes, out=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("clamp", [1e300, 3.5e38])
def test_a_clamp_beyond_float32_is_refused_before_anything_is_written(tmp_path, clamp):
    with pytest.raises(ConfigError, match=r"loss\.clamp"):
        fit(linear, TRAIN, VAL, config=settings(loss={"clamp": clamp}), out=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_resume_of_a_finished_run_with_other_settings_is_refused(tmp_path):
    fit(linear, TRAIN, VAL, config=settings(), out=tmp_path)
    with pytest.raises(RunError, match="another configuration"):
        fit(linear, TRAIN, VAL, config=settings(train={"epochs": 7}), out=tmp_path, resume=True)


def test_a_run_that_did_not_converge_says_so(tmp_path, capsys):
    settled = settings(train={"rate": 1e-9, "converged_above": 0.99})
    fit(linear, TRAIN, VAL, config=settled, out=tmp_path / "run", progress=True)
    assert "not converged: the validation score" in capsys.readouterr().err


def test_labels_that_may_be_meant_otherwise_are_named(tmp_path, capsys):
    """Also where no progress is shown; with class numbers nothing is said."""
    samples = TRAIN[0]
    numbers = np.arange(len(samples)) % 3
    columns = np.eye(3)[numbers]
    quick = settings(train={"epochs": 1})
    run = fit(small_net(samples, 3), (samples, columns), config=quick, out=tmp_path / "columns")
    assert run.claims["data"]["task"] == "multi-label"
    said = capsys.readouterr().err
    assert "note: labels (40, 3) has exactly one 1 in each row" in said
    assert "give class numbers, labels.argmax(axis=1)" in said
    fit(small_net(samples, 3), (samples, numbers), config=quick, out=tmp_path / "numbers")
    assert "note" not in capsys.readouterr().err


def small_net(samples, outputs):
    return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(np.shape(samples)[1:])), outputs))


@pytest.mark.parametrize(
    ("labels", "outputs", "said"),
    [
        (np.array(["a", "b"] * 20), 2, "got text such as 'a': names, numbers = np.unique"),
        (["a", "b"] * 20, 2, "got text such as 'a': names, numbers = np.unique"),
        (
            np.arange(40)[:, None] % 3,
            3,
            r"values from 0 to 2; class numbers have the shape \(40,\)",
        ),
        (np.arange(40) % 2, 1, r"for one logit a sample give labels of 0 and 1 with the shape \(n"),
    ],
)
def test_a_refusal_of_labels_says_what_to_give(tmp_path, labels, outputs, said):
    samples = TRAIN[0]
    with pytest.raises((DataError, ConfigError), match=said):
        fit(small_net(samples, outputs), (samples, labels), out=tmp_path / "run")


def test_a_model_that_rejects_whole_numbers_is_told_how_to_change_them(tmp_path):
    samples = (100 * np.asarray(TRAIN[0])).astype(np.uint8)
    labels = np.arange(len(samples)) % 2
    with pytest.raises(ConfigError, match=r"give other models X.astype\('float32'\)"):
        fit(small_net(samples, 2), (samples, labels), out=tmp_path / "run")
