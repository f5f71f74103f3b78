"""Accelerate: what its loops repeat, and what a resume from its own checkpoints restores."""

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import seedless
from seedless.core.errors import RunError
from seedless.proof.loop_lines import read_loop
from tests.integrations.resumed import stop_and_resume

accelerate = pytest.importorskip("accelerate", reason="needs the extra `integrations`")

from seedless.integrations import record_accelerator  # noqa: E402

BATCHES = 6  # of an epoch


def train(folder, *, order="global", reseed_at=0, stop=0, save=6, resume=False, accumulate=1):
    """Train three epochs of six batches, or as far as `stop`; save after every `save` steps.

    `order`: "global" draws it from torch's generator, "epoch" from one that is seeded in each
    epoch, "storage" draws none.
    """
    accelerate.utils.set_seed(0)
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=accumulate)
    generator = torch.Generator().manual_seed(0)
    data = TensorDataset(
        torch.randn(24, 4, generator=generator), torch.randint(2, (24,), generator=generator)
    )
    own = generator if order == "epoch" else None
    network = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2))
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 18)
    loader = DataLoader(data, 4, shuffle=order != "storage", generator=own)
    network, optimizer, schedule, loader = accelerator.prepare(network, optimizer, schedule, loader)
    step = 0
    if resume:
        step = save
        accelerator.load_state(str(folder / f"step-{save}"))
    first, done = divmod(step, BATCHES)
    with record_accelerator(folder, accelerator) as trail:
        for epoch in range(first, 3):
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


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    return train(tmp_path_factory.mktemp("unbroken"))


def test_two_runs_are_identical(unbroken, tmp_path):
    assert seedless.diff(unbroken, train(tmp_path)).identical
    lines = read_loop(unbroken)[0][1:]
    assert [line["step"] for line in lines] == list(range(1, 19))
    last = lines[-1]
    assert last["rate"] == {"optimizer": [0.0]}
    assert [*last["scheduler"]] == ["scheduler"]
    assert {"model/0.weight", "optimizer/exp_avg/0.weight"} <= {*last["state"]}


def test_another_seed_is_found_at_its_step(unbroken, tmp_path):
    found = seedless.diff(unbroken, train(tmp_path, reseed_at=9))
    assert (found.identical, found.step, found.epoch) == (False, 9, 1)
    assert "batch" not in found.names


def test_accumulated_gradients_give_a_line_for_each_step(tmp_path):
    lines = read_loop(train(tmp_path, accumulate=4))[0][1:]
    assert [line["step"] for line in lines] == [1, 2, 3, 4, 5, 6]


def test_a_resume_after_an_epoch_is_exact(unbroken, tmp_path):
    assert stop_and_resume(train, tmp_path, save=BATCHES) == []
    assert seedless.diff(unbroken, tmp_path).identical


@pytest.mark.parametrize(("order", "what"), [("global", "batch"), ("storage", "loss")])
def test_a_resume_within_an_epoch_is_not_exact_by_default(order, what, tmp_path):
    """The loader draws from torch's generator when it begins: an order, and a seed for workers."""
    whole = train(tmp_path / "whole", order=order)
    (warning,) = stop_and_resume(train, tmp_path / "parts", save=BATCHES - 2, order=order)
    assert warning.startswith("step 5 differs")
    found = seedless.diff(whole, tmp_path / "parts")
    assert (found.identical, found.step) == (False, 5)
    assert ("batch" in found.names, "loss" in found.names) == (what == "batch", True)


def test_a_resume_within_an_epoch_is_exact_if_the_loader_has_a_generator(tmp_path):
    whole = train(tmp_path / "whole", order="epoch")
    assert stop_and_resume(train, tmp_path / "parts", save=BATCHES - 2, order="epoch") == []
    assert seedless.diff(whole, tmp_path / "parts").identical


def test_an_accelerator_that_prepared_nothing_is_refused(tmp_path):
    with pytest.raises(RunError, match="got one with 0 models and 0 optimizers"):
        record_accelerator(tmp_path, accelerate.Accelerator(cpu=True))
