"""Two whole runs on a CUDA device that part by TF32 alone: the first matrix product is named."""

import pytest

import seedless
from seedless.core.config import parse_config
from seedless.runs.train import train_run

pytestmark = pytest.mark.gpu

PRODUCTS = ("aten.mm.", "aten.addmm.", "aten.bmm.", "aten.baddbmm.")


@pytest.fixture(autouse=True)
def _leave_no_flags():
    yield
    seedless.make_deterministic(threads=4)


def make(out, precision):
    settings = {
        "data": {"name": "simulated", "preset": "tiny"},
        "model": {"name": "conformer", "small": True},
        "order": {"batch_size": 32},
        "train": {"epochs": 1},
        "execution": {"device": "cuda", "threads": 4, "precision": precision},
    }
    return train_run(parse_config(settings), out).path


def test_tf32_is_found_at_a_matrix_product(tmp_path):
    full, fast = make(tmp_path / "fp32", "fp32"), make(tmp_path / "tf32", "tf32")
    found = seedless.diff(full, fast, locate=True)
    assert [mismatch.field for mismatch in found.settings] == ["execution.precision"]
    assert "precision.cuda matmul" in {mismatch.field for mismatch in found.environment}
    assert (found.epoch, found.step, found.reproduced) == (1, 1, (True, True))
    assert found.tensors == ()
    assert found.finding.kind == "op"
    assert found.finding.op.startswith(PRODUCTS)
    assert found.finding.phase == "forward"
    assert found.finding.downstream > 0


def test_the_same_precision_twice_is_identical(tmp_path):
    runs = [make(tmp_path / name, "tf32") for name in "ab"]
    assert seedless.diff(*runs, locate=True).identical
