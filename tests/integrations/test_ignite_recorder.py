"""Ignite and MONAI: what their runs repeat, and what a resume from their checkpoints restores."""

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import seedless
from seedless.proof.loop_lines import read_loop
from tests.integrations.resumed import stop_and_resume

pytest.importorskip("ignite", reason="needs the extra `integrations`")
from ignite.engine import DeterministicEngine, Engine, Events, supervised_training_step
from ignite.engine.deterministic import ReproducibleBatchSampler
from ignite.handlers import Checkpoint, DiskSaver, global_step_from_engine

from seedless.integrations import IgniteRecorder

pytestmark = pytest.mark.filterwarnings("ignore")  # MONAI and Ignite use what torch deprecates
BATCHES = 6  # of an epoch


def make_parts():
    """The network, the optimizer, the schedule and a loader of six batches."""
    generator = torch.Generator().manual_seed(0)
    data = TensorDataset(
        torch.randn(24, 4, generator=generator), torch.randint(2, (24,), generator=generator)
    )
    network = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2))
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 18)
    return network, optimizer, schedule, DataLoader(data, 4, shuffle=True)


def train(
    folder, *, engine=Engine, reseed_at=0, stop=0, save=6, resume=False, accumulate=1, fail_at=0
):
    """Train three epochs of six batches, or as far as `stop`; save after every `save` steps."""
    torch.manual_seed(0)
    network, optimizer, schedule, loader = make_parts()
    update = supervised_training_step(
        network, optimizer, nn.CrossEntropyLoss(), gradient_accumulation_steps=accumulate
    )
    trainer = engine(update)

    @trainer.on(Events.ITERATION_STARTED)
    def reseed():
        if trainer.state.iteration == reseed_at:
            torch.manual_seed(99)
        if trainer.state.iteration == fail_at:
            raise OSError("no data")

    trainer.add_event_handler(Events.ITERATION_COMPLETED, lambda: schedule.step())
    recorder = IgniteRecorder(folder, network, optimizer, scheduler=schedule)
    recorder.attach(trainer)
    saved = {"engine": trainer, "network": network, "optimizer": optimizer, "schedule": schedule}
    saver = Checkpoint(
        saved,
        DiskSaver(str(folder), require_empty=False),
        n_saved=None,
        global_step_transform=global_step_from_engine(trainer, Events.ITERATION_COMPLETED),
    )
    trainer.add_event_handler(Events.ITERATION_COMPLETED(every=save), saver)
    if stop:
        trainer.add_event_handler(Events.ITERATION_COMPLETED(once=stop), trainer.terminate)
    if resume:
        state = torch.load(folder / f"checkpoint_{save}.pt", weights_only=False)
        Checkpoint.load_objects(saved, state)
    trainer.run(loader, max_epochs=3)
    return folder


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    return train(tmp_path_factory.mktemp("unbroken"))


def test_two_runs_are_identical(unbroken, tmp_path):
    assert seedless.diff(unbroken, train(tmp_path)).identical
    lines = read_loop(unbroken)[0][1:]
    assert [line["step"] for line in lines] == list(range(1, 19))
    assert [line["epoch"] for line in lines] == 6 * [1] + 6 * [2] + 6 * [3]
    assert isinstance(lines[-1]["loss"], float)
    assert [*lines[-1]["scheduler"]] == ["scheduler"]
    assert {"model/0.weight", "optimizer/exp_avg/0.weight"} <= {*lines[-1]["state"]}


def test_another_seed_is_found_at_its_step(unbroken, tmp_path):
    found = seedless.diff(unbroken, train(tmp_path, reseed_at=9))
    assert (found.identical, found.step, found.epoch) == (False, 9, 2)
    assert "batch" not in found.names


def test_accumulated_gradients_give_a_line_for_each_step(tmp_path):
    lines = read_loop(train(tmp_path, accumulate=3))[0][1:]
    assert [line["step"] for line in lines] == [3, 6, 9, 12, 15, 18]
    assert all(len(line["loss"]) == 3 for line in lines)


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
