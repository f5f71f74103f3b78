"""Configuration: frozen, typed, strict about keys, and clear when refusing."""

import pytest
from pydantic import ValidationError

from seedless.core.config import Config, flatten, override, parse_config
from seedless.core.config_files import load_config
from seedless.core.errors import ConfigError


def test_settings_come_from_a_file_then_from_overrides(tmp_path):
    file = tmp_path / "run.toml"
    file.write_text('[model]\nname = "baseline"\nleads = 6\n[init]\nresidual_scale = 0.42\n')
    config = override(load_config(file), ["init.basis=dct", "model.small=true", "order.offset=3"])
    assert (config.model.name, config.model.leads, config.model.small) == ("baseline", 6, True)
    assert (config.init.basis, config.init.residual_scale) == ("dct", 0.42)
    assert config.order.offset == 3


def test_a_config_is_frozen_and_its_digest_sees_every_setting():
    config = Config()
    with pytest.raises(ValidationError):
        config.init.basis = "dct"
    changed = override(config, ["execution.threads=1"])
    assert config.digest == Config().digest
    assert changed.digest != config.digest


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("init.basi=dct", "unknown key 'init.basi'.*did you mean 'init.basis'"),
        ("epochs=3", r"unknown key 'epochs' \(did you mean 'train.epochs'\?\)"),
        ("name=mine", "did you mean 'data.name' or 'loss.name' or 'model.name' or"),
        ("inti.basis=dct", "unknown key 'inti'.*did you mean 'init'"),
        ("init.residual_scale=tiny", "init.residual_scale.*'tiny'"),
        ("init.residual_scale=-1", "init.residual_scale.*-1"),
        ("init.residual_scale=nan", "init.residual_scale.*finite"),
        ("train.rate=1e300", "train.rate.*less than or equal to 34028.*got 1e.300"),
        ("order.batch_size=0", "order.batch_size.*0"),
        ("order.batch_size=1.5", "order.batch_size.*1.5"),
        ("model.small=1", "model.small.*boolean"),
        ("model.name=3", "model.name.*string"),
        ("init.seed=-1", "init.seed"),
        ("init.basis", "such as init.basis=dct"),
        ("=3", "such as"),
        ("init.basis.deeper=3", "single value"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ConfigError, match=message):
        override(Config(), [settings])


def test_every_mistake_is_named_at_once():
    with pytest.raises(ConfigError) as caught:
        parse_config({"init": {"bases": "dct"}, "order": {"batch_size": "many"}})
    assert "init.bases" in str(caught.value)
    assert "order.batch_size" in str(caught.value)


def test_bad_files(tmp_path):
    with pytest.raises(ConfigError, match="cannot read"):
        load_config(tmp_path / "none.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("[init\n")
    with pytest.raises(ConfigError, match="not valid TOML"):
        load_config(broken)


def test_nested_values_are_flattened_to_dotted_keys():
    nested = {
        "init": {"basis": "dct", "seed": None},
        "map": {"a": {"b": 1}},
        "devices": [{"name": "cpu"}, {"name": "cuda"}],
        "tags": ["x", "y"],
        "n": 2,
    }
    assert flatten(nested) == {
        "init.basis": "dct",
        "init.seed": None,
        "map.a.b": 1,
        "devices.0.name": "cpu",
        "devices.1.name": "cuda",
        "tags": ["x", "y"],
        "n": 2,
    }


@pytest.mark.parametrize(
    ("section", "key", "most"),
    [
        ("train", "epochs", 10**6),
        ("train", "evaluate_batch", 2**31 - 1),
        ("train", "checkpoint_every", 2**31 - 1),
        ("train", "warmup_steps", 2**62),
        ("order", "batch_size", 2**31 - 1),
        ("order", "offset", 2**62),
        ("augment", "padding", 256),
        ("data", "records", 2**31 - 1),
        ("data", "classes", 10_000),
        ("model", "classes", 10_000),
        ("model", "leads", 1024),
        ("model", "channels", 1024),
        ("control", "at_step", 2**62),
    ],
)
def test_integers_have_a_largest_value(section, key, most):
    assert getattr(getattr(parse_config({section: {key: most}}), section), key) == most
    with pytest.raises(ConfigError, match=f"{section}.{key}: .* less than or equal to {most}, got"):
        parse_config({section: {key: most + 1}})


def test_every_integer_has_a_largest_value():
    """A new setting without a limit could be a bomb in a run of someone else's."""
    schema = Config.model_json_schema()
    for table in schema["$defs"].values():
        for name, field in table["properties"].items():
            for kind in field.get("anyOf", [field]):
                bounded = "maximum" in kind or "exclusiveMaximum" in kind
                assert bounded or kind.get("type") != "integer", name


def test_a_message_stays_short_whatever_the_values():
    values = {f"x{number}": "y" * 10**5 for number in range(1000)}
    with pytest.raises(ConfigError, match="and 992 more") as raised:
        parse_config({"train": {"epochs": "y" * 10**5}, **values} | {"data": {"name": 3}})
    assert len(str(raised.value)) < 5000


def test_digests_from_before_a_start_had_an_offset_stay_valid():
    assert Config().digest == (
        "sha256:0280c1d139491ed4b0e6daf6ef489d90837e176096d2eb9310caa5a813755027"
    )
    replicate = Config().change(init={"basis": "scrambled", "offset": 1})
    assert replicate.identity()["init"]["offset"] == 1
    assert replicate.digest != replicate.change(init={"offset": 0}).digest
