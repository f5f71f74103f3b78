"""The public functions that share their name with a package, before and after its modules load."""

import inspect
import re

import pytest

import seedless
from seedless.core.errors import DataError
from seedless.evaluate.churn import Churn
from tests.tiny import fit_run, give, merge

USE = """
import sys
import seedless
assert "torch" not in sys.modules
BEFORE
assert callable(seedless.evaluate) and callable(seedless.report) and callable(seedless.portable)
import seedless.evaluate.auc as ranking
import seedless.report.page as page
import seedless.portable.mode as mode
assert callable(seedless.evaluate) and callable(seedless.report) and callable(seedless.portable)
assert seedless.evaluate.auc is ranking and seedless.report.page is page
from seedless.evaluate import macro_auc
assert macro_auc is ranking.macro_auc
try:
    seedless.evaluate("nowhere")
except seedless.SeedlessError as error:
    print(error)
"""


@pytest.mark.parametrize(
    "before", ["", "import seedless.evaluate.scores, seedless.report.card", "seedless.evaluate"]
)
def test_a_package_is_called_and_its_modules_are_imported(before, run_python):
    result = run_python("-c", USE.replace("BEFORE", before))
    assert "nowhere" in result.stdout, result.stderr


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("public")
    return [fit_run(folder / f"r{offset}", order={"offset": offset}) for offset in (0, 1)]


def test_a_run_is_evaluated_and_reported(runs, tmp_path):
    scores = seedless.evaluate(str(runs[0]), split="validation").scores
    assert 0 <= scores["macro_auc"] <= 1
    page = seedless.report(str(runs[0]), out=str(tmp_path / "page.html"))
    assert page.read_text().startswith("<!doctype html>")
    both = seedless.report(*runs, out=tmp_path / "both.html")
    assert "r1" in both.read_text()


def test_churn_of_runs_is_that_of_their_predictions(runs):
    result = seedless.churn(str(runs[0]), runs[1], split="validation")
    assert isinstance(result, Churn)
    assert result.runs == tuple(map(str, runs))
    assert result.exact.n > 0
    assert result.exact.count == len(result.records)
    with pytest.raises(DataError, match="got one of them twice"):
        seedless.churn(runs[0], runs[0])
    with pytest.raises(DataError, match="two runs or more"):
        seedless.churn(runs[0])


def test_what_fit_returns_is_a_run_to_every_function(tmp_path):
    given = give()
    config = merge()
    run = seedless.fit(**given, config=config, out=tmp_path / "a")
    other = seedless.fit(**given, config=merge(order={"offset": 1}), out=tmp_path / "b")
    assert seedless.evaluate(run, split="validation").scores["macro_auc"] > 0
    assert seedless.report(run, out=tmp_path / "page.html").exists()
    assert seedless.churn(run, other, split="validation").runs == (str(run.path), str(other.path))
    assert seedless.verify(run, validate_only=True).outcome == "consistent"
    assert not seedless.diff(run, other, replay=False).identical
    assert seedless.load(run, given["model"]()).digest == run.digest
    compared = seedless.compare([run, other], [other, run], split="validation")
    assert compared.row.a.n == compared.row.b.n == 2
    assert len(repr(run)) < 300


@pytest.mark.parametrize("name", ["evaluate", "report", "portable"])
def test_a_callable_package_has_the_signature_of_its_function(name):
    signature = inspect.signature(getattr(seedless, name))
    assert "arguments" not in signature.parameters
    assert name == "portable" or "run" in next(iter(signature.parameters))
    assert f"seedless.{name}(" in getattr(seedless, name).__doc__


@pytest.mark.parametrize("name", sorted({*seedless.__all__} - {"SeedlessError", "__version__"}))
def test_an_example_calls_a_function_by_its_public_name(name):
    function = getattr(seedless, name)
    text = inspect.getdoc(function) or ""
    own = getattr(function, "__name__", name)
    called = [
        word for word in re.findall(r"([\w.]+)\(", text) if word.split(".")[-1] in (name, own)
    ]
    assert all(word == f"seedless.{name}" for word in called if "seedless" in word or word == own)
