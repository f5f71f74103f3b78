"""What a shell suggests at the Tab key besides commands and options: presets, settings, names.

Each function takes the incomplete word and returns the words that begin with it.
"""

from collections.abc import Iterable


def complete_presets(incomplete: str) -> list[str]:
    """Return presets that begin with the incomplete word."""
    from seedless.core.config_files import list_presets

    return _select(list_presets(), incomplete)


def complete_settings(incomplete: str) -> list[str]:
    """Return settings, such as "train.epochs="; after "=", the names that the setting can have."""
    from seedless.core.config import Config, flatten
    from seedless.core.setting_choices import list_choices

    setting, equals, _ = incomplete.partition("=")
    if equals:
        return _select((f"{setting}={name}" for name in list_choices(setting)), incomplete)
    return _select((f"{name}=" for name in flatten(Config().model_dump())), incomplete)


def complete_models(incomplete: str) -> list[str]:
    """Return networks that begin with the incomplete word."""
    from seedless.core.setting_choices import list_choices

    return _select(list_choices("model.name"), incomplete)


def complete_orders(incomplete: str) -> list[str]:
    """Return batch orders that begin with the incomplete word."""
    from seedless.core.setting_choices import list_choices

    return _select(list_choices("order.name"), incomplete)


def complete_datasets(incomplete: str) -> list[str]:
    """Return datasets of the catalog that begin with the incomplete word."""
    from seedless.data.catalog import CATALOG

    return _select(CATALOG, incomplete)


def complete_studies(incomplete: str) -> list[str]:
    """Return studies that begin with the incomplete word."""
    from seedless.core.setting_choices import read_names

    return _select(read_names("studies/catalog.py", "STUDIES"), incomplete)


def _select(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
