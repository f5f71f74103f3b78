"""What a shell offers at the Tab key besides commands and options: presets, settings, names."""


def complete_presets(incomplete: str) -> list[str]:
    """Return the presets that begin so."""
    from seedless.core.config_files import list_presets

    return [name for name in list_presets() if name.startswith(incomplete)]


def complete_settings(incomplete: str) -> list[str]:
    """Return settings that begin so, such as "train.epochs="; after "=", their names."""
    from seedless.core.config import Config, flatten
    from seedless.core.setting_choices import list_choices

    setting, equals, value = incomplete.partition("=")
    if equals:
        names = list_choices(setting)
        return [f"{setting}={name}" for name in names if name.startswith(value)]
    known = flatten(Config().model_dump())
    return [f"{name}=" for name in known if name.startswith(incomplete)]


def complete_models(incomplete: str) -> list[str]:
    """Return the networks that begin so."""
    return _complete_names("model.name", incomplete)


def complete_orders(incomplete: str) -> list[str]:
    """Return the batch orders that begin so."""
    return _complete_names("order.name", incomplete)


def complete_datasets(incomplete: str) -> list[str]:
    """Return the datasets of the catalog that begin so."""
    from seedless.data.catalog import CATALOG

    return [name for name in CATALOG if name.startswith(incomplete)]


def complete_studies(incomplete: str) -> list[str]:
    """Return the studies that begin so."""
    from seedless.core.setting_choices import read_names

    names = read_names("studies/catalog.py", "STUDIES")
    return [name for name in names if name.startswith(incomplete)]


def _complete_names(setting: str, incomplete: str) -> list[str]:
    from seedless.core.setting_choices import list_choices

    return [name for name in list_choices(setting) if name.startswith(incomplete)]
