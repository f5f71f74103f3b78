"""Every module of the benchmarks can be imported: none still uses a name that has gone."""

import importlib
from pkgutil import walk_packages

import pytest

import benchmarks

MODULES = [
    module.name
    for module in walk_packages(benchmarks.__path__, "benchmarks.")
    if not module.name.endswith(".__main__")  # which runs what it imports
]


@pytest.mark.parametrize("name", MODULES)
def test_a_module_of_the_benchmarks_can_be_imported(name):
    importlib.import_module(name)
