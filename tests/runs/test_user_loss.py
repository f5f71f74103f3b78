"""`fit` with a user-defined loss: any structure of inputs, outputs and targets."""

import copy
import json
import shutil
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

import seedless
from seedless.analysis.run_report import view_run
from seedless.core.digests import canonical_json, digest, digest_value
from seedless.core.errors import ConfigError, DataError, NumericsError, RunError, StatsError
from seedless.core.files import hash_file
from seedless.core.sample_digests import digest_dataset
from seedless.ordering.order import make_digest_order
from seedless.proof.provenance import make_provenance
from seedless.report.card import make_card
from seedless.runs.user_data import read_dataset
from seedless.runs.validation import open_validated
from seedless.train.checkpoint import list_checkpoints
from tests.runs import user_problems as own
from tests.runs.user_problems import REGRESSION, SETTINGS, small_net

fit = partial(seedless.fit, config=SETTINGS)
METRICS = {"error": own.absolute_error}


@pytest.fixture(scope="module")
def regression(tmp_path_factory):
    """A run with loss, optimizer, scheduler and metrics of its own."""
    out = tmp_path_factory.mktemp("runs") / "regression"
    return fit(small_net, **REGRESSION, metrics=METRICS, out=out)


def test_a_regression_is_verified(regression):
    verdict = seedless.verify(regression, model=small_net, **REGRESSION, metrics=METRICS)
    assert verdict.outcome == "identical", verdict.details
    assert verdict.remarks == ()


def test_its_receipt_names_the_functions_and_the_scores(regression):
    claims = regression.claims
    assert claims["schema"] == "2.2"
    assert [item["role"] for item in claims["callables"]] == [
        "loss",
        "metrics",
        "optimizer",
        "scheduler",
    ]
    validation = claims["metrics"]["validation"]
    assert set(validation) == {"n", "loss", "error"}
    assert regression.claims["metrics"]["selected"]["score"] == -validation["loss"]
    assert not (regression.path / "predictions.npz").exists()
    outputs = regression.model(torch.from_numpy(REGRESSION["val"][0]).float())
    targets = torch.from_numpy(REGRESSION["val"][1]).float()
    expected = own.absolute_error(outputs, targets).mean().item()
    assert validation["error"] == pytest.approx(expected, rel=1e-6)


def test_without_the_metrics_the_verdict_says_what_was_not_compared(regression):
    verdict = seedless.verify(regression, model=small_net, **REGRESSION)
    assert verdict.outcome == "identical", verdict.details
    assert "metrics= was not given" in verdict.remarks[0]


def other(outputs, targets):
    return (outputs - targets).square().mean()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"loss": other}, "made with loss=squared_error.*the loss=other given now"),
        ({"loss": None}, "pass it as loss="),
        ({"optimizer": None}, "pass it as optimizer="),
        ({"scheduler": lambda epoch, step: 0.4**epoch}, "made with scheduler=falling"),
        ({"collate": torch.utils.data.default_collate}, "made without collate="),
    ],
)
def test_negative_control_other_functions_are_not_verified(regression, change, words):
    with pytest.raises(ConfigError, match=words):
        seedless.verify(regression, model=small_net, **{**REGRESSION, **change})


def test_negative_control_other_targets_differ(regression):
    inputs, targets = REGRESSION["train"]
    changed = {**REGRESSION, "train": (inputs, targets + 1e-3)}
    verdict = seedless.verify(regression, model=small_net, **changed)
    assert verdict.outcome == "differs"


def seal_again(run, folder, change):
    """Copy a run, change its receipt and metrics, and write the digests that belong to them."""
    shutil.copytree(run.path, folder)
    receipt = json.loads((folder / "receipt.json").read_text())
    claims = receipt["predicate"]
    change(claims)
    (folder / "metrics.json").write_text(json.dumps(claims["metrics"]))
    claims["files"]["metrics.json"] = hash_file(folder / "metrics.json")
    del claims["digest"]
    claims["digest"] = digest_value(receipt)
    (folder / "receipt.json").write_bytes(canonical_json(receipt) + b"\n")
    return seedless.verify(folder, validate_only=True)


def set_role(claims):
    claims["callables"][0]["role"] = "another"


def drop_functions(claims):
    claims["callables"] = []


def drop_optimizer(claims):
    del claims["callables"][2]


def change_digest(claims):
    claims["callables"][0]["digest"] = claims["callables"][1]["digest"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (set_role, "expected roles among"),
        (drop_functions, "schema 2.2 is for runs of fit"),
        (drop_optimizer, "disagree about whether there is a optimizer"),
        (change_digest, "the trail's first line and the receipt disagree about 'callables'"),
    ],
)
def test_a_changed_receipt_is_invalid(regression, tmp_path, change, words):
    verdict = seal_again(regression, tmp_path / "copy", change)
    assert verdict.outcome == "invalid"
    assert any(words in line for line in verdict.details), verdict.details


def improve(claims):
    claims["metrics"]["validation"]["loss"] /= 2


def claim_convergence(claims):
    claims["metrics"]["converged"] = True


def add_content(claims):
    claims["metrics"]["content"] = claims["predictions"]


def add_split(claims):
    claims["metrics"]["test"] = claims["metrics"]["validation"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (improve, "the validation loss is not that of the selected epoch"),
        (claim_convergence, "are not those of a run with a user-defined loss"),
        (add_content, "belongs to runs with keys"),
        (add_split, "expected scores of validation"),
    ],
)
def test_scores_that_do_not_follow_are_invalid(regression, tmp_path, change, words):
    verdict = seal_again(regression, tmp_path / "copy", change)
    assert verdict.outcome == "invalid"
    assert any(words in line for line in verdict.details), verdict.details


def test_a_killed_run_continues_with_the_users_optimizer(regression, tmp_path):
    """Its state is made by its first step, and is restored from the checkpoint."""
    out = tmp_path / "run"
    shutil.copytree(regression.path, out)
    (out / "receipt.json").unlink()
    list_checkpoints(out)[-1][1].unlink()
    arguments = {**REGRESSION, "metrics": METRICS}
    resumed = fit(small_net, **arguments, out=out, resume=True)
    assert resumed.claims["trail"] == regression.claims["trail"]
    assert resumed.digest == regression.digest
    with pytest.raises(RunError, match="other functions"):
        fit(small_net, **{**arguments, "loss": other}, out=out, resume=True)
    (out / "receipt.json").unlink()
    with pytest.raises(RunError, match="callables"):
        fit(small_net, **{**arguments, "loss": other}, out=out, resume=True)


def test_a_run_without_functions_has_the_receipt_it_had(tmp_path):
    inputs, _ = REGRESSION["train"]
    pair = (inputs, np.arange(24) % 3)
    run = fit(lambda: small_net(3), pair, out=tmp_path / "run")
    assert (run.claims["schema"], run.claims["callables"]) == ("2.0", [])


def test_labels_of_classes_with_an_optimizer_and_a_scheduler(tmp_path):
    """The configuration's own loss, and the user's way to minimize it."""
    arguments = {"train": (REGRESSION["train"][0], np.arange(24) % 3)}
    arguments |= {"optimizer": own.adamw, "scheduler": own.falling}
    make = partial(small_net, 3)
    run = fit(make, **arguments, out=tmp_path / "run")
    assert run.metrics["train"]["n"] == 24
    assert seedless.verify(run, model=make, **arguments).outcome == "identical"
    rates = [json.loads(line)["rate"] for line in (run.path / "log.jsonl").read_text().splitlines()]
    assert rates == [0.01, 0.005]


def test_several_inputs_and_a_dict_of_outputs(tmp_path):
    arguments = {
        "train": own.make_two_tasks(24),
        "val": own.make_two_tasks(8, start=24),
        "loss": own.two_losses,
    }
    run = fit(own.TwoTasks, **arguments, out=tmp_path / "run")
    assert seedless.verify(run, model=own.TwoTasks, **arguments).outcome == "identical"


def test_a_loss_for_each_sample_can_order_the_samples(tmp_path):
    settings = {**SETTINGS, "order": {"batch_size": 8, "name": "loss_ranked"}}
    arguments = {"train": own.make_two_tasks(24), "loss": own.two_losses}
    run = seedless.fit(own.TwoTasks, **arguments, config=settings, out=tmp_path / "run")
    assert seedless.verify(run, model=own.TwoTasks, **arguments).outcome == "identical"


def test_dense_targets_with_pixels_to_ignore(tmp_path):
    arguments = {
        "train": own.make_masks(12),
        "val": own.make_masks(4, start=12),
        "loss": own.pixel_loss,
    }
    run = fit(own.segmenter, **arguments, out=tmp_path / "run")
    assert seedless.verify(run, model=own.segmenter, **arguments).outcome == "identical"


def test_sentences_of_different_lengths_are_padded_by_collate(tmp_path):
    arguments = {
        "train": own.Sentences(range(24)),
        "val": own.Sentences(range(24, 32)),
        "loss": nn.CrossEntropyLoss(),
        "collate": own.pad_sentences,
    }
    run = fit(own.MeanOfWords, **arguments, out=tmp_path / "run")
    assert seedless.verify(run, model=own.MeanOfWords, **arguments).outcome == "identical"
    turned = {**arguments, "train": own.Sentences(reversed(range(24)))}
    assert fit(own.MeanOfWords, **turned, out=tmp_path / "turned").digest == run.digest


def test_a_step_has_the_bits_of_a_plain_loop(tmp_path):
    """One epoch of one batch: loss.backward() and optimizer.step(), as anyone writes them."""
    inputs, targets = own.make_regression(41)  # in float32, 1 / 41 * 41 is not 1
    settings = {
        "execution": SETTINGS["execution"],
        "train": {"epochs": 1},
        "init": {"basis": "given"},
    }
    begun = small_net()
    model = copy.deepcopy(begun)
    arguments = {"train": (inputs, targets), "loss": own.squared_error, "optimizer": own.adamw}
    run = seedless.fit(begun, **arguments, config=settings, out=tmp_path / "run")
    digests = digest_dataset(read_dataset("train", (inputs, targets)), shown=False)
    rows = make_digest_order("content", digests).epoch(0)
    optimizer = own.adamw(model)
    outputs = model(torch.from_numpy(inputs[rows]).float())
    own.squared_error(outputs, torch.from_numpy(targets[rows]).float()).backward()
    optimizer.step()
    assert digest(model) == run.digest


def test_in_portable_arithmetic_the_threads_change_no_bit(tmp_path):
    digests = set()
    for threads in (1, 2):
        execution = {"device": "cpu", "threads": threads, "arithmetic": "portable"}
        settings = {**SETTINGS, "execution": execution}
        out = tmp_path / str(threads)
        digests.add(seedless.fit(small_net, **REGRESSION, config=settings, out=out).digest)
    assert len(digests) == 1


def test_micro_batches_are_read_in_parts(tmp_path):
    """A mean over a batch is the mean over its parts, but for the rounding."""
    whole = fit(small_net, **REGRESSION, out=tmp_path / "whole")
    settings = {**SETTINGS, "train": {**SETTINGS["train"], "microbatch": 3}}
    parts = seedless.fit(small_net, **REGRESSION, config=settings, out=tmp_path / "parts")
    for one, two in zip(whole.model.parameters(), parts.model.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-6)


class Numbers(IterableDataset):
    def __iter__(self):
        return iter(range(3))


PAIRS = TensorDataset(torch.zeros(8, 6), torch.zeros(8, 1))


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"train": DataLoader(PAIRS, 4)}, DataError, "train=loader.dataset, with batch_size=4"),
        ({"train": Numbers()}, DataError, r"IterableDataset.*dataset\[index\]"),
        ({"train": (np.zeros((4, 6)),) * 3}, DataError, "a tuple of 3"),
        ({"train": (np.zeros((4, 6)), np.zeros((3, 1)))}, DataError, r"\[3, 4\]"),
        ({"train": (np.zeros((4, 6)), "four")}, DataError, "train targets as arrays.*got str"),
        ({"train": [0.5, 0.25]}, DataError, r"pairs \(inputs, targets\), got Tensor"),
        ({"train": [{"image": 0.5, "mask": 1}]}, DataError, "a dict of 'image', 'mask'.*collate="),
        ({"loss": "mse"}, ConfigError, "expected loss as a function, got str"),
        ({"loss": lambda o, t: 0.5}, ConfigError, r"shape \(\) or \(B,\), got float"),
        ({"loss": lambda o, t: o - t}, ConfigError, r"of shape \(2, 1\); average"),
        ({"loss": lambda o, t: o[:1, 0]}, ConfigError, "each of the 2 samples.*got 1"),
        (
            {"loss": lambda o, t: o["x"]},
            ConfigError,
            r"loss\(outputs, targets\) failed for float32",
        ),
        ({"optimizer": torch.optim.SGD}, ConfigError, r"optimizer\(model\) failed.*lambda model"),
        ({"optimizer": lambda model: None}, ConfigError, "to return a torch.optim.Optimizer"),
        (
            {"optimizer": lambda model: torch.optim.LBFGS(model.parameters())},
            ConfigError,
            r"LBFGS\.step needs closure",
        ),
        (
            {"scheduler": torch.optim.lr_scheduler.StepLR},
            ConfigError,
            r"scheduler\(epoch, step\) failed: TypeError.*lambda epoch, step",
        ),
        ({"scheduler": lambda epoch, step: None}, ConfigError, "to return a number"),
        ({"scheduler": lambda epoch, step: -1.0}, ConfigError, "a factor from 0, got -1.0"),
        ({"metrics": own.absolute_error}, ConfigError, "metrics as a dict of functions by name"),
        (
            {"metrics": {"worst": lambda outputs, targets: outputs.worst}},
            ConfigError,
            r"the metric 'worst' failed for float32 \(2, 1\) and float32 .*AttributeError",
        ),
        (
            {"metrics": {"worst": lambda outputs, targets: outputs}},
            ConfigError,
            r"the metric 'worst' to return a number for the batch",
        ),
        (
            {"loss": lambda outputs, targets: (outputs > targets).float().mean()},
            ConfigError,
            "has no gradient",
        ),
        ({"metrics": {"loss": own.absolute_error}}, ConfigError, "'loss' is there in every run"),
        ({"classes": ["a"]}, ConfigError, "leave it out with loss="),
        ({"epochs": 0}, ConfigError, r"fit's arguments: train\.epochs"),
    ],
)
def test_what_cannot_be_used_is_refused_in_words(tmp_path, change, error, words):
    with pytest.raises(error, match=words):
        fit(small_net, **{**REGRESSION, **change}, out=tmp_path / "run")
    assert not (tmp_path / "run" / "receipt.json").exists()


LABELS = np.arange(8) % 3


class TwoOutputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 3)

    def forward(self, x):
        return self.body(x), self.body(x)


@pytest.mark.parametrize(
    ("model", "train", "error", "words"),
    [
        (small_net, DataLoader(PAIRS, 4), DataError, "train=loader.dataset"),
        (small_net, PAIRS, DataError, "train=dataset.tensors, or keep the dataset and give loss="),
        (small_net, own.Sentences(range(8)), DataError, "a Sentences: for a dataset give loss="),
        (
            small_net,
            ((np.zeros((8, 6)), np.zeros((8, 2))), LABELS),
            DataError,
            "2 arrays of inputs: for a model with several inputs give loss=",
        ),
        (small_net, (np.eye(8, 6), LABELS + 0.5), DataError, "got 0.5: .*regression.* give loss="),
        (
            small_net,
            (np.eye(8, 6), np.ones((8, 4, 4))),
            DataError,
            r"got shape \(8, 4, 4\): .* give loss=",
        ),
        (small_net, np.eye(8, 6), DataError, r"got ndarray; .*train=\(X, y\)"),
        (TwoOutputs, (np.eye(8, 6), LABELS), ConfigError, "got a tuple: .* give loss="),
        (
            lambda: nn.Sequential(nn.LazyLinear(3)),
            (np.eye(8, 6), LABELS),
            ConfigError,
            r"not known yet, such as 0.weight: call it once",
        ),
    ],
    ids=[
        *("loader", "tensors", "dataset", "inputs", "real numbers", "masks", "no labels"),
        *("outputs", "lazy"),
    ],
)
def test_what_needs_a_loss_of_its_own_says_so(tmp_path, model, train, error, words):
    with pytest.raises(error, match=words):
        fit(model, train, out=tmp_path / "run")


def test_class_numbers_take_class_weights(tmp_path):
    pair = (np.eye(8, 6), LABELS)
    digests = []
    for weights in ("none", "sqrt"):
        config = {**SETTINGS, "init": {"basis": "dct"}, "loss": {"class_weights": weights}}
        run = seedless.fit(partial(small_net, 3), pair, config=config, out=tmp_path / weights)
        assert run.claims["data"]["task"] == "multi-class"
        digests.append(run.digest)
    assert digests[0] != digests[1]


def test_settings_that_would_have_no_effect_are_refused(tmp_path):
    for section, name, value in [
        ("train", "rate", 0.1),
        ("train", "warmup_steps", 3),
        ("loss", "class_weights", "sqrt"),
        ("augment", "flip", True),
        ("execution", "mode", "compiled"),
    ]:
        settings = {**SETTINGS, section: {**SETTINGS.get(section, {}), name: value}}
        with pytest.raises(ConfigError, match=f"{name}|{section}"):
            seedless.fit(small_net, **REGRESSION, config=settings, out=tmp_path / "run")


class Counting(torch.optim.SGD):
    """Counts its steps where no checkpoint looks."""

    def __init__(self, model, place):
        super().__init__(model.parameters(), lr=0.01)
        self.place = place

    def step(self, closure=None):
        super().step(closure)
        if self.place == "group":
            self.param_groups[0]["count"] = self.param_groups[0].get("count", 0) + 1
        elif self.place == "attribute":
            self.count = getattr(self, "count", 0) + 1
        else:
            for parameter in self.param_groups[0]["params"]:
                fields = self.state[parameter]
                fields["count"] = fields.get("count", 0) + 1


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("group", "changed 'count' of its"),
        ("attribute", "Counting changed its attribute 'count' during a step"),
        ("state", "got 'count' as int"),
    ],
)
def test_an_optimizer_that_could_not_be_resumed_is_refused(tmp_path, place, words):
    changed = {**REGRESSION, "optimizer": lambda model: Counting(model, place)}
    with pytest.raises(ConfigError, match=words):
        fit(small_net, **changed, out=tmp_path / "run")


def test_random_numbers_in_collate_are_refused(tmp_path):
    def collate(samples):
        torch.rand(1)
        return torch.utils.data.default_collate(samples)

    with pytest.raises((NumericsError, DataError), match="torch's CPU generator"):
        fit(small_net, **REGRESSION, collate=collate, out=tmp_path / "run")


def name_patient(index):
    return ("patient", index)


class Pairs:
    """Rows of arrays; sample 5 changes after so many readings."""

    def __init__(self, inputs, targets, changes_after=10_000):
        self.inputs, self.targets = inputs.astype(np.float32), targets.astype(np.float32)
        self.reads, self.changes_after = 0, changes_after

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, index):
        self.reads += 1
        changed = index == 5 and self.reads > self.changes_after
        return self.inputs[index] + changed, self.targets[index]


def test_keys_of_the_user_decide_the_order_and_the_content_is_in_the_receipt(tmp_path):
    arguments = {"train": Pairs(*REGRESSION["train"]), "loss": own.squared_error}
    arguments |= {"key": name_patient}
    run = fit(small_net, **arguments, out=tmp_path / "run")
    assert run.claims["metrics"]["content"].startswith("sha256:")
    # Two samples for the first check, then two epochs (in the first, content is read twice: as
    # augmented and as it is), then the scores. There is no pass before.
    assert arguments["train"].reads == 2 * 2 + 3 * 24 - 2 + 24
    assert seedless.verify(run, model=small_net, **arguments).outcome == "identical"
    moved = {**arguments, "train": Pairs(REGRESSION["train"][0] + 1e-3, REGRESSION["train"][1])}
    assert seedless.verify(run, model=small_net, **moved).outcome == "differs"


def test_a_sample_that_changes_during_a_run_with_keys_stops_it(tmp_path):
    dataset = Pairs(*REGRESSION["train"], changes_after=60)
    arguments = {"train": dataset, "loss": own.squared_error, "key": name_patient}
    with pytest.raises(DataError, match="sample 5 is not what it was"):
        fit(small_net, **arguments, out=tmp_path / "run")


class Noisy(Pairs):
    """Adds noise that depends on the sample and the epoch alone."""

    def __getitem__(self, index):
        inputs, targets = super().__getitem__(index)
        with seedless.augment(index):
            return inputs + 0.1 * torch.rand(6).numpy(), targets


def test_augmentation_by_sample_and_epoch_is_the_same_from_any_worker(tmp_path):
    arguments = {"train": Noisy(*REGRESSION["train"]), "loss": own.squared_error}
    run = fit(small_net, **arguments, workers=2, out=tmp_path / "run")
    assert seedless.verify(run, model=small_net, **arguments).outcome == "identical"
    plain = fit(
        small_net, **{**arguments, "train": Pairs(*REGRESSION["train"])}, out=tmp_path / "b"
    )
    assert plain.digest != run.digest


def test_two_samples_with_one_key_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"key\(7\) and key\(19\) are equal"):
        fit(small_net, **REGRESSION, key=lambda index: index % 12, out=tmp_path / "run")


def test_what_needs_predictions_of_classes_says_that_there_are_none(regression):
    with pytest.raises(RunError, match=r"no predictions: its scores are in metrics\.json"):
        seedless.evaluate(regression)
    with pytest.raises(StatsError, match=r"--field validation\.loss"):
        seedless.compare([regression.path], [regression.path])


def test_its_provenance_names_its_weights_and_scores(regression):
    names = [item["name"] for item in json.loads(make_provenance(regression.receipt))["subject"]]
    assert names == ["weights.safetensors", "metrics.json"]


def test_its_page_and_its_card_show_the_loss_and_the_metrics_and_no_auc(regression, tmp_path):
    validation = regression.claims["metrics"]["validation"]
    loss, error = (f"{validation[name]:.4g}" for name in ("loss", next(iter(METRICS))))
    text = seedless.report(regression, out=tmp_path / "page.html").read_text()
    assert "<b>Validation loss</b>" in text
    assert "the epoch of the lowest is selected" in text
    assert f"Loss on validation: <strong>{loss}</strong>" in text
    assert f"{next(iter(METRICS))} <strong>{error}</strong>" in text
    assert "negative loss by epoch" not in text.lower()
    card = make_card(view_run(open_validated(regression.path), "mine"))
    assert f"| loss | {validation['loss']:.6g} |" in card
    assert f'"metrics": {json.dumps(sorted(["loss", *METRICS]))}' in card
    for word in ("roc_auc", "AUC", "classification", "Probabilities", "logits"):
        assert word not in card
