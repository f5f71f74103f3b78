"""A run sets threads and flags for itself, and restores those of the caller afterwards."""

from contextlib import contextmanager

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

import seedless
from seedless.analysis.attribute import attribute_run
from seedless.core.errors import ConfigError
from seedless.numerics.determinism import make_deterministic
from seedless.numerics.environment import capture_environment
from seedless.numerics.kernel_choice import switch
from seedless.numerics.saved_flags import preserve_flags
from seedless.runs.model_preparation import move_model
from tests.small import IMAGES, train_small
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


class Attending(nn.Module):
    """A convolution and attention, whose kernels torch chooses by switches and strides."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 24, 3, padding=1)
        self.body = nn.Conv2d(24, 24, 3, padding=1)
        self.attention = nn.MultiheadAttention(24, 4, batch_first=True)
        self.head = nn.Linear(24, 3)

    def forward(self, x):
        rows = self.body(self.first(x.view(-1, 1, 4, 2))).flatten(2).transpose(1, 2)
        return self.head(self.attention(rows, rows, rows, need_weights=False)[0].mean(1))


@contextmanager
def change_default():
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


MODES = {
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "no gradients": torch.no_grad,
    "inference mode": torch.inference_mode,
    "another dtype": change_default,
    "without oneDNN": lambda: switch({"onednn": False}),
    "without the fast path": lambda: switch({"attention fast path": False}),
    "another attention": lambda: sdpa_kernel(SDPBackend.MATH),
}


@pytest.fixture(scope="module")
def attending(tmp_path_factory):
    with preserve_flags():
        folder = tmp_path_factory.mktemp("attending") / "run"
        return seedless.fit(**{**give(), "model": Attending}, config=merge(), out=folder)


def read_bits(run):
    return {name: run.claims[name] for name in ("weights", "predictions", "trail", "metrics")}


@pytest.mark.parametrize("mode", MODES)
def test_no_mode_around_a_run_changes_a_bit(attending, mode, tmp_path):
    given = {**give(), "model": Attending}
    samples = give()["test"][0]
    expected = attending.predict(samples)
    with MODES[mode]():
        run = seedless.fit(**given, config=merge(), out=tmp_path / "run")
        assert read_bits(run) == read_bits(attending)
        assert np.array_equal(run.predict(samples), expected)
        assert seedless.verify(run, **given).outcome == "identical"


def test_the_modes_do_change_bits():
    """[Negative control] Without a run around them, at least these have other kernels."""
    torch.manual_seed(0)
    model, x = Attending().eval(), torch.randn(16, 8)
    with torch.no_grad():
        plain = model(x)
        for mode in ("autocast", "without the fast path"):
            with MODES[mode]():
                assert not torch.equal(model(x).float(), plain), mode


def make_strided():
    """The same model with weights that lie in memory in another order."""
    model = Attending()
    model.body.weight.data = model.body.weight.data.mT.contiguous().mT
    model.head.weight.data = model.head.weight.data.t().contiguous().t()
    return model


@pytest.mark.parametrize(
    "make", [make_strided, lambda: Attending().to(memory_format=torch.channels_last)]
)
def test_the_strides_of_the_weights_change_no_bit(attending, make, tmp_path):
    assert make().body.weight.stride() != Attending().body.weight.stride()
    given = {**give(), "model": make}
    run = seedless.fit(**given, config=merge(), out=tmp_path / "run")
    assert read_bits(run) == read_bits(attending)
    samples = give()["test"][0]
    loaded = seedless.load(attending.path, model=make())
    assert np.array_equal(loaded.predict(samples), attending.predict(samples))


def test_weights_that_share_memory_share_it_afterwards():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Linear(8, 3, bias=False)
            self.decoder = nn.Linear(3, 8, bias=False)
            self.decoder.weight = nn.Parameter(self.encoder.weight.t())

    model = Tied()
    move_model(model, torch.device("cpu"), images=False)
    with torch.no_grad():
        model.encoder.weight.fill_(7)
    assert (model.decoder.weight == 7).all()


def test_looking_at_a_run_puts_flags_back_too(tmp_path):
    with preserve_flags():
        run = train_small(tmp_path / "run", *IMAGES)
    before = look()
    seedless.report(run, out=tmp_path / "page.html")
    assert look() == before
    seedless.evaluate(run, data="simulated-images")
    assert look() == before
    attribute_run(run, records=2)
    assert look() == before
