"""Every study at its smallest, in one store: each ends in a table, a figure and a page."""

import json
import shutil

import pytest
from PIL import Image

from seedless.studies.catalog import STUDIES, open_study
from seedless.studies.engine.page import report_study
from seedless.studies.engine.runner import write_study
from seedless.studies.engine.store import Store
from tests.studies.conftest import SMOKE
from tests.studies.plans import plan


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_ends_in_a_table_and_a_figure(smoke_store, name):
    page = report_study(plan(name, SMOKE), Store(smoke_store))
    written = page.with_suffix("")
    text = written.with_suffix(".md").read_text(encoding="utf-8")
    study = open_study(name)
    grid = study.make(SMOKE)
    assert study.question in text
    assert grid.digest in text
    tables = json.loads(written.with_suffix(".json").read_bytes())["tables"]
    assert tables
    for table in tables:
        assert table["rows"], table["title"]
        assert {len(row) for row in table["rows"]} == {len(table["columns"])}
    with Image.open(written.with_suffix(".png")) as image:
        assert image.width > 400
        assert len(image.getcolors(1 << 24)) > 20
    store = Store(smoke_store)
    assert [p.label for p in grid.points if store.state(p) != "done"] == []


@pytest.mark.parametrize("name", ["medmnist", "demographics"])
def test_tables_and_figures_repeat_to_the_byte(smoke_store, tmp_path, name):
    """From a copy of the store elsewhere: no path and no time gets in."""
    copy = tmp_path / "elsewhere"
    grid, store = open_study(name).make(SMOKE), Store(smoke_store)
    for key in {point.key for point in grid.points}:
        shutil.copytree(smoke_store / "runs" / key, copy / "runs" / key)
    here, there = (write_study(plan(name, SMOKE), Store(folder)) for folder in (store.folder, copy))
    for suffix in (".md", ".json", ".png"):
        first = here.markdown.with_suffix(suffix).read_bytes()
        assert there.markdown.with_suffix(suffix).read_bytes() == first
