"""The documentation: every link leads somewhere, every program it names is there."""

import os
import re

import pytest

from tests.conftest import ROOT

PAGES = sorted(
    path.relative_to(ROOT)
    for pattern in ("*.md", "docs/**/*.md", "src/**/*.md")
    for path in ROOT.glob(pattern)
)
FENCED = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_link_leads_somewhere(page):
    for target in LINK.findall(FENCED.sub("", (ROOT / page).read_text())):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        file = (ROOT / page).parent / path if path else ROOT / page
        assert file.exists(), target
        assert not os.path.isabs(path), target
        if anchor:
            assert anchor in list_anchors(file.read_text()), target


def list_anchors(text):
    """The anchors that Markdown makes of headings: lower case, words joined by hyphens."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", text), re.MULTILINE)
    kept = (re.sub(r"[^\w\s-]", "", heading.replace("`", "")).strip() for heading in headings)
    return {re.sub(r"[\s]", "-", heading.lower()) for heading in kept}


def test_no_page_of_the_former_shelf_is_left():
    assert {path.name for path in (ROOT / "docs").glob("*.md")} <= {
        "index.md",
        "receipt.md",
        "speed.md",
    }
