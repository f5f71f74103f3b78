"""Lightning: what its runs repeat, and what a resume from its own checkpoints restores."""

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import seedless
from seedless.proof.loop_lines import read_loop
from tests.integrations.resumed import stop_and_resume

lightning = pytest.importorskip("lightning.pytorch", reason="needs the extra `integrations`")
from lightning.pytorch.callbacks import ModelCheckpoint  # noqa: E402

from seedless.integrations import LightningRecorder  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # what Lightning says of loaders and workers
BATCHES = 6  # of an epoch


class Classifier(lightning.LightningModule):
    def __init__(self, dropout, reseed_at):
        super().__init__()
        self.network = nn.Sequential(nn.Linear(4, 8), nn.Dropout(dropout), nn.Linear(8, 2))
        self.reseed_at = reseed_at

    def training_step(self, batch, index):
        if self.global_step + 1 == self.reseed_at:
            torch.manual_seed(99)
        inputs, labels = batch
        return nn.functional.cross_entropy(self.network(inputs), labels)

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=0.01)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 18)
        return [optimizer], [{"scheduler": schedule, "interval": "step"}]


def train(folder, *, dropout=0.5, shuffle=True, reseed_at=0, stop=-1, save=6, resume=False, **more):
    """Train three epochs of six batches, or as far as `stop`; save after every `save` steps."""
    lightning.seed_everything(0, verbose=False)
    generator = torch.Generator().manual_seed(0)
    data = TensorDataset(
        torch.randn(24, 4, generator=generator), torch.randint(2, (24,), generator=generator)
    )
    trainer = lightning.Trainer(
        max_epochs=3,
        max_steps=stop,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[
            LightningRecorder(folder),
            ModelCheckpoint(folder, filename="{step}", every_n_train_steps=save, save_top_k=-1),
        ],
        **more,
    )
    checkpoint = folder / f"step={save}.ckpt" if resume else None
    model = Classifier(dropout, reseed_at)
    trainer.fit(model, DataLoader(data, 4, shuffle=shuffle), ckpt_path=checkpoint)
    return folder


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    return train(tmp_path_factory.mktemp("unbroken"))


def test_two_runs_are_identical(unbroken, tmp_path):
    assert seedless.diff(unbroken, train(tmp_path)).identical
    lines = read_loop(unbroken)[0][1:]
    assert [line["step"] for line in lines] == list(range(1, 19))
    assert [line["epoch"] for line in lines] == 6 * [0] + 6 * [1] + 6 * [2]
    last = lines[-1]
    assert last["rate"] == {"optimizer": [0.0]}
    assert isinstance(last["loss"], float)
    assert {"python", "numpy", "torch"} <= {*last["generators"]}
    assert {"model/network.0.weight", "optimizer/exp_avg/network.0.weight"} <= {*last["state"]}


def test_another_seed_is_found_at_its_step(unbroken, tmp_path):
    found = seedless.diff(unbroken, train(tmp_path, reseed_at=9))
    assert (found.identical, found.step, found.epoch) == (False, 9, 1)
    assert "batch" not in found.names


def test_accumulated_gradients_give_a_line_for_each_step(tmp_path):
    lines = read_loop(train(tmp_path, accumulate_grad_batches=4))[0][1:]
    assert [line["step"] for line in lines] == [1, 2, 3, 4, 5, 6]
    assert [len(line["loss"]) for line in lines] == [4, 2, 4, 2, 4, 2]


def test_a_resume_after_an_epoch_is_exact_if_nothing_draws(tmp_path):
    settings = {"dropout": 0, "shuffle": False, "save": BATCHES}
    whole = train(tmp_path / "whole", **settings)
    assert stop_and_resume(train, tmp_path / "parts", **settings) == []
    assert seedless.diff(whole, tmp_path / "parts").identical


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"dropout": 0.5, "shuffle": False, "save": BATCHES}, "loss"),  # generators not restored
        ({"dropout": 0, "shuffle": True, "save": BATCHES}, "batch"),  # another permutation
        ({"dropout": 0, "shuffle": False, "save": BATCHES - 2}, "batch"),  # loader begins anew
    ],
)
def test_other_resumes_are_not_exact(settings, what, tmp_path):
    whole = train(tmp_path / "whole", **settings)
    (warning,) = stop_and_resume(train, tmp_path / "parts", **settings)
    assert warning.startswith(f"step {settings['save'] + 1} differs")
    found = seedless.diff(whole, tmp_path / "parts")
    assert (found.identical, found.step) == (False, settings["save"] + 1)
    assert what in found.names
    assert ("batch" in found.names) == (what == "batch")
    assert "rate" not in found.names


def test_the_trail_is_closed_after_an_exception(tmp_path):
    class Broken(Classifier):
        def training_step(self, batch, index):
            raise OSError("no data")

    trainer = lightning.Trainer(
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[LightningRecorder(tmp_path)],
    )
    with pytest.raises(OSError, match="no data"):
        trainer.fit(Broken(0, 0), DataLoader(torch.zeros(4, 4), 4))
    seedless.record(tmp_path, nn.Linear(1, 1)).close()  # an open trail would be refused
