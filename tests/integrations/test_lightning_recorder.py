"""Lightning: what a resume from its own checkpoints restores, and what an exception leaves."""

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

import seedless
from tests.integrations.parts import BATCHES
from tests.integrations.resumed import stop_and_resume

lightning = pytest.importorskip("lightning.pytorch", reason="needs the extra `integrations`")
from seedless.integrations import LightningRecorder  # noqa: E402
from tests.integrations.lightning_loop import Classifier, train  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # what Lightning says of loaders and workers


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
