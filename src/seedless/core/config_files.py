"""Configurations in TOML files, and the presets that come with the package."""

from pathlib import Path

from seedless.core.bounded_reading import MAX_TOML_BYTES, parse_toml, read_file
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
        # A link is followed, as a user may name one; runs with links are refused elsewhere.
        content = read_file(Path(path), MAX_TOML_BYTES, follow_links=True, error=ConfigError)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    return parse_config(parse_toml(content, str(path), error=ConfigError), source=str(path))


def list_presets() -> dict[str, Path]:
    """Return {name: file} of the presets, such as "demo"."""
    for place in _PLACES:
        if place.is_dir():
            return {path.stem: path for path in sorted(place.glob("*.toml"))}
    return {}


def open_config(name: str) -> Config:
    """Return a preset by its name, or the configuration in a TOML file."""
    if name.endswith((".npz", ".npy")):
        raise ConfigError(
            f"expected a preset or a TOML file, got {name!r}; data are a setting of it: "
            f"ecg-small --set data.name={name} for signals, images-small for images"
        )
    if name.endswith(".toml") or "/" in name:
        if not Path(name).exists():
            raise ConfigError(
                f"no file at {name!r}; presets are {', '.join(list_presets()) or 'missing'}"
            )
        return load_config(name)
    return load_config(choose("preset", name, list_presets()))
