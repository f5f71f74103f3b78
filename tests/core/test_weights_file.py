"""The weights file that a run begins with: found, hashed, refused where it is none."""

import hashlib
import os
import struct

import pytest
import torch
from safetensors.torch import save_file

from seedless.core.config import Config, parse_config
from seedless.core.errors import ConfigError
from seedless.core.weights_file import (
    FILE_START,
    has_weights,
    hash_weights,
    open_weights,
    pin_weights,
)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "base.safetensors"
    save_file({"weight": torch.arange(6.0).view(2, 3)}, path)
    return path


def begin_with(file, **init):
    return parse_config({"init": {"weights": str(file), **init}})


def test_the_digest_of_the_bytes_is_filled_in_and_no_start_is_left(file):
    pinned = pin_weights(begin_with(file, basis="dct", residual_scale=0.5)).init
    assert pinned.weights_digest == f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}"
    assert (pinned.basis, pinned.residual_scale) == (FILE_START, None)
    kept = pin_weights(begin_with(file, basis="dct", reinitialize=["head.*"])).init
    assert (kept.basis, kept.reinitialize) == ("dct", ["head.*"])


def test_the_digest_of_a_configuration_depends_on_the_bytes_and_not_on_the_place(file, tmp_path):
    moved, other = tmp_path / "elsewhere.safetensors", tmp_path / "other.safetensors"
    moved.write_bytes(file.read_bytes())
    save_file({"weight": torch.arange(1.0, 7.0).view(2, 3)}, other)
    one, two, three = (pin_weights(begin_with(path)) for path in (file, moved, other))
    assert one.digest == two.digest != three.digest
    assert one.digest != Config().digest
    assert str(file) not in str(one.identity())


def test_a_configuration_without_a_file_has_the_identity_of_before():
    assert {*Config().identity()["init"]} == {"basis", "residual_scale", "heads", "seed"}
    assert pin_weights(Config()) == Config()


def test_other_bytes_than_those_asked_for_are_refused(file):
    config = pin_weights(begin_with(file))
    assert pin_weights(config) == config
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(ConfigError, match="holds other bytes") as refusal:
        pin_weights(config)
    assert config.init.weights_digest in str(refusal.value)
    assert hash_weights(file) in str(refusal.value)


CONTRADICTIONS = {
    "a digest without a file": ({"weights_digest": f"sha256:{64 * '0'}"}, "file as init.weights"),
    "names without a file": ({"reinitialize": ["head.*"]}, "file as init.weights"),
    "the start of a file without one": ({"basis": FILE_START}, "belongs to init.weights"),
    "the weights of the model, too": ({"weights": "FILE", "basis": "given"}, "choose one"),
    "a seed with nothing to start": ({"weights": "FILE", "seed": 1}, "choose initial weights"),
    "an offset with nothing to start": ({"weights": "FILE", "offset": 1}, "choose initial weights"),
    "no start for a new head": (
        {"weights": "FILE", "basis": FILE_START, "reinitialize": ["head.*"]},
        "choose how as init.basis",
    ),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_settings_that_contradict_each_other_are_refused(file, case):
    init, message = CONTRADICTIONS[case]
    named = {key: str(file) if value == "FILE" else value for key, value in init.items()}
    with pytest.raises(ConfigError, match=message):
        pin_weights(parse_config({"init": named}))


@pytest.mark.parametrize("wrong", ["sha256:0", "md5:0", f"SHA256:{64 * '0'}", f"sha256:{64 * 'g'}"])
def test_a_digest_has_the_form_of_one(wrong):
    with pytest.raises(ConfigError, match=r"init\.weights_digest"):
        parse_config({"init": {"weights_digest": wrong}})


@pytest.mark.parametrize("wrong", [[], [""], ["x" * 201], ["x"] * 101, "head.*"])
def test_patterns_are_few_and_short(wrong):
    with pytest.raises(ConfigError, match=r"init\.reinitialize"):
        parse_config({"init": {"reinitialize": wrong}})


@pytest.mark.parametrize("name", ["model.pt", "model.pth", "pytorch_model.bin", "renamed.weights"])
def test_a_pickle_is_refused_with_the_lines_that_convert_it(tmp_path, name, monkeypatch):
    """The lines in the message are executed, and give the file that was asked for."""
    monkeypatch.chdir(tmp_path)
    torch.save({"weight": torch.ones(2, 3).t()}, name)
    with pytest.raises(ConfigError, match="got a pickle") as refusal:
        open_weights(name)
    lines = str(refusal.value).split("convert it once:\n")[1]
    exec("\n".join(line.strip() for line in lines.splitlines()))
    (made,) = tmp_path.glob("*.safetensors")
    assert hash_weights(made).startswith("sha256:")


def test_an_old_pickle_is_refused_whatever_its_name(tmp_path):
    path = tmp_path / "model.safetensors"
    torch.save({"weight": torch.ones(2)}, path, _use_new_zipfile_serialization=False)
    with pytest.raises(ConfigError, match="got a pickle"):
        open_weights(path)


def test_a_header_whose_size_looks_like_a_pickle_is_no_pickle(tmp_path):
    """A header of 0x0280 bytes begins with the two bytes that open a pickle."""
    header = b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'.ljust(0x0280)
    path = tmp_path / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))
    assert path.read_bytes()[:2] == b"\x80\x02"
    assert hash_weights(path).startswith("sha256:")


def test_a_link_that_the_user_named_is_followed(file, tmp_path):
    (tmp_path / "link.safetensors").symlink_to(file)
    assert hash_weights(tmp_path / "link.safetensors") == hash_weights(file)


def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for place, message in (("nothing", "No such file"), (".", "directory"), ("pipe", "a pipe")):
        with pytest.raises(ConfigError, match=message):
            open_weights(tmp_path / place)


def test_a_file_with_holes_is_not_hashed_for_hours(tmp_path):
    path = tmp_path / "huge.safetensors"
    with path.open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(ConfigError, match="at most 274,877,906,944 are read"):
        open_weights(path)


PLACES = ["a\0b", "~nobody-has-this-name/x", "x" * 5000, "/proc/self/mem", ""]


@pytest.mark.parametrize("place", PLACES)
def test_a_place_that_cannot_be_read_is_refused_in_words(place):
    """A stranger's configuration may name it."""
    with pytest.raises(ConfigError, match="expected a safetensors weights file") as refusal:
        hash_weights(place)
    assert len(str(refusal.value)) < 600
    assert str(refusal.value).isprintable()
    assert has_weights(place) is (place == "/proc/self/mem")


def test_a_loop_of_links_is_refused(tmp_path):
    for name, other in (("a", "b"), ("b", "a")):
        (tmp_path / name).symlink_to(tmp_path / other)
    with pytest.raises(ConfigError, match="expected a safetensors weights file"):
        hash_weights(tmp_path / "a")
    assert not has_weights(tmp_path / "a")
