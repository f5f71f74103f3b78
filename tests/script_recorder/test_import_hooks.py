"""A function runs once, after a module is imported, and the import is otherwise as before."""

import importlib
import importlib.machinery
import sys

import pytest

from seedless.script_recorder.import_hooks import call_after_import


@pytest.fixture
def make_module(tmp_path, monkeypatch):
    """Write modules that can be imported; afterwards they and our finder are gone."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before, path = set(sys.modules), list(sys.meta_path)

    def make(name, text="VALUE = 1\n"):
        (tmp_path / f"{name}.py").write_text(text)
        importlib.invalidate_caches()
        return name

    yield make
    sys.meta_path[:] = path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_functions_run_once_after_the_import(make_module):
    name = make_module("imported_later")
    seen = []
    for number in (1, 2):
        call_after_import(name, lambda module, number=number: seen.append((number, module.VALUE)))
    assert seen == []
    module = importlib.import_module(name)
    assert seen == [(1, 1), (2, 1)]
    assert type(module.__loader__) is importlib.machinery.SourceFileLoader
    importlib.reload(module)
    assert len(seen) == 2


def test_a_module_that_is_imported_already_is_seen_at_once(make_module):
    module = importlib.import_module(make_module("imported_before"))
    seen = []
    call_after_import("imported_before", seen.append)
    assert seen == [module]


def test_a_module_that_fails_fails_as_before(make_module):
    name = make_module("failing", "raise KeyError('as before')\n")
    seen = []
    call_after_import(name, seen.append)
    with pytest.raises(KeyError, match="as before"):
        importlib.import_module(name)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("there_is_no_such_module")
    assert seen == []
