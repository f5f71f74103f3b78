"""Ignite and MONAI: what a resume from their checkpoints restores, and MONAI's own trainer."""

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

import seedless
from seedless.proof.loop_lines import read_loop
from tests.integrations.parts import BATCHES
from tests.integrations.resumed import stop_and_resume

pytest.importorskip("ignite", reason="needs the extra `integrations`")
from ignite.engine import DeterministicEngine, Events
from ignite.engine.deterministic import ReproducibleBatchSampler

from seedless.integrations import IgniteRecorder
from tests.integrations.ignite_loop import make_parts, train

pytestmark = pytest.mark.filterwarnings("ignore")  # MONAI and Ignite use what torch deprecates


@pytest.fixture(scope="module")
def unbroken(train_unbroken):
    return train_unbroken("ignite")


@pytest.mark.parametrize("save", [BATCHES, BATCHES - 2])
def test_a_resume_is_not_exact_with_a_plain_engine(unbroken, save, tmp_path):
    """It saves no generator, and the loader begins anew."""
    (warning,) = stop_and_resume(train, tmp_path, save=save)
    assert warning.startswith(f"step {save + 1} differs")
    found = seedless.diff(unbroken, tmp_path)
    assert (found.identical, found.step) == (False, save + 1)
    assert "batch" in found.names


def test_a_resume_after_an_epoch_is_exact_with_a_deterministic_engine(tmp_path):
    whole, parts = train(tmp_path / "whole", engine=DeterministicEngine), tmp_path / "parts"
    assert stop_and_resume(train, parts, save=BATCHES, engine=DeterministicEngine) == []
    assert seedless.diff(whole, parts).identical


@pytest.mark.parametrize("early", [False, True])
def test_within_an_epoch_it_depends_on_when_the_order_is_drawn(early, tmp_path, monkeypatch):
    """The engine restores the generators before its sampler draws the order, and not after."""

    def draw_at_once(sampler):
        sampler.setup_batch_indices()
        return iter(sampler.batch_indices)

    if early:
        monkeypatch.setattr(ReproducibleBatchSampler, "__iter__", draw_at_once)
    whole, parts = train(tmp_path / "whole", engine=DeterministicEngine), tmp_path / "parts"
    warned = stop_and_resume(train, parts, save=BATCHES - 2, engine=DeterministicEngine)
    found = seedless.diff(whole, parts)
    assert (warned == [], found.identical) == (early, early)
    assert early or (found.step == BATCHES - 1 and "batch" in found.names)


def test_exceptions_of_the_user_still_end_the_run(tmp_path):
    with pytest.raises(OSError, match="no data"):
        train(tmp_path, fail_at=4)
    assert [line["step"] for line in read_loop(tmp_path)[0][1:]] == [1, 2, 3]


def train_monai(folder, reseed_at=0):
    """Train two epochs with MONAI's trainer, whose engine, batches and outputs are its own."""
    engines = pytest.importorskip("monai.engines", reason="needs the extra `integrations`")
    torch.manual_seed(0)
    network, optimizer, _, loader = make_parts()
    samples = [{"image": image, "label": label} for image, label in loader.dataset]
    trainer = engines.SupervisedTrainer(
        device=torch.device("cpu"),
        max_epochs=2,
        train_data_loader=DataLoader(samples, 4, shuffle=True),
        network=network,
        optimizer=optimizer,
        loss_function=nn.CrossEntropyLoss(),
        train_handlers=[IgniteRecorder(folder, network, optimizer)],
    )

    @trainer.on(Events.ITERATION_STARTED)
    def reseed():
        if trainer.state.iteration == reseed_at:
            torch.manual_seed(99)

    trainer.run()
    return folder


def test_monai_runs_are_recorded_and_compared(tmp_path):
    a, b = train_monai(tmp_path / "a"), train_monai(tmp_path / "b")
    assert seedless.diff(a, b).identical
    lines = read_loop(a)[0][1:]
    assert [line["step"] for line in lines] == list(range(1, 13))
    assert all(isinstance(line["loss"], float) for line in lines)
    found = seedless.diff(a, train_monai(tmp_path / "c", reseed_at=9))
    assert (found.identical, found.step, found.epoch) == (False, 9, 2)
    assert "batch" not in found.names
