"""What all recorders share, and that none of their frameworks is imported or needed otherwise."""

import doctest

import pytest
import torch
from torch import nn

import seedless
from seedless.integrations import step_writer
from seedless.integrations.step_writer import StepWriter, find_loss
from seedless.proof.loop_lines import read_loop

PACKAGES = ("accelerate", "ignite", "lightning", "monai", "transformers")
IMPORT = f"""
import sys
import seedless, seedless.integrations
seedless.integrations.__all__, dir(seedless.integrations)
print(sorted({{*{PACKAGES}, "torch"}} & {{*sys.modules}}))
"""
BLOCKED = """
import sys
for name in {packages}:
    sys.modules[name] = None  # importing it fails
import seedless.integrations as integrations
for name in integrations.__all__:
    try:
        getattr(integrations, name)
    except ImportError as error:
        print(name, "|", error)
"""


def test_the_examples_hold():
    assert doctest.testmod(step_writer).failed == 0


@pytest.mark.parametrize("output", [torch.zeros(4, 2), (torch.zeros(4, 2), 1), [], None, "text"])
def test_an_output_without_a_loss_has_none(output):
    assert find_loss(output) is None


def test_the_batches_of_one_step_do_not_reach_the_next(tmp_path):
    writer = StepWriter(tmp_path, {"note": "mine"})
    writer.begin(nn.Linear(1, 1), None)
    for step, batches in ((1, [1.0, 2.0]), (2, [3.0])):
        for batch in batches:
            writer.add({"loss": batch}, torch.tensor(batch))
        writer.write(step, epoch=0)
    writer.add({"loss": 4.0}, torch.tensor(4.0))  # of a step that was never finished
    writer.close()
    writer.begin(nn.Linear(1, 1), None)
    writer.add({"loss": 5.0}, torch.tensor(5.0))
    writer.write(3, epoch=1)
    writer.close()
    start, *lines = read_loop(tmp_path)[0]
    assert start["settings"] == {"note": "mine"}
    assert [line["loss"] for line in lines] == [[1.0, 2.0], 3.0, 5.0]
    assert len({line["batch"] for line in lines}) == 3


def test_importing_the_package_imports_no_framework(run_python):
    assert run_python("-c", IMPORT).stdout.strip() == "[]"


def test_a_missing_framework_is_an_error_that_names_the_extra(run_python):
    printed = run_python("-c", BLOCKED.format(packages=PACKAGES)).stdout.splitlines()
    assert [line.split(" | ")[0] for line in printed] == seedless.integrations.__all__
    assert all("pip install 'seedless[integrations]'" in line for line in printed)
