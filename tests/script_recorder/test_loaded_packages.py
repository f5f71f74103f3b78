"""The packages of a process: versions of those installed, and those that open files unseen."""

import sys
import types

import torch

from seedless.script_recorder.loaded_packages import describe_packages


def test_installed_packages_have_their_versions():
    versions = describe_packages()["versions"]
    assert versions["torch"] == str(torch.__version__)
    assert "seedless" not in versions or sys.modules["seedless"].__file__
    assert "json" not in versions  # part of Python
    assert all(type(text) is str for text in versions.values())


def test_a_native_reader_is_named_once_it_is_loaded(monkeypatch):
    monkeypatch.delitem(sys.modules, "h5py", raising=False)
    assert "h5py" not in describe_packages()["native"]
    monkeypatch.setitem(sys.modules, "h5py", types.ModuleType("h5py"))
    assert "h5py" in describe_packages()["native"]


def test_a_module_that_loads_others_when_asked_is_not_asked(monkeypatch):
    class Lazy(types.ModuleType):
        def __getattr__(self, name):
            raise AssertionError(name)

    monkeypatch.setitem(sys.modules, "lazy_module", Lazy("lazy_module"))
    assert "lazy_module" not in describe_packages()["versions"]
