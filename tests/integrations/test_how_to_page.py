"""The page on integrations: its scripts run and repeat, its table is what was recorded."""

import copy
import importlib.util
import re
import sys

import pytest

import seedless
from benchmarks.doctor.framework_resumes import QUESTIONS, make_table, read_record
from seedless.proof.loop_lines import read_loop
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "how-to" / "integrations.md").read_text()
SCRIPTS = {
    section.split("\n")[0]: re.search(r"```python\n(.*?)```", section, re.DOTALL)[1]
    for section in PAGE.split("\n## ")[1:]
    if "```python" in section
}
STEPS = {"Lightning": 12, "Transformers": 12, "Accelerate": 6, "Ignite": 12, "MONAI": 12}


def test_there_is_a_script_for_each_framework():
    assert [*SCRIPTS] == [*STEPS]


@pytest.mark.filterwarnings("ignore")  # what the frameworks say of loaders and of torch
@pytest.mark.parametrize("framework", STEPS)
def test_a_script_of_the_page_repeats(framework, tmp_path, monkeypatch):
    if importlib.util.find_spec(framework.lower()) is None:
        pytest.skip(f"{framework} is not installed: it is in the extra `integrations`")
    monkeypatch.chdir(tmp_path)
    for folder in ("a", "b"):
        monkeypatch.setattr(sys, "argv", ["train.py", folder])
        exec(compile(SCRIPTS[framework], "train.py", "exec"), {"__name__": "__main__"})
    assert seedless.diff("a", "b").identical
    lines = read_loop(tmp_path / "a")[0]
    assert [line["step"] for line in lines[1:]] == list(range(1, STEPS[framework] + 1))
    assert all(line["loss"] is not None and line["batch"] for line in lines[1:])


def test_the_table_is_what_was_recorded():
    record = read_record()
    assert make_table(record) in PAGE, "run python -m benchmarks.doctor.framework_resumes"
    answers = record["results"]["answers"]
    assert {*answers} == {question.name for question in QUESTIONS}
    assert {row["exit"] for row in answers.values()} == {0, 1}  # each question has an answer
    other = copy.deepcopy(record)
    row = other["results"]["answers"][QUESTIONS[0].name]
    row["exit"] = 1 - row["exit"]
    assert make_table(other) not in PAGE
