"""The fast hash sees every byte, at any address, and says the same for the same bytes."""

import pytest
import torch

from seedless.script_recorder.memory_hash import PIECE_WORDS, WORD_BYTES, hash_memory

PIECE = PIECE_WORDS * WORD_BYTES


def hash_bytes(content):
    return hash_memory(content.data_ptr(), content.numel())


@pytest.mark.parametrize("size", [0, 1, 8, 13, PIECE, PIECE + 5, 3 * PIECE + 8])
def test_a_change_of_any_one_byte_changes_it(size):
    content = torch.arange(size, dtype=torch.int64).to(torch.uint8)
    before = hash_bytes(content)
    assert hash_bytes(content.clone()) == before
    for place in {0, size // 3, size - 8, size - 1} & set(range(size)):
        content[place] ^= 128
        assert hash_bytes(content) != before
        content[place] ^= 128


def test_order_and_length_count():
    content = torch.arange(3 * PIECE, dtype=torch.int64).to(torch.uint8)
    assert len({hash_bytes(one) for one in (content, content.flip(0), content.roll(8))}) == 3
    zeros = torch.zeros(4 * PIECE, dtype=torch.uint8)
    assert len({hash_memory(zeros.data_ptr(), size) for size in (8, 16, PIECE, 2 * PIECE)}) == 4


def test_it_does_not_depend_on_the_address():
    content = torch.arange(100, dtype=torch.uint8)
    shifted = torch.zeros(101, dtype=torch.uint8)
    shifted[1:] = content
    assert hash_memory(shifted.data_ptr() + 1, 100) == hash_bytes(content)
