"""The configuration of a run: frozen, typed, and strict about its keys.

config = parse_config({"train": {"epochs": 2}})
config = override(config, ["init.basis=dct", "order.batch_size=64"])

The settings themselves are in `config_sections.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from seedless.core.bounded_reading import parse_toml, shorten
from seedless.core.config_sections import (
    FILE_KEYS,
    FLOAT32_MAX,
    MAX_EPOCHS,
    AugmentConfig,
    ControlConfig,
    DataConfig,
    ExecutionConfig,
    InitConfig,
    LossConfig,
    ModelConfig,
    OrderConfig,
    Section,
    TrainConfig,
)
from seedless.core.digests import digest_value
from seedless.core.errors import ConfigError, RunError
from seedless.core.registry import suggest

__all__ = [
    "FILE_KEYS",
    "FLOAT32_MAX",
    "MAX_EPOCHS",
    "REPLICATE_KEYS",
    "SEED_KEYS",
    "AugmentConfig",
    "Config",
    "ControlConfig",
    "DataConfig",
    "ExecutionConfig",
    "InitConfig",
    "LossConfig",
    "ModelConfig",
    "OrderConfig",
    "TrainConfig",
    "flatten",
    "override",
    "parse_config",
]

_SHOWN_PROBLEMS = 10  # of a configuration that has many

SEED_KEYS = ("init.seed", "order.seed")  # None in a run that needs no seed
REPLICATE_KEYS = (*SEED_KEYS, "order.offset", "init.offset")  # replicates of an arm may differ here


class Config(Section):
    """The configuration of a run: one section for each of its parts.

    Example: ``Config().change(train={"epochs": 2}).train.epochs == 2``.
    """

    data: DataConfig = DataConfig()
    augment: AugmentConfig = AugmentConfig()
    model: ModelConfig = ModelConfig()
    init: InitConfig = InitConfig()
    order: OrderConfig = OrderConfig()
    loss: LossConfig = LossConfig()
    train: TrainConfig = TrainConfig()
    execution: ExecutionConfig = ExecutionConfig()
    control: ControlConfig = ControlConfig()

    def identity(self) -> dict[str, Any]:
        """Return every setting that can change a bit: all but the places of data and weights.

        Data and weights are identified by their digests.
        """
        values = self.model_dump()
        for key in ("path", "cache", "verify"):
            del values["data"][key]
        values["data"]["name"] = Path(self.data.name).name
        if self.data.repeated is None:  # so that digests from before this setting stay valid
            del values["data"]["repeated"]
        # In portable arithmetic the device cannot change a bit. In native arithmetic, the default,
        # the key is left out so that digests from before there was a choice stay valid.
        inert = ("device", "mode", "threads") if self.is_portable else ("arithmetic",)
        for key in (*inert, "timeout"):
            del values["execution"][key]
        # Most starts have no offset: leaving 0 out keeps the digests from before there was one.
        if self.init.offset == 0:
            del values["init"]["offset"]
        for key in FILE_KEYS:  # the same, for runs that take no weights from a file
            if key == "weights" or values["init"][key] is None:
                del values["init"][key]
        return values

    @property
    def is_portable(self) -> bool:
        """Whether the bits depend on the data and the settings alone, not on the device."""
        return self.execution.arithmetic == "portable"

    @property
    def digest(self) -> str:
        """The digest of the identity, defaults included."""
        return digest_value(self.identity())

    def change(self, **sections: Mapping[str, Any]) -> Config:
        """Return the configuration with some settings of some sections changed, checked again."""
        values = self.model_dump()
        for section, settings in sections.items():
            values[section].update(settings)
        return parse_config(values)

    def to_toml(self) -> str:
        """Return the configuration as the text of a TOML file, without settings that are None."""
        import tomli_w

        return tomli_w.dumps(
            {
                section: {key: value for key, value in settings.items() if value is not None}
                for section, settings in self.model_dump().items()
            }
        )


def parse_config(values: Mapping[str, Any], source: str = "configuration") -> Config:
    """Return a checked configuration; an unknown key is an error that names the nearest one."""
    try:
        return Config.model_validate(dict(values))
    except ValidationError as error:
        found = error.errors()
        problems = "; ".join(_explain(item) for item in found[:_SHOWN_PROBLEMS])
        more = f"; and {len(found) - _SHOWN_PROBLEMS} more" * (len(found) > _SHOWN_PROBLEMS)
        raise ConfigError(f"{source}: {problems}{more}") from None


def flatten(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested values by dotted key; the items of a list of mappings have their index as key.

    >>> flatten({"init": {"basis": "dct"}, "devices": [{"name": "cpu"}]})
    {'init.basis': 'dct', 'devices.0.name': 'cpu'}
    """
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
            value = {str(place): item for place, item in enumerate(value)}
        if isinstance(value, Mapping):
            flat |= {f"{key}.{below}": item for below, item in flatten(value).items()}
        else:
            flat[key] = value
    return flat


def override(config: Config, settings: Iterable[str]) -> Config:
    """Return the configuration with some settings changed, such as "init.residual_scale=0.42".

    A value is read as TOML (numbers, true, false, quoted text), or else as plain text.

    Example: ``override(config, ["init.basis=dct", "order.batch_size=64"])``.
    """
    values = config.model_dump()
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"expected a setting such as init.basis=dct, got {setting!r}")
        *tables, last = key.strip().split(".")
        target: Any = values
        for table in tables:
            target = target.setdefault(table, {})
            if not isinstance(target, dict):
                raise ConfigError(f"{key.strip()!r} goes below {table!r}, which is a single value")
        target[last] = _read_value(text.strip())
    return parse_config(values, source="--set")


def _read_value(text: str) -> Any:
    try:
        return parse_toml(f"value = {text}".encode(), "--set")["value"]
    except RunError:
        return text


def _explain(error: Any) -> str:
    """Return one of pydantic's errors as text: the key, what was expected, what was found."""
    *path, last = [shorten(str(part)) for part in error["loc"]] or [""]
    where = ".".join([*path, last])
    if error["type"] == "extra_forbidden":
        known = [".".join([*path, name]) for name in _keys_at(path)]
        sections = [] if path else [name for name in known if where in _keys_at([name])]
        if sections:
            meant = " or ".join(repr(f"{name}.{where}") for name in sections)
            return f"unknown key {where!r} (did you mean {meant}?)"
        return f"unknown key {where!r}{suggest(where, known)}; known: {', '.join(known)}"
    message = error["msg"][:1].lower() + error["msg"][1:]
    return f"{where}: {message}, got {shorten(repr(error['input']))}"


def _keys_at(path: list[str]) -> list[str]:
    table: Any = Config
    for part in path:
        table = table.model_fields[part].annotation
    return sorted(table.model_fields)
