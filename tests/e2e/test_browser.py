"""The page in a browser: nothing fails, every figure is seen, and a phone need not scroll aside."""

import itertools
import re
from types import SimpleNamespace

import pytest
import torch

import seedless
from seedless.analysis.attribute import attribute_run
from seedless.analysis.attribution_page import render_explained
from seedless.analysis.run_report import report, view_run
from seedless.report.doctor_page import render_doctor_page
from seedless.report.page import render_page
from seedless.report.progress_page import render_progress
from seedless.runs.validation import open_validated
from seedless.studies.engine.page import render_study
from seedless.studies.engine.table import Table
from seedless.train.log import LOG_FILE, read_log
from tests.analysis.test_run_report import digest_of, make_run
from tests.browser import BROWSER, Browser
from tests.report import test_doctor_page as doctor
from tests.script_runs import make_steps, write_script_run
from tests.small import IMAGES, train_small
from tests.tiny import flags_restored

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no chromium here: `make browser`")

PHONE, DESK = 400, 1400

PROBE = """(() => {
  const seen = [...document.querySelectorAll("svg, img")].map(one => {
    const box = one.getBoundingClientRect();
    return {kind: one.tagName, width: box.width, height: box.height,
            loaded: one.tagName !== "IMG" || one.naturalWidth > 0};
  });
  const cut = [...document.querySelectorAll(".scroll")]
    .filter(one => one.querySelector("table.stack") && one.scrollWidth > one.clientWidth)
    .map(one => one.getAttribute("aria-label"));
  const tall = [...document.querySelectorAll(".scroll code.hex")]
    .filter(one => one.getBoundingClientRect().height > 60).length;
  const levels = [...document.querySelectorAll("h1, h2, h3, h4")].map(one => +one.tagName[1]);
  const silent = [...document.querySelectorAll("img")].filter(one => !one.alt.trim()).length
    + [...document.querySelectorAll("svg:not([aria-hidden])")]
      .filter(one => !one.getAttribute("aria-label")).length;
  return {seen, cut, tall, levels, silent, width: innerWidth,
    wide: document.documentElement.scrollWidth,
    hex: [...document.querySelectorAll("code.hex")].map(one => one.textContent)};
})()"""

# The contrast of every text with the nearest background below it, as WCAG 2.1 defines it. Colours
# are painted on a canvas, which knows all of their notations.
FAINT = """(() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const paint = colours => {
    canvas.clearRect(0, 0, 1, 1);
    for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = rgb => rgb.map(value => value / 255)
    .map(value => value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)
    .reduce((sum, value, place) => sum + value * [0.2126, 0.7152, 0.0722][place], 0);
  const faint = new Set();
  for (const one of document.querySelectorAll("body *")) {
    const own = [...one.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    if (!own || one.closest(".unseen") || !one.getBoundingClientRect().width) continue;
    const below = [];
    for (let at = one; at; at = at.parentElement)
      below.unshift(getComputedStyle(at).backgroundColor);
    const isDrawn = one.closest("svg") !== null;
    const style = getComputedStyle(one);
    const back = paint(below), front = paint([...below, isDrawn ? style.fill : style.color]);
    const [low, high] = [light(back), light(front)].sort((a, b) => a - b);
    if ((high + 0.05) / (low + 0.05) < 4.5)
      faint.add(`${one.tagName}.${one.className}: ${one.textContent.trim().slice(0, 30)}`);
  }
  return [...faint];
})()"""


@pytest.fixture(scope="module")
def browser():
    with Browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return [make_run(folder / f"seed-{seed}", seed=seed) for seed in (0, 1)]


@pytest.fixture(scope="module")
def pages(runs, tmp_path_factory):
    """Every kind of page, by name."""
    folder = tmp_path_factory.mktemp("pages")
    with flags_restored():
        images = train_small(folder / "images", *IMAGES)
        own = fit_line(folder / "own")
        texts = {
            "demo": render_demo(runs),
            "map": render_explained(attribute_run(runs[0], records=2), "an ECG run"),
            "image-map": render_explained(attribute_run(images, records=2), "a run"),
            "doctor": render_doctor(folder),
            "progress": render_progress("a run", read_log(runs[0] / LOG_FILE), 3, "stopped"),
            "study": render_small_study(),
        }
        made = {
            "one": report(runs[0], out=folder / "one.html"),
            "many": report(*runs, out=folder / "many.html"),
            "images-page": report(images, out=folder / "images-page.html"),
            "own-loss": report(own, out=folder / "own-loss.html"),
            "loop": report(*write_loops(folder), out=folder / "loop.html"),
        }
    for name, text in texts.items():
        made[name] = folder / f"{name}.html"
        made[name].write_text(text)
    return made


def fit_line(folder):
    """Fit a line with a loss of its own, as for a regression; return the run's folder."""
    samples = torch.arange(40 * 3.0).view(40, 3).sin()
    pair = (samples, samples.sum(1, keepdim=True))
    loss = torch.nn.functional.mse_loss
    return seedless.fit(torch.nn.Linear(3, 1), train=pair, loss=loss, epochs=3, out=folder).path


def render_demo(runs):
    labels = ("process 1", "process 2", "seed 1", "seed 2")
    views = [
        view_run(open_validated(run), label)
        for run, label in zip([runs[0], runs[0], *runs], labels, strict=True)
    ]
    return render_page(views[:2], title="seedless demo", seeds=views[2:])


def render_doctor(folder):
    pair = tuple(doctor.DoctorRun(f"run {n}", doctor.make_records("x" * n)) for n in (1, 2))
    long = {**doctor.DIAGNOSIS, "line": "a/" * 90 + "train.py:6", "evidence": ["e" * 900]}
    command = ["python", "x" * 500]
    return render_doctor_page(long, pair, command=command, folder=folder, ops=doctor.pair_ops())


def write_loops(folder):
    steps = [make_steps(3, step_2={"weights": 16 * "f"})]
    loops = [write_script_run(folder / name) for name in ("a", "b")]
    return [*loops, write_script_run(folder / "other", processes=steps)]


def render_small_study():
    digest = "sha256:" + 64 * "a"
    point = SimpleNamespace(label="kaiming at 0.01 etf / seed 0", key=16 * "b")
    outcome = SimpleNamespace(point=point, state="at chance", weights=digest, error="it failed")
    grid = SimpleNamespace(
        study="basis", points=(point,), runs=(point,), digest=digest, factor=("init.basis",)
    )
    options = SimpleNamespace(scale="smoke", data="simulated")
    columns = ("", "range, kaiming at 0.01 etf", "in words")
    table = Table("Range", columns, (("AFIB", "16.7 [5.9, 100.0]", "not shown " * 9),), ("note",))
    results = SimpleNamespace(grid=grid, outcomes=(outcome,), options=options)
    return render_study("Does it matter?", results, (table, table), b"")


def look(browser, page, width, scheme="light"):
    browser.open(page, width, scheme)
    return browser.ask(PROBE)


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_no_page_is_wider_than_the_screen(browser, pages, width):
    for name, page in pages.items():
        found = look(browser, page, width)
        assert found["width"] == width  # and not the 500 px that a browser's window has at least
        assert found["wide"] <= width, name
        assert found["cut"] == [], name


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_every_figure_is_seen(browser, pages, runs, width):
    for name in ("one", "many", "images-page"):
        found = look(browser, pages[name], width)
        assert len(found["seen"]) > 5
        for figure in found["seen"]:
            assert figure["loaded"]
            assert figure["width"] > 20, figure
            assert figure["height"] > 8, figure
    shown = look(browser, pages["one"], width)["hex"]
    assert digest_of(runs[0]).removeprefix("sha256:") in shown


def test_headings_are_in_order_and_every_picture_has_words(browser, pages):
    for name, page in pages.items():
        found = look(browser, page, DESK)
        levels = found["levels"]
        assert levels.count(1) == 1, name
        assert all(b <= a + 1 for a, b in itertools.pairwise(levels)), (name, levels)
        assert found["silent"] == 0, name


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read_on_its_background(browser, pages, scheme):
    for name, page in pages.items():
        browser.open(page, DESK, scheme)
        assert browser.ask(FAINT) == [], name


def test_a_phone_gets_a_picture_of_its_own_and_shows_it_in_its_own_size(browser, pages):
    size = "(() => { const one = document.querySelector('.example img'); return [one.width, "
    size += "one.naturalWidth, one.currentSrc.length] })()"
    for name in ("one", "map", "images-page", "image-map"):
        found = {}
        for width in (PHONE, DESK):
            browser.open(pages[name], width)
            found[width] = browser.ask(size)
        (narrow, pixels, length), (wide, more, other) = found[PHONE], found[DESK]
        # In its own size: two of its pixels are one of the page's.
        assert (narrow, wide) == (pixels // 2, more // 2), name
        assert narrow < wide
        assert length != other


def test_negative_control_what_is_looked_for_would_be_noticed(browser, pages):
    one = pages["one"]
    text = one.read_text()
    assert len(re.findall(r'<table class="[^"]*stack"', text)) == 1
    broken = one.with_name("broken.html")
    long = '<th scope="row" style="white-space:nowrap!important">' + "x" * 300 + "<"
    broken.write_text(re.sub(r'<th scope="row">[^<]*<', long, text))
    assert look(browser, broken, PHONE)["cut"]
    broken.write_text(text.replace("</main>", '<p style="width:600px">wide</p></main>'))
    assert look(browser, broken, PHONE)["wide"] > PHONE
    faint = '<p style="color:#999;background:#aaa">faint</p><h4>deep</h4><img src=""></main>'
    broken.write_text(text.replace("</main>", faint))
    found = look(browser, broken, DESK)
    assert found["levels"][-1] == 4
    assert found["silent"] == 1
    assert browser.ask(FAINT) == ["P.: faint"]


def test_the_digests_of_a_loop_are_each_on_one_line(browser, pages):
    page = pages["loop"]
    for width in (PHONE, DESK):
        assert look(browser, page, width)["tall"] == 0, width
    # Negative control: a digest that is broken at every letter is noticed.
    broken = page.with_name("broken-loop.html")
    narrow = (
        '<code class="hex" style="display:block;width:1ch;white-space:normal;word-break:break-all"'
    )
    broken.write_text(page.read_text().replace('<code class="hex"', narrow))
    assert look(browser, broken, PHONE)["tall"]


def test_no_page_makes_the_browser_complain(browser, pages):
    for name, page in pages.items():
        browser.open(page, 1000)
        assert browser.ask("document.querySelector('main') !== null")
        assert browser.complaints == [], name


def test_negative_control_a_request_or_a_script_would_be_noticed(browser, pages):
    page = pages["one"].with_name("outside.html")
    broken = '<script>1</script><img src="https://example.org/a.png"></body>'
    page.write_text(pages["one"].read_text().replace("</body>", broken))
    browser.open(page, 1000)
    browser.ask("1")
    assert browser.complaints
