"""Digests depend on bytes, dtype and shape, and on nothing else."""

from collections import namedtuple

import numpy as np
import pytest
import torch

from seedless.script_recorder.device_hash import PIECE_WORDS, hash_on_device
from seedless.script_recorder.pending import PendingNumber, is_pending, resolve
from seedless.script_recorder.tensor_digest import PendingDigest, digest_tensors, digest_value

Pair = namedtuple("Pair", "x y")


class Holder:
    def __init__(self, tensor, note):
        self.tensor, self.note = tensor, note


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (torch.zeros(2), torch.zeros(3)),
        (torch.zeros(2), torch.zeros(2, 1)),
        (torch.zeros(2), torch.zeros(2, dtype=torch.float64)),
        (torch.tensor([0.0]), torch.tensor([-0.0])),
        (torch.tensor([1.0, 2.0]), torch.tensor([2.0, 1.0])),
        ({"a": torch.ones(1)}, {"b": torch.ones(1)}),
        ([torch.ones(2)], [torch.ones(1), torch.ones(1)]),
        ("text", "texts"),
        (1, 1.0),
        (np.zeros(2), np.ones(2)),
        (np.array(["a", None], object), np.array(["b", None], object)),
        (torch.eye(2).to_sparse(), torch.ones(2, 2).to_sparse()),
        (Holder(torch.zeros(1), ""), Holder(torch.ones(1), "")),
    ],
)
def test_different_values_have_different_digests(one, other):
    assert digest_value(one) != digest_value(other)
    assert digest_value(one) == digest_value(one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Pair(1, 2), (1, 2)),
        ({3, 1, 2}, {2, 3, 1}),
        (Holder(torch.zeros(1), "a time"), Holder(torch.zeros(1), "another")),
        (torch.tensor([float("nan")]), torch.tensor([float("nan")])),
        (torch.arange(4.0)[::2], torch.tensor([0.0, 2.0])),
        (torch.tensor([1j]).conj(), torch.tensor([1j]).conj().clone()),
        (torch.ones(2, 3).T, torch.ones(3, 2)),
    ],
)
def test_equal_values_have_equal_digests(one, other):
    assert digest_value(one) == digest_value(other)


def test_tensors_without_gradients_count():
    some = torch.ones(2)
    assert digest_tensors([some, None]) != digest_tensors([None, some])


def test_digests_draw_from_no_generator():
    before = torch.get_rng_state()
    digest_value([torch.randn(0), torch.ones(3)])
    hash_on_device([torch.ones(3)])
    assert torch.equal(before, torch.get_rng_state())


def hash_by_hand(words, multipliers):
    return sum(w * m for w, m in zip(words, multipliers, strict=True)) % 2**64


def test_the_hash_of_a_device_is_its_formula():
    """On the CPU, with Python's integers as reference."""
    from seedless.script_recorder.device_hash import _ODD, _make_multipliers

    values = torch.arange(-3, 9)
    multipliers = _make_multipliers(torch.device("cpu"))[: len(values)].tolist()
    assert all(number % 2 for number in multipliers)
    assert len(set(multipliers)) == len(multipliers)
    expected = hash_by_hand(values.tolist(), multipliers)
    assert hash_on_device([values]).item() % 2**64 == expected
    # Two tensors are hashed as one sequence of bytes, padded to whole words.
    odd = torch.tensor([1, 2, 3], dtype=torch.uint8)
    padded = torch.tensor([1, 2, 3, 0, 0, 0, 0, 0], dtype=torch.uint8)
    assert hash_on_device([odd]) == hash_on_device([padded])
    assert hash_on_device([values[:5], values[5:]]) == hash_on_device([values])
    # Pieces are combined in order.
    long = torch.zeros(PIECE_WORDS + 1, dtype=torch.int64)
    long[0], long[-1] = 5, 7
    first = _make_multipliers(torch.device("cpu"))[0].item()
    assert hash_on_device([long]).item() % 2**64 == (5 * first * _ODD + 7 * first) % 2**64


def test_a_change_of_any_bit_changes_the_hash_of_a_device():
    values = torch.arange(64, dtype=torch.int64)
    plain = hash_on_device([values]).item()
    for index in range(0, 64, 7):
        for bit in range(0, 63, 9):
            changed = values.clone()
            changed[index] ^= 1 << bit
            assert hash_on_device([changed]).item() != plain


def test_numbers_on_a_device_are_read_when_the_line_is_written():
    part = torch.tensor(7)
    line = {
        "kind": "step",
        "pending": True,
        "values": {"weights": PendingDigest("text", [part]), "loss": ["plain"]},
        "shown": {"loss": [PendingNumber(torch.tensor(0.5))]},
    }
    assert is_pending(line)
    (resolved,) = resolve([line])
    assert not is_pending(resolved)
    assert resolved["shown"] == {"loss": [0.5]}
    assert resolved["values"]["weights"] == PendingDigest("text", [part]).resolve([7])
    assert resolved["values"]["weights"] != PendingDigest("text", [part]).resolve([8])
