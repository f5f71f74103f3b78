"""`seedless config show`: every setting with its value and choices, and the presets."""

import json

import pytest

from seedless.cli.config import show
from seedless.core.config import Config, flatten
from seedless.core.config_files import list_presets
from seedless.core.errors import ConfigError, UnknownNameError
from tests.conftest import ROOT


def test_it_explains_every_setting_and_lists_the_presets(capsys):
    show()
    text = capsys.readouterr().out
    for setting in flatten(Config().model_dump()):
        assert f"  {setting.partition('.')[2]} = " in text
    for preset in list_presets():
        assert f"  {preset} " in text
    assert "One of: adam, adamw, sgd." in text
    assert max(map(len, text.splitlines())) <= 96


def test_it_shows_the_values_of_a_preset_with_changes(capsys):
    show("demo", settings=["train.rate=0.5"])
    text = capsys.readouterr().out
    assert 'preset = "small"' in text
    assert "rate = 0.5" in text
    assert "epochs = 8" in text


def test_json_has_all_values(capsys):
    show("demo", as_json=True)
    values = json.loads(capsys.readouterr().out)
    assert values["settings"]["train"]["epochs"] == 8
    assert set(values["presets"]) == set(list_presets())


def test_wrong_names_are_refused():
    with pytest.raises(UnknownNameError, match="unknown preset 'nosuch'"):
        show("nosuch")
    with pytest.raises(ConfigError, match=r"unknown key 'train\.epoch'"):
        show(settings=["train.epoch=2"])
    with pytest.raises(UnknownNameError, match=r"unknown model\.name"):
        show(settings=["model.name=nosuch"])


def test_the_page_of_the_settings_is_what_the_command_prints(capsys):
    show()
    page = (ROOT / "docs" / "reference" / "settings.md").read_text()
    assert f"```\n{capsys.readouterr().out}```\n" in page
