"""Which files belong to a script."""

import pytest

from seedless.script_recorder.file_observer import is_outside


@pytest.mark.parametrize("path", ["/proc/self/maps", "/dev/null", "/etc/hosts", "/sys/kernel"])
def test_files_of_the_system_are_outside(path):
    assert is_outside(path)


@pytest.mark.parametrize("path", ["/dev/shm/staged/a.npy", "/home/me/data.csv", "/tmp/x"])
def test_data_are_not_also_in_memory(path):
    assert not is_outside(path)
