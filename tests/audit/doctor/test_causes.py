"""The list of causes and the page that describes it."""

import re

import pytest

from seedless.audit.doctor.causes import CAUSES
from tests.conftest import ROOT

WORDS = {"line", "op", "generator", "call", "name", "advice", "earlier", "stable"}


@pytest.mark.parametrize("code", CAUSES)
def test_a_remedy_uses_known_words(code):
    cause = CAUSES[code]
    assert set(re.findall(r"\{(\w+)\}", cause.title + cause.remedy)) <= WORDS
    assert not cause.remedy.endswith(".")
    assert cause.title[0].islower() or cause.title.startswith(("{op}", "cuDNN"))


def test_the_page_lists_every_cause_in_order():
    page = (ROOT / "docs" / "reference" / "doctor.md").read_text()
    rows = re.findall(r"^\| `([a-z0-9-]+)` \| (.*) \|$", page.split("## Causes")[1], re.MULTILINE)
    titles = [(code, cause.title.replace("{op}", "an operation")) for code, cause in CAUSES.items()]
    assert rows == titles
