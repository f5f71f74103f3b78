"""docs/how-to/record-your-loop.md: the script runs, resumes exactly, and prints what is shown."""

import random
import re
import runpy
import sys

import numpy as np
import pytest
import torch

import seedless
from seedless.cli.main import main
from seedless.proof.recorded_loop import RecordedLoop
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "how-to" / "record-your-loop.md").read_text()
SCRIPT = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL).group(1)
RESTORED = '    torch.set_rng_state(state["generator"])  # dropout draws from it\n'


@pytest.fixture
def train(tmp_path, monkeypatch):
    """Run the script of the page in this process, and stop it after a step if one is given."""
    monkeypatch.chdir(tmp_path)
    step = RecordedLoop.step

    def train(folder, script=SCRIPT, stop_after=None):
        def step_or_stop(trail, **given):
            step(trail, **given)
            if given["step"] == stop_after:
                raise KeyboardInterrupt

        (tmp_path / "train.py").write_text(script)
        with monkeypatch.context() as patch, torch.random.fork_rng():
            patch.setattr(RecordedLoop, "step", step_or_stop)
            patch.setattr(sys, "argv", ["train.py", folder])
            runpy.run_path("train.py", run_name="__main__")

    return train


def test_the_script_repeats_and_resumes_exactly(train, tmp_path):
    train("runs/a")
    with pytest.raises(KeyboardInterrupt):
        train("runs/b", stop_after=25)
    train("runs/b")
    a, b = (tmp_path / "runs" / name / "trail.jsonl" for name in "ab")
    assert len(a.read_bytes().splitlines()) == 41
    assert seedless.diff("runs/a", "runs/b").identical
    steps = [file.read_bytes().splitlines()[1:] for file in (a, b)]
    assert [re.sub(rb'"(digest|previous)":"[^"]*"', b"", line) for line in steps[0]] == [
        re.sub(rb'"(digest|previous)":"[^"]*"', b"", line) for line in steps[1]
    ]


def test_what_the_page_shows_is_what_is_printed(train, monkeypatch, capsys):
    train("runs/a")
    random.seed(1)  # another process has other states of the generators that nobody seeds
    np.random.seed(1)
    train("runs/b")
    printed = call(monkeypatch, capsys, "runs/a", "runs/b")
    assert "the state of numpy, python differs" in printed
    assert printed in PAGE
    assert RESTORED in SCRIPT
    script = SCRIPT.replace(RESTORED, "")
    with pytest.raises(KeyboardInterrupt):
        train("runs/c", script, stop_after=25)
    with pytest.warns(UserWarning, match="step 21 differs") as warned:
        train("runs/c", script)
    shown = re.search(r"^UserWarning: (.*?)\.\.\.$", PAGE, re.MULTILINE).group(1)
    assert str(warned[0].message).startswith(shown)
    (line,) = re.findall("^THEY DIFFER.*$", call(monkeypatch, capsys, "runs/a", "runs/c"), re.M)
    assert line in PAGE


def call(monkeypatch, capsys, a, b):
    monkeypatch.setattr(sys, "argv", ["seedless", "diff", a, b])
    with pytest.raises(SystemExit):
        main()
    return capsys.readouterr().out
