"""The run of a script, written when receipts of scripts were new: it must stay valid and repeat.

script/work  the script and its data; every number in it is exact, whatever the machine
script/run   its run
"""

import json
import shutil
from fractions import Fraction

import seedless
from seedless.core.files import hash_file
from seedless.runs.script_run import open_script
from tests.conftest import ROOT

FOLDER = ROOT / "tests" / "golden" / "script"
RUN, WORK = FOLDER / "run", FOLDER / "work"


def test_it_validates():
    verdict = seedless.verify(RUN, validate_only=True)
    assert (verdict.outcome, verdict.details) == ("consistent", ())
    run = open_script(RUN)
    assert (run.claims["schema"], run.claims["kind"]) == ("2.1", "script")
    assert run.script["command"] == ["python", "train.py"]
    assert [file["path"] for file in run.data] == ["table.json"]
    assert [line["step"] for line in run.trails[0][1:]] == [1, 2]


def test_it_repeats_to_the_bit():
    verdict = seedless.verify(RUN, execute_script=True, sources=WORK)
    assert verdict.outcome == "identical", verdict


def test_its_output_is_what_exact_arithmetic_gives(tmp_path):
    """The same two steps in fractions, without any rounding."""
    rows = [[Fraction(x) for x in row] for row in json.loads((WORK / "table.json").read_text())]
    weights, bias = [Fraction(1, 2), Fraction(-1, 4)], Fraction(1, 8)
    for part in (rows[:2], rows[2:]):
        errors = [
            sum(w * x for w, x in zip(weights, row, strict=False)) + bias - row[2] for row in part
        ]
        slopes = [sum(e * row[k] for e, row in zip(errors, part, strict=True)) for k in (0, 1)]
        weights = [w - slope / 2 for w, slope in zip(weights, slopes, strict=True)]
        bias -= sum(errors) / 2
    text = json.dumps({"weight": [[float(w) for w in weights]], "bias": [float(bias)]})
    (tmp_path / "weights.json").write_text(text)
    known = open_script(RUN).script["outputs"]["weights.json"]
    assert known["digest"] == hash_file(tmp_path / "weights.json")


# Negative control


def test_one_flipped_bit_is_found(tmp_path):
    run = shutil.copytree(RUN, tmp_path / "run")
    content = bytearray((run / "trail.jsonl").read_bytes())
    content[-80] ^= 1
    (run / "trail.jsonl").write_bytes(content)
    assert seedless.verify(run).outcome == "invalid"
