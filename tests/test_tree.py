"""Laws of the source tree: file names, the public names of each package, and a cheap import."""

import importlib
import sys

import pytest

from tests.conftest import ROOT

SOURCE = ROOT / "src" / "seedless"
PACKAGES = sorted(
    ".".join(file.parent.relative_to(ROOT / "src").parts) for file in SOURCE.rglob("__init__.py")
)

# Packages that can be called as the function of their name.
CALLABLE = ["seedless.evaluate", "seedless.portable", "seedless.report"]
FIND_HIDDEN_NAMES = """
import importlib, pkgutil, types, seedless
modules = [m.name for m in pkgutil.walk_packages(seedless.__path__, "seedless.")
           if not m.name.endswith("__main__")]
packages = [importlib.import_module(name) for name in ["seedless", *modules]]
for package in packages:
    for name in getattr(package, "__all__", []):
        if isinstance(getattr(package, name), types.ModuleType):
            print(f"{package.__name__}.{name}")
"""


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


def test_no_public_name_is_hidden_by_a_submodule(run_python):
    """Importing a submodule sets an attribute of its package, over a public name if it is equal."""
    assert run_python("-c", FIND_HIDDEN_NAMES).stdout.split() == CALLABLE


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
