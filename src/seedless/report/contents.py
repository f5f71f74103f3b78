"""The table of contents of a page, made from the sections that the page has."""

import re

MARK = "<!-- contents -->"
# Values are escaped, so that only a template can begin a section.
_SECTION = re.compile(r'<section id="([\w-]+)">\s*<h2>(.*?)</h2>', re.DOTALL)
_MIN_SECTIONS = 3  # sections; a page with fewer has no table of contents


def add_contents(page: str) -> str:
    """Return a page with links to its sections where the template has the mark, if it has many.

    >>> add_contents(MARK + '<section id="a"><h2>A</h2></section>').startswith("<section")
    True
    """
    sections = _SECTION.findall(page)
    if len(sections) < _MIN_SECTIONS:
        return page.replace(MARK, "")
    links = "".join(f'<li><a href="#{name}">{title.strip()}</a></li>' for name, title in sections)
    contents = f'<nav class="contents" aria-label="Contents"><ul>{links}</ul></nav>'
    return page.replace(MARK, contents, 1)
