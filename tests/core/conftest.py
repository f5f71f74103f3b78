"""What the tests of `core` share."""

import pytest


@pytest.fixture
def add_module(tmp_path, monkeypatch):
    """Write a module that workers can import."""
    folder = tmp_path / "modules"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)

    def add(name, text):
        (folder / f"{name}.py").write_text(text)

    return add
