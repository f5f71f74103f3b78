"""What is left of a run besides its trail: predictions bound to weights, and their scores."""

import numpy as np
import pytest
import torch
from torch import nn

import seedless
from seedless.analysis.run_churn import open_predictions
from seedless.core.config import Config, LossConfig
from seedless.core.errors import TrainError
from seedless.evaluate.scores import score_predictions
from seedless.models import build
from seedless.runs.seal import predict_split
from seedless.train.loss import make_loss
from seedless.train.prediction import compute_outputs, predict
from seedless.train.training_problem import DataSplit
from tests.tiny import fit_run, give, make_arrays, merge


def make_split(n=10):
    samples = torch.from_numpy(make_arrays(n * 12, 4)[0]).reshape(n, 2, 48)
    return DataSplit(samples, torch.zeros(n, 3), np.array([str(row) for row in range(n)]))


@pytest.fixture
def model():
    network = build("baseline", leads=2, classes=3, small=True)
    seedless.initialize(network, "dct")
    return network


def test_features_and_logits_are_of_one_pass(model):
    calls = []
    model.register_forward_hook(lambda *_: calls.append(1))
    config = Config().change(train={"evaluate_batch": 4})
    found = compute_outputs(model, make_split(), config, with_features=True)
    assert len(calls) == 3  # batches of 4, 4 and 2
    assert found.features.shape[0] == 10
    with torch.no_grad():
        torch.testing.assert_close(model.eval().head(found.features), found.logits)


def test_asking_for_features_changes_no_bit_and_leaves_nothing_behind(model):
    config = Config()
    model.train()
    plain = compute_outputs(model, make_split(), config)
    assert plain.features is None
    asked = compute_outputs(model, make_split(), config, with_features=True)
    assert torch.equal(plain.logits, asked.logits)
    assert model.training
    assert not model.head._forward_pre_hooks


def test_a_model_without_a_declared_head_has_no_features():
    found = compute_outputs(nn.Sequential(nn.Flatten(), nn.Linear(96, 3)), make_split(), Config())
    assert found.features is None


def test_features_that_could_not_be_read_again_are_left_out(model, monkeypatch):
    loss = make_loss(LossConfig(), np.eye(3, dtype="u1"), "multi-label", model, torch.device("cpu"))
    assert predict_split(model, make_split(), loss, Config()).features is not None
    monkeypatch.setattr("seedless.evaluate.predictions.MAX_FEATURES", 4)
    assert predict_split(model, make_split(), loss, Config()).features is None


def test_predictions_name_the_weights_of_the_receipt(tmp_path):
    run = fit_run(tmp_path / "run")
    found = open_predictions(run)
    assert found.weights == seedless.load(run, model=give()["model"]()).digest
    assert found.task == "multi-class"


def test_samples_that_occur_twice_are_two_records(tmp_path):
    given = give()
    samples, labels = given["test"]
    given["test"] = (np.concatenate([samples, samples[:3]]), np.concatenate([labels, labels[:3]]))
    run = fit_run(tmp_path / "run", given)
    ids = open_predictions(run).splits["test"].ids.tolist()
    twice = [name for name in ids if name.endswith("-2")]
    assert len(ids) == len(set(ids)) == 19
    assert sorted(name.removesuffix("-2") for name in twice) == sorted(
        name for name in ids if f"{name}-2" in ids
    )
    assert seedless.verify(run, **given).outcome == "identical"


def test_without_validation_the_thresholds_are_of_training(tmp_path):
    given = {**give(), "val": None}
    run = seedless.fit(**given, config=merge(), out=tmp_path / "run")
    assert run.claims["metrics"]["test"]["thresholds_from"] == "train"
    assert set(run.claims["metrics"]) == {"train", "test", "selected", "converged"}
    found = score_predictions(open_predictions(run.path))
    assert found == {name: run.claims["metrics"][name] for name in ("train", "test")}
    assert seedless.verify(run.path, **given).outcome == "identical"


class Overflowing(nn.Module):
    """Finite weights, and outputs that are not: only on records that were not trained on."""

    def __init__(self):
        super().__init__()
        self.last = nn.Linear(8, 3)

    def forward(self, x):
        return self.last(x) * torch.where(x.amax() > 1000, torch.inf, 1.0)


def test_outputs_that_are_not_finite_end_the_run_with_a_reason(tmp_path):
    samples, labels = make_arrays(16, 3)
    given = {**give(), "model": Overflowing, "test": (samples + 2000, labels)}
    with pytest.raises(TrainError, match="gives NaN or infinity for some records"):
        seedless.fit(**given, config=merge(), out=tmp_path / "run")


def test_probabilities_are_those_of_the_logits(model):
    from seedless.train.loss import make_loss

    split = make_split()
    labels = np.ones((10, 3), dtype=np.uint8)
    loss = make_loss(Config().loss, labels, "multi-label", model, torch.device("cpu"))
    logits = compute_outputs(model, split, Config()).logits.double()
    np.testing.assert_array_equal(predict(model, split, loss, Config()), logits.sigmoid().numpy())
