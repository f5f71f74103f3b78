"""Which packages a machine lacks for a session, and how they are brought there."""

from __future__ import annotations

import re
import shlex
import tomllib
import zipfile
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
FOR_TESTS = ("pytest", "pytest-xdist", "hypothesis")


def list_needed() -> list[str]:
    """Return the package's dependencies, as "pydantic>=2.7", and what its tests need."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [*project["dependencies"], *FOR_TESTS]


def list_missing(needed: Sequence[str]) -> list[str]:
    """Return those that are not installed, in any version."""
    missing = []
    for requirement in needed:
        try:
            version(re.split(r"[^\w.-]", requirement, maxsplit=1)[0])
        except PackageNotFoundError:
            missing.append(requirement)
    return missing


def explain_missing(missing: Sequence[str], python: str) -> str:
    """Return what to do on a machine with a network: ``python`` is this one's version, as 3.12."""
    # Wheels are named by the oldest platform they run on, and pip matches the name.
    platforms = " ".join(f"--platform {name}" for name in PLATFORMS)
    return (
        f"error: expected {', '.join(missing)} on this machine, Python {python}; they are not "
        "installed. On a machine with a network run\n"
        f"    pip download --only-binary=:all: --python-version {python} {platforms} "
        f"--dest wheels {shlex.join(missing)}\n"
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
