"""Which packages a machine lacks for a session, and how they are brought there."""

from __future__ import annotations

import re
import tomllib
import zipfile
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOR_TESTS = ("pytest", "pytest-xdist", "hypothesis")


def list_needed() -> list[str]:
    """Return the names of the package's dependencies, and of what its tests need."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = [re.split(r"[^\w.-]", entry, maxsplit=1)[0] for entry in project["dependencies"]]
    return [*names, *FOR_TESTS]


def list_missing(names: Sequence[str]) -> list[str]:
    """Return those that are not installed."""
    missing = []
    for name in names:
        try:
            version(name)
        except PackageNotFoundError:
            missing.append(name)
    return missing


def explain_missing(names: Sequence[str], python: str) -> str:
    """Return what to do on a machine with a network: ``python`` is this one's version, as 3.12."""
    listed = " ".join(names)
    return (
        f"error: expected {listed} on this machine, Python {python}; they are not installed. "
        "On a machine with a network run\n"
        f"    pip download --only-binary=:all: --python-version {python} "
        f"--platform manylinux_2_28_x86_64 --dest wheels {listed}\n"
        "delete the wheels of packages that are here (torch, numpy), copy the folder beside the "
        "sources, and name it with --wheels wheels"
    )


def unpack_wheels(folder: Path, to: Path) -> None:
    """Unpack every wheel of a folder, so that ``to`` can be imported from: nothing is installed."""
    wheels = sorted(folder.glob("*.whl"))
    if not wheels:
        raise SystemExit(f"error: expected files *.whl in {folder}, got none")
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(to)
