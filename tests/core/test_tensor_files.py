"""Tensors are read as safetensors wrote them; a header that lies is refused before it is parsed."""

import json

import pytest
import torch
from safetensors.torch import save

from seedless.core.errors import RunError
from seedless.core.tensor_files import MAX_HEADER_BYTES, load_tensors


def write(path, header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def describe(shape=(1,), offsets=(0, 4), dtype="F32"):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def test_what_was_saved_is_read_back(tmp_path):
    tensors = {"a": torch.arange(3.0), "b/c": torch.zeros(0, 2, dtype=torch.int64)}
    (tmp_path / "a").write_bytes(save(tensors, metadata={"key": "value"}))
    found, metadata = load_tensors(tmp_path / "a")
    assert metadata == {"key": "value"}
    assert {name: value.tolist() for name, value in found.items()} == {"a": [0, 1, 2], "b/c": []}
    (tmp_path / "b").write_bytes(save(tensors))
    assert load_tensors(tmp_path / "b")[1] == {}


@pytest.mark.parametrize(
    ("header", "why"),
    [
        (b"", "not valid JSON"),
        (b"[" * 10**6, "nested 1,000,000 deep|about 1,000,001 values"),
        (b'{"__metadata__":' + b'{"a":' * 1000, "nested 1,001 deep"),
        ([], "expected a header that names"),
        ({str(n): describe() for n in range(100_001)}, "at most 100,000 tensors"),
        ({"x" * 2000: describe()}, "does not describe a tensor"),
        ({"a": 1}, "'a' does not describe a tensor"),
        ({"a": describe(shape=[1] * 17)}, "'a' does not describe"),
        ({"a": describe(shape=[-1])}, "'a' does not describe"),
        ({"a": describe(shape=[True])}, "'a' does not describe"),
        ({"a": describe(offsets=[0, 8])}, "'a' does not describe"),
        ({"a": describe(offsets=[4, 0])}, "'a' does not describe"),
        ({"a": describe(offsets=[0])}, "'a' does not describe"),
        ({"a": describe(shape=[2**61, 2**61])}, "cannot be read as safetensors"),
        ({"a": describe(dtype="F33")}, "cannot be read as safetensors"),
        ({"a": describe(), "b": describe()}, "cannot be read as safetensors"),
        ({"__metadata__": {"a": 1}, "a": describe()}, "cannot be read as safetensors"),
    ],
)
def test_another_header_is_refused(header, why, tmp_path):
    with pytest.raises(RunError, match=why):
        load_tensors(write(tmp_path / "a", header, b"1234"))


def test_a_header_larger_than_the_file_or_the_limit_is_refused(tmp_path):
    (tmp_path / "a").write_bytes((2**63).to_bytes(8, "little") + b"{}")
    with pytest.raises(
        RunError, match="header of 9,223,372,036,854,775,808 bytes; it has 10 bytes"
    ):
        load_tensors(tmp_path / "a")
    with pytest.raises(RunError, match="at most 16,777,216 are read"):
        load_tensors(write(tmp_path / "b", b"{}".ljust(MAX_HEADER_BYTES + 1)))
    (tmp_path / "c").write_bytes(b"1")
    with pytest.raises(RunError, match="it has 1 bytes in all"):
        load_tensors(tmp_path / "c")
