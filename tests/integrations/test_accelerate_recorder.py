"""Accelerate: what a resume from its own checkpoints restores, and what is refused."""

import pytest

import seedless
from seedless.core.errors import RunError
from tests.integrations.parts import BATCHES
from tests.integrations.resumed import stop_and_resume

accelerate = pytest.importorskip("accelerate", reason="needs the extra `integrations`")
from seedless.integrations import record_accelerator  # noqa: E402
from tests.integrations.accelerate_loop import train  # noqa: E402


@pytest.fixture(scope="module")
def unbroken(train_unbroken):
    return train_unbroken("accelerate")


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
