"""The content of a weights file: what counts in it, and what does not."""

import zipfile

import pytest
import torch
from safetensors.torch import save_file

from seedless.audit.script.output_content import digest_content
from seedless.core.digests import digest

TENSORS = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.ones(2, dtype=torch.int64)}


def write_zip(path, members, *, date=(1980, 1, 1, 0, 0, 0), method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, date), content, method)
    return path


def test_times_order_and_compression_of_a_zip_file_do_not_count(tmp_path):
    one = write_zip(tmp_path / "a.pt", {"x": b"1" * 99, "y": b"2"})
    two = write_zip(
        tmp_path / "b.pt",
        {"y": b"2", "x": b"1" * 99},
        date=(2026, 1, 2, 3, 4, 6),
        method=zipfile.ZIP_DEFLATED,
    )
    assert one.read_bytes() != two.read_bytes()
    assert digest_content(one) == digest_content(two)


@pytest.mark.parametrize("members", [{"x": b"1"}, {"z": b"1", "y": b"2"}, {"x": b"1", "y": b"3"}])
def test_names_and_bytes_of_a_zip_file_count(tmp_path, members):
    one = write_zip(tmp_path / "a.pt", {"x": b"1", "y": b"2"})
    assert digest_content(one) != digest_content(write_zip(tmp_path / "b.pt", members))


def test_metadata_of_safetensors_do_not_count_and_tensors_do(tmp_path):
    save_file(TENSORS, tmp_path / "a.safetensors")
    save_file(TENSORS, tmp_path / "b.safetensors", metadata={"time": "now"})
    save_file({**TENSORS, "b": -TENSORS["b"]}, tmp_path / "c.safetensors")
    found = [digest_content(tmp_path / f"{name}.safetensors") for name in "abc"]
    assert found[0] == found[1] == digest(TENSORS)
    assert found[2] != found[0]


def test_torch_saves_the_same_content_twice(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        torch.save(TENSORS, tmp_path / name / "model.pt")
    assert digest_content(tmp_path / "a" / "model.pt") is not None
    assert digest_content(tmp_path / "a" / "model.pt") == digest_content(
        tmp_path / "b" / "model.pt"
    )


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("log.txt", b"text"),
        ("empty", b""),
        ("x.pt", b"PK\x03\x04 and no more"),
        ("x.safetensors", b"\xff" * 64),
    ],
)
def test_a_file_of_another_kind_or_a_damaged_one_has_none(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    assert digest_content(tmp_path / name) is None


def test_a_zip_file_that_unpacks_to_too_much_has_none(tmp_path, monkeypatch):
    monkeypatch.setattr("seedless.audit.script.output_content.MAX_UNPACKED_BYTES", 2**20)
    bomb = write_zip(tmp_path / "a.pt", {"x": bytes(2**21)}, method=zipfile.ZIP_DEFLATED)
    assert bomb.stat().st_size < 2**14
    assert digest_content(bomb) is None
