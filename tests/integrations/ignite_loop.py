"""A training with Ignite that can be ended, resumed and disturbed."""

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

from tests.integrations.parts import EPOCHS, make_data, make_network, make_optimizer

pytest.importorskip("ignite", reason="needs the extra `integrations`")
from ignite.engine import Engine, Events, supervised_training_step
from ignite.handlers import Checkpoint, DiskSaver, global_step_from_engine

from seedless.integrations import IgniteRecorder


def make_parts():
    """The network, the optimizer, the schedule and a loader of six batches."""
    network = make_network()
    return network, *make_optimizer(network), DataLoader(make_data(), 4, shuffle=True)


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
    trainer.run(loader, max_epochs=EPOCHS)
    return folder
