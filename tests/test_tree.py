"""Laws of the source tree: file names, the public names of each package, and a cheap import."""

import importlib
import sys

import pytest

from tests.conftest import ROOT

SOURCE = ROOT / "src" / "seedless"
PACKAGES = sorted(
    ".".join(file.parent.relative_to(ROOT / "src").parts) for file in SOURCE.rglob("__init__.py")
)

CALLABLE_PACKAGES = {
    "portable"
}  # `seedless.portable()` works, and so does `seedless.portable.mode`


def test_no_module_shadows_the_standard_library():
    names = {path: path.stem if path.is_file() else path.name for path in SOURCE.rglob("*")}
    shadowing = [
        str(path.relative_to(ROOT))
        for path, name in names.items()
        if (path.suffix == ".py" or (path / "__init__.py").exists())
        and name in sys.stdlib_module_names - {"__main__"}
        and name != "__init__"
    ]
    assert shadowing == []


@pytest.mark.parametrize("package", PACKAGES)
def test_public_names_of_a_package_resolve(package):
    module = importlib.import_module(package)
    names = getattr(module, "__all__", [])
    assert len(set(names)) == len(names), "a name is listed twice"
    for name in names:
        getattr(module, name)  # raises where nothing defines it


@pytest.mark.parametrize("package", PACKAGES)
def test_no_public_name_is_hidden_by_a_submodule(package):
    """Importing `package.name` would replace a public function `name` by that module."""
    folder = ROOT / "src" / package.replace(".", "/")
    for name in set(getattr(importlib.import_module(package), "__all__", [])) - CALLABLE_PACKAGES:
        assert not (folder / name).exists(), f"{package}.{name}"
        assert not (folder / f"{name}.py").exists(), f"{package}.{name}"


def test_unknown_names_of_a_package_are_refused():
    seedless = importlib.import_module("seedless")
    with pytest.raises(AttributeError, match="no attribute 'settle'"):
        seedless.settle  # noqa: B018


def test_importing_the_package_imports_no_torch(run_python):
    code = (
        "import seedless, sys; heavy = {'torch', 'numpy', 'scipy', 'pandas', 'matplotlib'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert run_python("-c", code).stdout.strip() == "[]"
