"""The page in a browser: nothing fails, every figure is seen, and a phone need not scroll aside."""

import json
import re
import shutil
import subprocess

import pytest

from seedless.analysis.run_report import report
from seedless.report.doctor_page import render_doctor_page
from tests.analysis.test_run_report import digest_of, make_run
from tests.report import test_doctor_page as doctor

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no chromium here: `make browser`")

# Put into a copy whose policy allows it: the page itself runs no script.
PROBE = """<script>
addEventListener("load", () => {
  const seen = [...document.querySelectorAll("svg, img")].map(one => {
    const box = one.getBoundingClientRect();
    return {kind: one.tagName, width: box.width, height: box.height,
            loaded: one.tagName !== "IMG" || one.naturalWidth > 0};
  });
  const wide = document.documentElement.scrollWidth - innerWidth;
  document.body.dataset.probe = JSON.stringify({seen, wide, hex:
    [...document.querySelectorAll("code.hex")].map(one => one.textContent)});
});
</script>"""


def open_page(page, width):
    """Return the document as the browser has it, and what it complained about."""
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    done = subprocess.run(
        [*command, f"--window-size={width},900", "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
    )
    complaints = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    return done.stdout, complaints


def probe(page, width):
    copy = page.with_name(f"probe-{page.name}")
    text = re.sub(r"<meta http-equiv=.*?>", "", page.read_text(), count=1)
    copy.write_text(text.replace("</body>", f"{PROBE}</body>"))
    found, complaints = open_page(copy, width)
    assert complaints == []
    data = re.search(r'data-probe="(.*?)"', found)[1].replace("&quot;", '"').replace("&amp;", "&")
    return json.loads(data)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    runs = [make_run(folder / f"seed-{seed}", seed=seed) for seed in (0, 1)]
    one = report(*runs[:1], out=folder / "one.html")
    return runs, one, report(*runs, out=folder / "many.html")


@pytest.mark.parametrize("width", [390, 1280])
def test_every_figure_is_seen_and_nothing_sticks_out(pages, width):
    runs, one, many = pages
    for page in (one, many):
        found = probe(page, width)
        figures = [seen for seen in found["seen"] if seen["kind"] in ("svg", "IMG")]
        assert len(figures) > 10
        for figure in figures:
            assert figure["loaded"]
            assert figure["width"] > 20, figure
            assert figure["height"] > 8, figure
        assert found["wide"] <= 0, f"{page.name} is {found['wide']} px too wide at {width}"
    shown = probe(one, width)["hex"]
    assert digest_of(runs[0]).removeprefix("sha256:") in shown


def test_the_page_of_two_runs_that_differ_needs_no_scrolling_aside(tmp_path):
    runs = tuple(doctor.DoctorRun(f"run {n}", doctor.make_records("x" * n)) for n in (1, 2))
    ops = doctor.pair_ops()
    long = {**doctor.DIAGNOSIS, "line": "a/" * 90 + "train.py:6", "evidence": ["e" * 900]}
    page = tmp_path / "doctor.html"
    page.write_text(
        render_doctor_page(long, runs, command=["python", "x" * 500], folder=tmp_path, ops=ops)
    )
    for width in (390, 1280):
        assert probe(page, width)["wide"] <= 0, width


def test_the_page_as_it_is_makes_the_browser_complain_of_nothing(pages):
    _, one, many = pages
    for page in (one, many):
        text, complaints = open_page(page, 1000)
        assert "<main>" in text
        assert complaints == []


def test_negative_control_a_request_or_a_script_would_be_noticed(pages):
    _, one, _ = pages
    page = one.with_name("broken.html")
    broken = '<script>1</script><img src="https://example.org/a.png"></body>'
    page.write_text(one.read_text().replace("</body>", broken))
    assert open_page(page, 1000)[1]
