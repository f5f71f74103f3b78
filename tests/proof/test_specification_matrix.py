"""docs/reference/receipt-tests.md has a row for all that is specified; its tests exist."""

import ast
import re
from pathlib import Path

import pytest

from seedless.proof.receipt import FIELDS, SCHEMA, get_major

ROOT = Path(__file__).parents[2]
SPECIFICATION = (ROOT / "docs/receipt.md").read_text()
MATRIX = (ROOT / "docs/reference/receipt-tests.md").read_text()
SECTIONS, FIELD_ROWS = MATRIX.split("## Fields of the receipt")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", MATRIX)))


def test_every_section_has_a_row():
    expected = set(re.findall(r"^## (.+)$", SPECIFICATION, re.MULTILINE))
    rows = {line.split("|")[1].strip() for line in SECTIONS.splitlines() if line.startswith("| ")}
    assert expected - rows == set()
    assert rows - expected == {"section"}


def test_every_field_has_a_row():
    named = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (.+?) \|", FIELD_ROWS, re.MULTILINE)))
    assert sorted(named) == sorted(FIELDS[get_major(SCHEMA)][("predicate",)])


@pytest.mark.parametrize(("file", "test"), NAMED)
def test_every_test_exists(file, test):
    tree = ast.parse((ROOT / file).read_text())
    assert not test or test in {node.name for node in tree.body if hasattr(node, "name")}
