"""A run sets threads and flags for itself, and restores those of the caller afterwards."""

import pytest
import torch
from torch import nn

import seedless
from seedless.core.errors import ConfigError
from seedless.numerics.determinism import make_deterministic, preserve_flags
from seedless.numerics.environment import capture_environment
from tests.tiny import give, merge

PARTS = ("threads", "flags", "precision")


class Watching(nn.Module):
    """Notes what its forward passes run under."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 3)
        self.found = []

    def forward(self, x):
        self.found.append(look())
        return self.body(x)


def look():
    seen = capture_environment()
    return {**{part: seen[part] for part in PARTS}, "old": torch.backends.cudnn.allow_tf32}


def loosen():
    """What someone may have chosen: two threads, warnings only, autotuning, TF32, flushing."""
    make_deterministic(threads=2, tf32=True)
    torch.set_deterministic_debug_mode("warn")
    torch.backends.cudnn.deterministic = False
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = True
    torch.set_flush_denormal(True)


@pytest.fixture(params=[loosen, lambda: None], ids=["loosened", "as they are"])
def before(request):
    with preserve_flags():
        request.param()
        yield look()


def test_fit_and_verify_put_back_what_they_set(before, tmp_path):
    given = {**give(), "model": Watching()}
    seedless.fit(**given, config=merge(), out=tmp_path / "run")
    assert look() == before
    within = given["model"].found
    assert {seen["threads"]["intraop"] for seen in within} == {1}
    assert all(seen["flags"]["deterministic_algorithms"] for seen in within)
    assert {value for seen in within for value in seen["precision"].values()} == {"ieee"}
    again = {**given, "model": Watching}
    assert seedless.verify(tmp_path / "run", **again).outcome == "identical"
    assert look() == before


def test_a_run_that_fails_puts_them_back_too(before, tmp_path):
    model = nn.Linear(8, 2)  # the labels have three classes
    with pytest.raises(ConfigError, match="3 logits"):
        seedless.fit(**{**give(), "model": model}, config=merge(), out=tmp_path / "run")
    assert look() == before
