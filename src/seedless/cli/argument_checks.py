"""Checks of command-line arguments, made before torch is imported: errors appear at once."""

from collections.abc import Callable, Iterable
from pathlib import Path

from seedless.core.errors import FORCE, RunError
from seedless.core.registry import choose

RECEIPT = "receipt.json"


def check_exists(run: Path | None) -> Path | None:
    """Return the path of a run; raise an error if nothing is there."""
    if run is not None and not run.exists():
        from seedless.core.files import say_no_run

        raise RunError(say_no_run(run))
    return run


def check_finished(run: Path) -> Path:
    """Return the folder of a run; raise an error that says what it lacks if it is not finished."""
    check_exists(run)
    if run.is_dir() and not (run / RECEIPT).exists():
        from seedless.proof.receipt import explain_missing

        raise RunError(explain_missing(run))
    return run


def check_not_finished(run: Path, force: bool) -> None:
    """Refuse to train into the folder of a finished run; everything else is checked later."""
    if not force and (run / RECEIPT).exists():
        raise RunError(
            f"{run} holds a finished run; choose another folder, or replace it with {FORCE}"
        )


def check_place(place: str | None) -> str | None:
    """Return the place of data that were moved; raise an error if there is nothing."""
    if place is not None and not Path(place).exists():
        raise RunError(f"no file or folder at {place!r}: --data is where the data are now")
    return place


def check_matches(runs: list[Path]) -> list[Path]:
    """Return folders and patterns as they are; raise an error for one that matches nothing."""
    from seedless.core.files import match_paths, say_no_run

    for run in runs:
        if not match_paths(run):
            raise RunError(
                f"{say_no_run(run)}: expected a run folder, or a pattern such as 'runs/a-*'"
            )
    return runs


def one_of(kind: str, *names: str) -> Callable[[str | None], str | None]:
    """Return a check that an argument is one of some names, where it is given at all.

    >>> one_of("split", "test", "train")("test")
    'test'
    """
    return _make_check(kind, lambda: names)


def one_of_setting(setting: str) -> Callable[[str | None], str | None]:
    """Return a check that an argument is a name that a setting can have."""

    def list_names() -> Iterable[str]:
        from seedless.core.setting_choices import list_choices

        return list_choices(setting)

    return _make_check(setting.partition(".")[0], list_names)


def one_of_studies(name: str | None) -> str | None:
    """Return the name of a study; an unknown one is an error."""
    from seedless.core.setting_choices import read_names

    if name is not None:
        choose("study", name, dict.fromkeys(read_names("studies/catalog.py", "STUDIES")))
    return name


def _make_check(
    kind: str, list_names: Callable[[], Iterable[str]]
) -> Callable[[str | None], str | None]:
    def check(value: str | None) -> str | None:
        if value is not None:
            choose(kind, value, dict.fromkeys(list_names()))
        return value

    return check
