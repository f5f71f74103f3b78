"""A draw is told by what it does to its generator, never by the data it was given."""

import importlib.util
from types import SimpleNamespace

import pytest

from seedless.script_recorder.draws import DrawRecorder


@pytest.fixture
def watched():
    """A copy of the module `random` whose draws are recorded, and the list of their states."""
    spec = importlib.util.find_spec("random")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    seen = []
    recorder = SimpleNamespace(is_busy=False, ended=False, before_line=[], after_fork=[])
    recorder.on_draw = [lambda generator, call, line, state: seen.append((call, state))]
    DrawRecorder(recorder).watch_python(module)
    return module, seen


def test_lists_that_differ_are_shuffled_by_equal_draws(watched):
    random, seen = watched
    for words in (["a", "b", "c"], ["c", "b", "a"]):
        random.seed(0)
        random.shuffle(words)
    assert seen[0] == seen[1]


def test_draws_after_other_draws_differ(watched):
    random, seen = watched
    random.seed(0)
    random.shuffle([1, 2, 3])
    random.shuffle([1, 2, 3])
    assert [call for call, _ in seen] == ["random.shuffle"] * 2
    assert seen[0] != seen[1]
