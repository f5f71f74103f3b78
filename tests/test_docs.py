"""The documentation: every link leads somewhere, every program it names is there."""

import ast
import importlib.util
import os
import re
import textwrap

import pytest

from benchmarks import demo, speed
from tests.browser import BROWSER, Browser
from tests.conftest import ROOT

PAGES = sorted(
    path.relative_to(ROOT)
    for pattern in ("*.md", "docs/**/*.md", "src/**/*.md")
    for path in ROOT.glob(pattern)
    if "templates" not in path.parts
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


CODE = re.compile(r"^ *```python\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
NAMED = re.compile(r"`(seedless(?:\.\w+)+)`")


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_name_of_the_library_that_a_page_uses_exists(page):
    text = (ROOT / page).read_text()
    for name in {*NAMED.findall(text), *find_names(CODE.findall(text))}:
        resolve(name)


def find_names(blocks):
    """The full names that examples import from the library, or read as attributes of it."""
    for block in blocks:
        for node in ast.walk(ast.parse(textwrap.dedent(block))):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("seedless"):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
            elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "seedless":
                yield f"seedless.{node.attr}"


def resolve(name):
    """What a full name stands for: a module, or an attribute of one."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        module = ".".join(parts[:count])
        if importlib.util.find_spec(parts[0]) and find_module(module):
            found = importlib.import_module(module)
            for attribute in parts[count:]:
                found = getattr(found, attribute)
            return found
    raise AssertionError(name)


def find_module(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


ARCHITECTURE = (ROOT / "docs" / "explanation" / "architecture.md").read_text()


def list_walks():
    """The files and functions of each walk through the code: {title: [(file, name), ...]}."""
    sections = re.split(r"^## ", ARCHITECTURE, flags=re.MULTILINE)
    walks = {part.split("\n")[0]: part for part in sections if part.startswith("The walk")}
    return {title: re.findall(r"`([\w/]+\.py):([\w.]+)`", part) for title, part in walks.items()}


def test_the_walks_name_functions_that_exist():
    walks = list_walks()
    assert len(walks) == 3
    for title, steps in walks.items():
        assert len(steps) >= 8, title
        for file, name in steps:
            tree = ast.parse((ROOT / "src" / "seedless" / file).read_text())
            for part in name.split("."):
                tree = next((one for one in tree.body if getattr(one, "name", "") == part), None)
                assert tree is not None, f"{file}:{name}"


def test_the_walks_are_short():
    files = [len({file for file, _ in steps}) for steps in list_walks().values()]
    assert all(count <= most for count, most in zip(files, (25, 13, 12), strict=True)), files


@pytest.fixture(scope="session")
def site(tmp_path_factory, run_python):
    """The documentation, built with warnings as errors: with --quiet they are not counted."""
    folder = tmp_path_factory.mktemp("site")
    run_python("-m", "mkdocs", "build", "--strict", "--site-dir", str(folder))
    return folder


def test_the_site_describes_every_public_name(site):
    for package in (ROOT / "src" / "seedless").rglob("__init__.py"):
        module = ".".join(package.parent.relative_to(ROOT / "src").parts)
        names = set(getattr(importlib.import_module(module), "__all__", [])) - {"__version__"}
        if names:
            page = (site / "reference" / "api" / f"{module}.html").read_text()
            for name in names:
                assert f"{module}.{name}" in page


@pytest.mark.skipif(BROWSER is None, reason="needs Chromium: make browser")
def test_the_menu_of_colours_works_and_scripts_of_the_theme_run(site):
    with Browser() as browser:
        browser.open(site / "tutorial" / "first-run.html", 1400)
        # Without a server a page may not start the worker of the search.
        assert [one for one in browser.complaints if "search/worker.js" not in one] == []
        for colours in ("dark", "light"):
            browser.ask(f"document.querySelector('[data-bs-theme-value={colours}]').click()")
            assert browser.ask("document.documentElement.dataset.bsTheme") == colours


def test_the_site_loads_nothing_from_elsewhere(site):
    loads = re.compile(
        r"""<(?:script|img|iframe)[^>]+src=["']?(?:https?:)?//|<link[^>]+href=["']?(?:https?:)?//"""
        r"""|url\(["']?(?:https?:)?//|@import"""
    )
    files = [path for kind in ("*.html", "*.css", "*.svg") for path in site.rglob(kind)]
    assert len(files) > 30
    for file in files:
        found = loads.search(file.read_text())
        assert found is None, f"{file.relative_to(site)}: {found[0]}"


def test_pages_that_programs_write_are_what_the_records_say():
    assert speed.PAGE.read_text() == speed.make_page(), "run python -m benchmarks.speed"
    assert demo.PICTURE.read_text() == demo.draw(), "run python -m benchmarks.demo --draw"


def test_no_page_of_the_former_shelf_is_left():
    assert {path.name for path in (ROOT / "docs").glob("*.md")} <= {
        "index.md",
        "receipt.md",
        "speed.md",
    }
