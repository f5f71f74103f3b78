"""Seeds of numpy's older generators: what was given is recorded, and nothing else changes."""

import copy
import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from seedless.script_recorder.seed_calls import SeedRecorder


@pytest.fixture
def watched(monkeypatch):
    """A copy of the names of `numpy.random` whose seeds are recorded, and the list of records."""
    names = SimpleNamespace(**vars(np.random))  # imports the modules below it
    entropy = sys.modules["numpy.random.bit_generator"]
    monkeypatch.setattr(entropy, "randbits", entropy.randbits)  # put back when the test ends
    seen = []
    file = SimpleNamespace(write=seen.append)
    recorder = SimpleNamespace(settings=SimpleNamespace(seeds={}), file=file)
    SeedRecorder(recorder).watch_numpy(names)
    return names, seen


def test_a_seeded_state_is_not_taken_for_one_from_entropy(watched):
    random, seen = watched
    random.RandomState(3)
    random.RandomState(np.int64(4))
    random.RandomState()
    found = [(line["call"], line["value"]) for line in seen]
    assert found == [("np.random.RandomState", value) for value in ("3", "4", None)]


def test_a_recorded_state_is_numpys_own_in_every_other_respect(watched):
    random, _ = watched
    state, plain = random.RandomState(3), np.random.RandomState(3)
    assert state.rand(4).tolist() == plain.rand(4).tolist()
    for twin in (pickle.loads(pickle.dumps(state)), copy.deepcopy(state)):
        assert isinstance(twin, random.RandomState)
        assert twin.rand() == plain.rand()
        plain.set_state(state.get_state())

    class Own(random.RandomState):
        pass

    assert isinstance(np.random.mtrand._rand, random.RandomState)
    assert isinstance(Own(1), Own)
    assert issubclass(Own, np.random.RandomState)
    assert not isinstance(state, Own)
    assert not isinstance(3, random.RandomState)
