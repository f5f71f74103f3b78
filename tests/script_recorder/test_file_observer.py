"""Which files belong to a script."""

import json

import pytest

from seedless.script_recorder.file_observer import FileObserver, is_outside


@pytest.mark.parametrize("path", ["/proc/self/maps", "/dev/null", "/etc/hosts", "/sys/kernel"])
def test_files_of_the_system_are_outside(path):
    assert is_outside(path)


@pytest.mark.parametrize("path", ["/dev/shm/staged/a.npy", "/home/me/data.csv", "/tmp/x"])
def test_data_are_not_also_in_memory(path):
    assert not is_outside(path)


def test_checkpoints_are_observed_whatever_their_ending():
    observer = object.__new__(FileObserver)  # without its hook, which would stay for ever
    observer._own = ("/home/me/records", "/home/me/settings.json")
    endings = ("pt", "pth", "ckpt", "safetensors", "csv")
    assert all(observer._is_wanted(f"/home/me/last.{ending}") for ending in endings)
    others = ("/home/me/records/a", "/home/me/settings.json", "/home/me/train.py", json.__file__)
    assert not any(map(observer._is_wanted, others))
