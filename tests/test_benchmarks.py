"""Every module of the benchmarks can be imported: none still uses a name that has gone."""

import importlib
from pathlib import Path
from pkgutil import walk_packages

import pytest

import benchmarks
from benchmarks.gpu_check import PLACES
from benchmarks.speed import pair_with_strongest

MODULES = [
    module.name
    for module in walk_packages(benchmarks.__path__, "benchmarks.")
    if not module.name.endswith(".__main__")  # which runs what it imports
]


@pytest.mark.parametrize("name", MODULES)
def test_a_module_of_the_benchmarks_can_be_imported(name):
    importlib.import_module(name)


def test_the_check_of_the_gpu_runs_every_test_that_needs_one():
    root = Path(__file__).parent.parent
    marked = {
        str(file.relative_to(root))
        for file in (root / "tests").rglob("test_*.py")
        if "mark." + "gpu" in file.read_text()
    }
    assert {file for file in marked if not file.startswith(PLACES)} == set()


def test_the_page_pairs_our_fastest_step_with_the_strongest_rival_of_its_precision():
    def row(name, kind, precision, ms, strongest="quick"):
        return {
            "name": name,
            "kind": kind,
            "precision": precision,
            "ms_per_step": ms,
            "strongest": strongest,
        }

    rows = [
        row("ours a", "ours", "fp32", 5.0),
        row("ours b", "ours", "fp32", 4.0),
        row("ours c", "ours", "bf16", None),
        row("ours d", "mode off", "fp32", 1.0),
        row("quick", "plain", "fp32", 6.0),
    ]
    pairs = pair_with_strongest({"rows": rows})
    assert [(rival["name"], ours["name"]) for rival, ours in pairs] == [("quick", "ours b")]
