"""Configurations in TOML files, and the presets that come with the package."""

import tomllib
from pathlib import Path

from seedless.core.config import Config, parse_config
from seedless.core.errors import ConfigError
from seedless.core.registry import choose

# In an installed package they are inside it; in a working copy, at the top of the tree.
_PACKAGE = Path(__file__).resolve().parent.parent
_PLACES = (_PACKAGE / "configs", _PACKAGE.parent.parent / "configs")


def load_config(path: str | Path) -> Config:
    """Return the configuration in a TOML file; unknown keys are an error.

    Example: ``config = load_config("run.toml")``.
    """
    try:
        values = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None
    return parse_config(values, source=str(path))


def list_presets() -> dict[str, Path]:
    """Return {name: file} of the presets, such as "demo"."""
    for place in _PLACES:
        if place.is_dir():
            return {path.stem: path for path in sorted(place.glob("*.toml"))}
    return {}


def open_config(name: str) -> Config:
    """Return a preset by its name, or the configuration in a TOML file."""
    if name.endswith(".toml") or "/" in name:
        if not Path(name).exists():
            raise ConfigError(
                f"there is no file {name}; presets are {', '.join(list_presets()) or 'missing'}"
            )
        return load_config(name)
    return load_config(choose("preset", name, list_presets()))
