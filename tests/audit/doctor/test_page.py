"""The page of an examination: what it shows of the records."""

import json
import re
from pathlib import Path

from seedless.audit.doctor.command import Execution
from seedless.audit.doctor.diagnosis import Diagnosis
from seedless.audit.doctor.examine import Examination
from seedless.audit.doctor.page import render_examination
from seedless.audit.doctor.pair import Run, compare
from tests.audit.doctor.records import write_run


def make_run(folder: Path, draw: str, **changes) -> Run:
    """A run in whose second step numpy draws a value, before an operation."""
    recorded = write_run(folder, **changes)
    lines = [
        {"kind": "draw", "generator": "numpy", "call": "np.random.rand", "line": "data.py:7"}
        | {"value": draw},
        {"phase": "forward", "module": "head", "op": "aten.mm.default", "line": "train.py:12"}
        | {"inputs": [], "sources": [], "settings": [], "outputs": ["a"], "shapes": [[2, 3]]}
        | {"note": "", "draws": "", "device": "cpu"},
    ]
    file = folder / "ops-0-100-2.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return Run(Execution(folder, 0, 1.0), recorded)


def test_operations_are_shown_with_their_lines(tmp_path):
    pair = compare(
        make_run(tmp_path / "a", "0.25"), make_run(tmp_path / "b", "0.5", step2={"loss": "other"})
    )
    examination = Examination(Diagnosis(False, step=2, what="loss"), pair, recorded_pair=pair)
    page = render_examination(examination, ["python", "train.py"], tmp_path)
    table = page[page.index("Operations of step 2") :]
    rows = [re.sub("<[^>]*>", " ", row).split() for row in re.findall("<tr.*?</tr>", table)[1:3]]
    assert {"≠", "np.random.rand", "data.py:7"} <= {*rows[0]}
    assert {"=", "aten.mm.default", "head", "train.py:12", "2x3"} <= {*rows[1]}
