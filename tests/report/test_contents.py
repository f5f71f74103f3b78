"""The table of contents lists every section of a page, and none that is not there."""

from seedless.report.contents import MARK, add_contents


def make_page(*names):
    sections = [f'<section id="{name}">\n  <h2>About {name}</h2></section>' for name in names]
    return f"<header></header>{MARK}{''.join(sections)}"


def test_every_section_has_a_link():
    page = add_contents(make_page("a", "b", "c"))
    assert page.count("<nav") == 1
    for name in "abc":
        assert f'<a href="#{name}">About {name}</a>' in page
    assert MARK not in page


def test_a_short_page_has_none():
    assert add_contents(make_page("a", "b")) == make_page("a", "b").replace(MARK, "")
