"""A sample's number is an integer to everyone, and carries its key to other processes."""

import pickle

import numpy as np
import torch

from seedless.core.sample_index import SampleIndex

NUMBER = SampleIndex(2, key=-5, epoch=7)


def test_lists_arrays_and_tensors_take_it_as_an_integer():
    assert [0, 1, 20][NUMBER] == np.array([0, 1, 20])[NUMBER] == torch.tensor([0, 1, 20])[NUMBER]
    assert {2: "found"}[NUMBER] == "found"
    assert NUMBER == 2
    assert f"{NUMBER:03d}" == "002"


def test_key_and_epoch_are_sent_with_it():
    sent = pickle.loads(pickle.dumps([NUMBER]))[0]
    assert (sent, sent.key, sent.epoch) == (2, -5, 7)
    assert type(sent) is SampleIndex
    assert not hasattr(NUMBER + 0, "key")  # arithmetic gives a plain integer
