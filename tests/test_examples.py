"""The examples of the functions that use runs: every line of them runs, on small runs."""

import doctest
import inspect
import os
from pathlib import Path

import pytest
import torch
from torch import nn

import seedless
from seedless.analysis.comparison import compare
from seedless.analysis.evaluation import evaluate
from seedless.analysis.run_churn import churn
from seedless.analysis.run_export import export
from seedless.analysis.run_report import report
from seedless.core.config import parse_config
from seedless.runs.bundled_run import bundle
from seedless.runs.finished_run import Run
from seedless.runs.fit_model import fit
from seedless.runs.opened_run import load
from seedless.runs.train import train_run
from tests.tiny import fit_run, flags_restored, give, make_model

DOCUMENTED = (Run, bundle, churn, compare, evaluate, export, fit, load, report)
UNNEEDED = "workers="  # an example about many processes, which only says how they are asked for


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """What the examples name: arrays, a network, and runs in the current folder."""
    given = give()
    (X, y), (Xv, yv) = given["train"], given["val"]
    before = os.getcwd()
    os.chdir(tmp_path_factory.mktemp("examples"))
    with flags_restored():
        for name, offset in (("mine", 0), ("a", 0), ("b", 1)):
            fit_run(f"runs/{name}", order={"offset": offset})
        train_run(
            parse_config(
                {
                    "data": {"name": "simulated", "preset": "tiny"},
                    "model": {"name": "baseline", "small": True},
                    "train": {"epochs": 1},
                    "execution": {"device": "cpu", "threads": 1},
                }
            ),
            Path("runs/demo"),
        )
        net = make_model()
        run = seedless.fit(net, train=(X, y), val=(Xv, yv), epochs=1, out="runs/own")
        yield {
            "seedless": seedless,
            "nn": nn,
            "torch": torch,
            "net": net,
            "run": run,
            "samples": torch.zeros(2, 12, 1000),
            "X": X,
            "y": y,
            "Y": y,
            "Xv": Xv,
            "yv": yv,
            "Yv": yv,
        }
    os.chdir(before)


@pytest.mark.parametrize("documented", DOCUMENTED, ids=lambda one: one.__name__)
def test_every_line_runs_and_prints_what_is_fixed(names, documented, monkeypatch, capsys):
    monkeypatch.setenv("MPLBACKEND", "agg")  # a notebook draws below the cell
    examples = doctest.DocTestParser().get_examples(inspect.getdoc(documented))
    assert examples
    here = dict(names)
    for example in examples:
        if UNNEEDED in example.source:
            continue
        capsys.readouterr()
        try:
            found = eval(example.source, here)
        except SyntaxError:
            exec(example.source, here)
            continue
        printed = capsys.readouterr().out or f"{found!r}\n"
        if example.want and not example.options and documented is not Run:
            assert printed == example.want
