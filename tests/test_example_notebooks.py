"""The notebooks under examples/ run from the first cell to the last, at small size."""

import json

import pytest

from tests.conftest import ROOT

SMALL = {
    "own-ecgs": "RECORDS, EPOCHS = 60, 2",
    "own-images": "IMAGES, EPOCHS = 60, 2",
    "own-loop": "SAMPLES, EPOCHS = 64, 2",
}
EXPECTED = {
    "own-ecgs": [
        "the same bits: True",
        "a replicate has other bits: True",
        "identical in every bit",
    ],
    "own-images": ["paired t", "identical in every bit"],
    "own-loop": ["IDENTICAL: every step", "THEY DIFFER", "unseeded-weights, certain"],
}


def read_code(name: str, parameters: str) -> str:
    """Return the code of a notebook, with other values in the cell that is tagged for them."""
    cells = json.loads((ROOT / "examples" / f"{name}.ipynb").read_text())["cells"]
    tagged = [cell for cell in cells if "parameters" in cell["metadata"].get("tags", ())]
    assert len(tagged) == 1
    tagged[0]["source"] = [parameters]
    return "\n\n".join("".join(one["source"]) for one in cells if one["cell_type"] == "code")


def test_every_notebook_is_run():
    assert {path.stem for path in (ROOT / "examples").glob("*.ipynb")} == set(SMALL)


@pytest.mark.parametrize("name", SMALL)
def test_a_notebook_runs_to_its_end(name, run_python, tmp_path):
    script = tmp_path / "cells.py"
    begin = f"import os\n\nos.chdir({str(tmp_path)!r})\n\n"
    script.write_text(begin + read_code(name, SMALL[name]))
    out = run_python(str(script), MPLBACKEND="agg").stdout
    assert [sentence for sentence in EXPECTED[name] if sentence not in out] == []
