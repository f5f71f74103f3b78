"""A torch newer than what was tested is named once, and not refused."""

import re
import warnings

import pytest
import torch

from seedless.numerics import tested_versions
from seedless.numerics.determinism import make_deterministic
from seedless.numerics.saved_flags import preserve_flags
from seedless.portable.mode import portable
from tests.conftest import ROOT


@pytest.fixture(autouse=True)
def _in_a_new_process():
    tested_versions.warn_about_newer_torch.cache_clear()
    with preserve_flags():
        yield
    tested_versions.warn_about_newer_torch.cache_clear()


def start_portable() -> None:
    with portable():
        pass


@pytest.mark.parametrize("start", [lambda: make_deterministic(threads=1), start_portable])
def test_a_newer_release_is_named_once(monkeypatch, start):
    monkeypatch.setattr(tested_versions, "NEWEST_TESTED_TORCH", (2, 0))
    with pytest.warns(UserWarning, match=r"newer than 2\.0, the newest release tested"):
        start()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        start()


def test_a_tested_release_is_not_named(monkeypatch):
    monkeypatch.setattr(torch, "__version__", "2.15.3+cu132")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tested_versions.warn_about_newer_torch()


def test_the_package_takes_every_release_from_the_oldest_tested_one():
    text = (ROOT / "pyproject.toml").read_text()
    oldest = ".".join(map(str, tested_versions.OLDEST_TESTED_TORCH))
    assert re.findall(r'"(torch>=[^"]*)"', text) == [f"torch>={oldest}"]
