"""Every preset parses, names what exists, and opens with the command that runs it."""

import shlex
import tomllib

import pytest

from seedless.core.config import Config, override
from seedless.core.config_files import list_presets, open_config
from seedless.core.errors import ConfigError, UnknownNameError
from seedless.data.catalog import CATALOG
from seedless.data.readers.registry import READERS
from seedless.init import INITIALIZATIONS
from seedless.runs.prepare import check_names

PRESETS = list_presets()


def test_there_are_presets():
    assert "demo" in PRESETS


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_parses_and_survives_a_round_trip(name):
    config = open_config(name)
    assert isinstance(config, Config)
    assert Config.model_validate(tomllib.loads(config.to_toml())) == config


@pytest.mark.parametrize("name", PRESETS)
def test_a_presets_first_line_is_the_command_that_runs_it(name):
    first = PRESETS[name].read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith("# "), first
    program, verb, preset, *options = shlex.split(first.removeprefix("# "))
    assert [program, verb, preset] == ["seedless", "train", name]
    pairs = list(zip(options[::2], options[1::2], strict=True))
    assert [key for key, _ in pairs].count("--out") == 1
    assert {key for key, _ in pairs} <= {"--out", "--set"}
    override(open_config(name), [value for key, value in pairs if key == "--set"])


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_names_what_exists(name):
    config = open_config(name)
    check_names(config)
    assert config.data.name in READERS or config.data.name in CATALOG
    assert config.init.basis in INITIALIZATIONS


def test_a_file_is_opened_by_its_path(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text("[train]\nepochs = 3\n")
    assert open_config(str(file)).train.epochs == 3


@pytest.mark.parametrize("name", ["mine.npz", "folder/mine.npz", "mine.npy"])
def test_data_in_the_place_of_a_preset_say_how_they_are_given(name):
    with pytest.raises(ConfigError, match="a preset or a TOML file") as error:
        open_config(name)
    assert "--set data.name=" in str(error.value)


def test_unknown_presets_and_missing_files_say_what_there_is(tmp_path):
    with pytest.raises(UnknownNameError, match=r"unknown preset 'dmo' \(did you mean 'demo'\?\)"):
        open_config("dmo")
    with pytest.raises(ConfigError, match=r"no file at '.*no.toml'; presets are .*demo"):
        open_config(str(tmp_path / "no.toml"))
