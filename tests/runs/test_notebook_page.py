"""The page about notebooks: its code runs, and does what the page says."""

import re

import pytest

from seedless.core.errors import NumericsError
from tests.conftest import ROOT
from tests.tiny import flags_restored

PAGE = (ROOT / "docs" / "how-to" / "notebook.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """What the names of the page stand for after all of its code."""
    with flags_restored(), pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("notebook"))
        found = {}
        for block in BLOCKS:
            exec(block, found)  # the page's own code
        yield found


def test_its_code_runs_and_its_files_are_written(names):
    run = names["run"]
    assert len(BLOCKS) == 3
    for file in ("runs/first/report.html", "runs/both.html", "runs/net.onnx", "runs/first.zip"):
        assert (run.path.parent.parent / file).exists(), file
    assert names["other"].digest != run.digest


def test_a_function_returns_what_its_command_prints(names, capsys):
    from seedless.cli.churn import churn
    from seedless.cli.evaluate import evaluate

    run, other, seedless = names["run"], names["other"], names["seedless"]
    evaluate(run.path)
    assert capsys.readouterr().out == f"{seedless.evaluate(run.path)!r}\n"
    churn([run.path, other.path])
    assert capsys.readouterr().out == f"{seedless.churn(run.path, other.path)!r}\n"
    assert list(names["scores"].classes.index) == ["class 0", "class 1", "class 2"]


def test_dropout_is_refused_before_a_sample_is_read(names):
    seedless, nn = names["seedless"], names["nn"]
    with pytest.raises(NumericsError, match=r"1: Dropout\(p=0.5\).*convert"):
        seedless.fit(nn.Sequential(nn.Linear(8, 3), nn.Dropout(0.5)), train=None)
