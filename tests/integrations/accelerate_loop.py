"""A training with Accelerate that can be ended, resumed and disturbed."""

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

from tests.integrations.parts import BATCHES, EPOCHS, make_data, make_network, make_optimizer

accelerate = pytest.importorskip("accelerate", reason="needs the extra `integrations`")

from seedless.integrations import record_accelerator  # noqa: E402


def train(folder, *, order="global", reseed_at=0, stop=0, save=6, resume=False, accumulate=1):
    """Train three epochs of six batches, or as far as `stop`; save after every `save` steps.

    `order`: "global" draws it from torch's generator, "epoch" from one that is seeded in each
    epoch, "storage" draws none.
    """
    accelerate.utils.set_seed(0)
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=accumulate)
    generator = torch.Generator()
    own = generator if order == "epoch" else None
    network = make_network()
    optimizer, schedule = make_optimizer(network)
    loader = DataLoader(make_data(), 4, shuffle=order != "storage", generator=own)
    network, optimizer, schedule, loader = accelerator.prepare(network, optimizer, schedule, loader)
    step = 0
    if resume:
        step = save
        accelerator.load_state(str(folder / f"step-{save}"))
    first, done = divmod(step, BATCHES)
    with record_accelerator(folder, accelerator) as trail:
        for epoch in range(first, EPOCHS):
            generator.manual_seed(epoch)
            skipped = epoch == first and done > 0
            for batch in accelerator.skip_first_batches(loader, done) if skipped else loader:
                if step + 1 == reseed_at:
                    torch.manual_seed(99)
                with accelerator.accumulate(network):
                    loss = nn.functional.cross_entropy(network(batch[0]), batch[1])
                    accelerator.backward(loss)
                    optimizer.step()
                    schedule.step()
                    optimizer.zero_grad()
                if accelerator.sync_gradients:
                    step += 1
                    trail.step(step=step, epoch=epoch, loss=loss, batch=batch)
                    if step % save == 0:
                        accelerator.save_state(str(folder / f"step-{step}"))
                    if step == stop:
                        return folder
    return folder
