"""The settings of `fit`: those of its configuration, and those that it takes by themselves."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seedless.core.config import Config, parse_config
from seedless.core.config_files import open_config


def read_settings(
    config: Config | Mapping[str, Any] | str | Path | None,
    *,
    epochs: int | None = None,
    batch_size: int | None = None,
    reinitialize: Sequence[str] | None = None,
) -> Config:
    """Return the configuration that `fit` got as an object, sections of plain values, or a file.

    The others, which `fit` also takes by themselves, come before the settings in it.
    """
    if isinstance(config, str | Path):
        config = open_config(str(config))
    if not isinstance(config, Config):
        config = parse_config(dict(config or {}), source="fit's config")
    arguments: tuple[tuple[str, str, Any], ...] = (
        ("train", "epochs", epochs),
        ("order", "batch_size", batch_size),
        ("init", "reinitialize", None if reinitialize is None else list(reinitialize)),
    )
    if all(value is None for *_, value in arguments):
        return config
    values = config.model_dump(exclude_unset=True)
    for section, name, value in arguments:
        if value is not None:
            values.setdefault(section, {})[name] = value
    return parse_config(values, source="fit's arguments")
