"""A study's page: whole, closed to the outside, escaped, and the same bytes every time."""

import base64
import json
import re
from html.parser import HTMLParser

import pytest

from seedless.studies.catalog import open_study
from seedless.studies.engine.page import render_study, report_study
from seedless.studies.engine.results import Results, read_results
from seedless.studies.engine.runner import write_study
from seedless.studies.engine.store import Outcome, Store
from seedless.studies.engine.table import Table
from tests.report.test_page import have_every_level
from tests.studies.conftest import SMOKE
from tests.studies.plans import plan

NAME = "cifar100"


@pytest.fixture(scope="module")
def results(smoke_store):
    return read_results(open_study(NAME).make(SMOKE), Store(smoke_store), SMOKE)


class Reader(HTMLParser):
    """Collects tags, what they refer to, and the text between them."""

    def __init__(self):
        super().__init__()
        self.tags, self.references, self.text = [], [], ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.references += [v for k, v in attrs if k in ("src", "href", "action", "data")]

    def handle_data(self, data):
        self.text += data


def read(text):
    reader = Reader()
    reader.feed(text)
    return reader


def test_the_page_holds_the_question_the_tables_the_figure_and_every_run(smoke_store, tmp_path):
    page = report_study(plan(NAME, SMOKE), Store(smoke_store), tmp_path / "page.html")
    found = read(page.read_text(encoding="utf-8"))
    written = write_study(plan(NAME, SMOKE), Store(smoke_store))
    study, store = open_study(NAME), Store(smoke_store)
    grid = study.make(SMOKE)
    assert study.question in found.text
    assert grid.digest in found.text
    for table in written.tables:
        assert table.title in found.text
        assert all(cell in found.text for row in table.rows for cell in row)
    for point in grid.points:
        outcome = store.read(point)
        assert point.key in found.text
        assert outcome.weights.removeprefix("sha256:") in found.text
    (figure,) = [place for place in found.references if not place.startswith("#")]
    content = base64.b64decode(figure.removeprefix("data:image/png;base64,"))
    assert content == written.figure.read_bytes()


def test_the_page_asks_for_nothing_and_runs_nothing(smoke_store, tmp_path):
    text = report_study(plan(NAME, SMOKE), Store(smoke_store), tmp_path / "page.html").read_text(
        "utf-8"
    )
    found = read(text)
    assert "script" not in found.tags
    assert "link" not in found.tags
    assert all(reference.startswith(("data:", "#")) for reference in found.references)
    assert not re.findall(r"(?:https?:)?//[\w.]+", re.sub(r"base64,[^\"]+", "", text))
    assert "default-src 'none'" in text
    assert str(smoke_store) not in text


def test_every_value_has_its_heading_beside_it_on_a_phone(results):
    table = Table("Scores", ("", "runs", "AUC"), (("a", "2", "0.9"), ("b", "3", "0.8")))
    text = render_study("", results, (table,), b"")
    body = text.split('<table class="stack">')[1].split("</table>")[0]
    assert re.findall(r'<td data-label="([^"]*)"', body) == ["runs", "AUC"] * 2
    assert have_every_level(text)


def test_the_page_repeats_to_the_byte(smoke_store, tmp_path):
    first, second = (
        report_study(plan(NAME, SMOKE), Store(smoke_store), tmp_path / f"{n}.html").read_bytes()
        for n in "ab"
    )
    assert first == second


def test_everything_is_escaped(results):
    evil = "<script>alert('x')</script>"
    table = Table(evil, (evil, evil), ((evil, evil),), (evil,))
    failed = Outcome(results.outcomes[0].point, results.outcomes[0].run, None, None, evil)
    broken = Results(results.grid, (failed, *results.outcomes[1:]), results.options)
    text = render_study("", broken, (table,), b"")
    assert "<script" not in text
    assert text.count("&lt;script&gt;") == 11  # 9 in the tables and notes, contents and alt text
    assert "Runs that failed" in text


def test_a_page_without_failures_speaks_of_none(results):
    assert "Runs that failed" not in render_study("", results, (), b"")


def test_the_command_writes_it(run_seedless, smoke_store, tmp_path):
    out = tmp_path / "page.html"
    common = ["--device", "cpu", "--store", str(smoke_store)]
    command = ["study", "report", NAME, *common, "--out", str(out), "--json"]
    done = run_seedless(*command)
    assert json.loads(done.stdout) == {"page": str(out)}
    assert "Study cifar100" in out.read_text("utf-8")
    done = run_seedless(*command[:-3], str(tmp_path / "no" / "page.html"), check=False)
    assert done.returncode == 2
