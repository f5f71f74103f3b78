"""What every other package rests on: configuration, the dataset record, digests and errors."""

from typing import TYPE_CHECKING

from seedless.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from seedless.core.config import Config, override, parse_config
    from seedless.core.config_files import list_presets, load_config, open_config
    from seedless.core.dataset import Dataset
    from seedless.core.digests import canonical_json, digest, digest_samples, md5, sample_keys
    from seedless.core.errors import (
        ConfigError,
        DataError,
        InitError,
        ModelError,
        NumericsError,
        OrderError,
        RunError,
        SeedlessError,
        StatsError,
        StudyError,
        TrainError,
        UnknownNameError,
    )
    from seedless.core.marks import mark

__all__ = [
    "Config",
    "ConfigError",
    "DataError",
    "Dataset",
    "InitError",
    "ModelError",
    "NumericsError",
    "OrderError",
    "RunError",
    "SeedlessError",
    "StatsError",
    "StudyError",
    "TrainError",
    "UnknownNameError",
    "canonical_json",
    "digest",
    "digest_samples",
    "list_presets",
    "load_config",
    "mark",
    "md5",
    "open_config",
    "override",
    "parse_config",
    "sample_keys",
]

__getattr__, __dir__ = lazy_names(__name__)
