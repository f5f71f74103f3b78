"""The cache folder: an override, the system's rule, and machines without home or platformdirs."""

import os
import pwd
import sys

import pytest

from seedless.core.cache_location import find_cache_folder


@pytest.fixture(params=["with platformdirs", "without"], autouse=True)
def no_settings(request, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("SEEDLESS_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    if request.param == "without":
        monkeypatch.setitem(sys.modules, "platformdirs", None)


def test_the_environment_decides_first(monkeypatch, tmp_path):
    assert find_cache_folder() == tmp_path / ".cache" / "seedless"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert find_cache_folder() == tmp_path / "xdg" / "seedless"
    monkeypatch.setenv("SEEDLESS_CACHE", "~/mine")
    assert find_cache_folder() == tmp_path / "mine"
    assert list(tmp_path.iterdir()) == []  # nothing is created


def test_no_home_folder_is_an_error_and_not_a_folder_named_tilde(monkeypatch):
    def unknown(_):
        raise KeyError("uid not found")

    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert os.path.expanduser("~") == "~"
    with pytest.raises(RuntimeError, match="home"):
        find_cache_folder()
