"""The page of a run: says no more than its digests do, asks nothing of anyone, repeats."""

import base64
import hashlib
import itertools
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from seedless.core.errors import RunError, SeedlessError
from seedless.report.example_pictures import Example
from seedless.report.learning_curves import (
    MOST_TOLD_APART,
    Series,
    choose_roles,
    draw_curves,
    draw_fingerprint,
)
from seedless.report.page import Verdict, render_page, write_page
from seedless.report.run_view import find_difference, make_view, same_bits

SAME = Verdict("identical", "Nine epochs, 66 tensors each, compared one by one.", 41.27)
VOID = {"br", "img", "meta", "circle", "path", "source"}


def sha(*parts):
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def entry_state(epoch, flipped):
    salt = "flipped" if flipped is not None and epoch >= flipped else ""
    return {f"model/stage.{k}.weight": sha(epoch, k, salt) for k in range(66)}


def make_run(folder, *, epochs=8, flipped=None, settings=None, classes=None, threads=2, moved=()):
    """Write a run folder; from epoch ``flipped`` on its bits are others."""
    folder.mkdir()
    salt = "" if flipped is None else "flipped"
    config = {
        "data": {"name": "simulated", "path": None, "records": 1500},
        "model": {"name": "conformer", "leads": 12, "small": True},
        "init": {"basis": "mixed", "residual_scale": 0.01},
        "order": {"name": "content", "batch_size": 32},
        "train": {"epochs": epochs, "rate": 0.001, "microbatch": None},
        **(settings or {}),
    }
    classes = classes or {
        "SR": {"auc": 0.9512, "positives": 101},
        "AF": {"auc": 0.8841, "positives": 23},
        "LBBB": {"auc": 0.9977, "positives": 4},
        "PVC": {"auc": None, "positives": 0},
    }
    scored = {"n": 153, "macro_auc": 0.9306, "classes": classes}
    metrics = {
        "selected": {"epoch": epochs, "metric": "macro_auc", "score": 0.9312},
        "converged": True,
        "validation": {**scored, "n": 152},
        "test": scored,
    }
    receipt = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "weights.safetensors", "digest": {"sha256": sha("file", salt)}}],
        "predicateType": "urn:seedless:receipt:1",
        "predicate": {
            "kind": "train",
            "weights": {"digest": f"sha256:{sha('state', salt)}", "md5": sha(salt)[:32]},
            "config": {"digest": f"sha256:{sha(config)}", "values": config},
            "data": {
                "name": "simulated",
                "records": {"train": 1195, "val": 152, "test": 153},
                "classes": sorted(classes, reverse=True),
            },
            "model": {"parameters": 26322, "type": "Conformer"},
            "promise": {"same_bits": not moved, "generators_moved": moved},
            "environment": {
                "python": "3.11.7",
                "platform": "Linux-6.1-x86_64",
                "packages": {"torch": "2.13.0+cpu", "numpy": "2.1.0"},
                "cpu": {"model": "A processor of some kind @ 2.60GHz", "capability": "AVX512"},
                "devices": [],
                "threads": {"intraop": threads, "interop": 1},
                "flags": {"deterministic_algorithms": True},
            },
            "metrics": metrics,
        },
    }
    trail, log = [], []
    for epoch in range(epochs + 1):
        state = entry_state(epoch, flipped)
        link = f"sha256:{sha(config, threads, epoch, state)}"
        trail.append({"epoch": epoch, "step": 38 * epoch, "state": state, "digest": link})
        if epoch:
            drift = 0.004 * (flipped is not None and epoch >= flipped)
            score = 0.95 - 0.25 / epoch - drift if epoch % 2 == 0 else None
            loss = 0.12 + 0.3 / epoch + drift
            log.append({"epoch": epoch, "step": 38 * epoch, "loss": loss, "score": score})
    write_json(folder / "receipt.json", receipt)
    write_json(folder / "metrics.json", metrics)
    (folder / "trail.jsonl").write_text("".join(json.dumps(line) + "\n" for line in trail))
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in log))
    (folder / "config.toml").write_text('[model]\nname = "conformer"\n')
    return folder


def read_run(folder, label):
    """Return the view of a folder that `make_run` wrote."""

    def read_lines(name):
        return [json.loads(line) for line in (folder / name).read_text().splitlines()]

    receipt = json.loads((folder / "receipt.json").read_text())
    config = (folder / "config.toml").read_text()
    return make_view(label, receipt, config, read_lines("trail.jsonl"), read_lines("log.jsonl"))


def write_json(path, value):
    path.write_text(json.dumps(value))


@pytest.fixture
def two(tmp_path):
    return [read_run(make_run(tmp_path / name), f"Process {name}") for name in "AB"]


@pytest.fixture
def control(tmp_path):
    settings = {"control": {"flip_bit": "head.weight:7:0", "at_step": 0}}
    return read_run(make_run(tmp_path / "C", flipped=1, settings=settings), "One bit flipped")


def write(tmp_path, runs, **options):
    text = render_page(runs, title="The demo", **options)
    page = write_page(tmp_path / "report.html", text)
    return page.read_text(encoding="utf-8")


def headline(page):
    return re.sub("<[^>]+>", "", page.split("<h1>")[1].split("</h1>")[0])


class Balance(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.links, self.tags = [], [], set()

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.links += [value for name, value in attributes if name in ("src", "href", "srcset")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def parse(page):
    found = Balance()
    found.feed(page)
    assert found.open == []
    return found


def test_the_headline_says_identical_with_both_hashes(tmp_path, two, control):
    page = write(tmp_path, two, verdict=SAME, controls=[control])
    assert "Two processes, one model: identical in every bit" in headline(page)
    assert 'class="hero good"' in page
    for run in two:
        assert run.label in page
        assert all(f">{value}<" in page for _, value in run.hashes)
    assert SAME.sentence in page
    assert "41.3 s" in page
    assert "same kind of machine" in page


def test_it_loads_nothing_runs_nothing_and_is_well_formed(tmp_path, two, control):
    png = base64.b64encode(b"png").decode()
    pictures = [Example("a PNG", png, narrow=png), Example("an SVG", "<svg></svg>")]
    page = write(tmp_path, two, verdict=SAME, controls=[control], examples=pictures)
    found = parse(page)
    assert found.links
    assert all(link.startswith(("data:image/", "#")) for link in found.links)
    inner = [link[1:] for link in found.links if link.startswith("#")]
    assert len(inner) > 5
    assert all(page.count(f'<section id="{name}">') == 1 for name in inner)
    assert not {"script", "link", "iframe", "object", "embed"} & found.tags
    style = page.split("<style>")[1].split("</style>")[0]
    assert not re.search(r"url\(|@import|https?:", style)
    assert "default-src 'none'" in page
    assert str(tmp_path) not in page


def test_equal_runs_give_equal_bytes(tmp_path):
    pages = []
    for place in ("here", "there"):
        (tmp_path / place).mkdir()
        run = read_run(make_run(tmp_path / place / "run"), "A")
        pages.append(write(tmp_path / place, [run], verdict=SAME))
    assert pages[0] == pages[1]
    assert [p.name for p in (tmp_path / "here").iterdir() if p.name.startswith(".")] == []


def test_names_from_outside_are_text_and_not_markup(tmp_path):
    evil = "<script>alert(1)</script>\"'&"
    classes = {evil: {"auc": 0.5, "positives": 20}}
    folder = make_run(tmp_path / "A", classes=classes, settings={evil: {evil: evil}})
    (folder / "config.toml").write_text(f"# {evil}\n")
    runs = [read_run(folder, evil), read_run(folder, evil)]
    verdict = Verdict("identical", evil)
    page = render_page(runs, title=evil, verdict=verdict, examples=[Example(evil, "", "", evil)])
    assert "<script" not in page
    assert "script" not in parse(page).tags
    assert page.count("&lt;script&gt;") > 8


def test_differing_digests_are_marked_and_the_first_epoch_is_named(tmp_path, two):
    other = read_run(make_run(tmp_path / "D", flipped=3), "Process D")
    assert find_difference(two[0], other) == 3
    page = write(tmp_path, [two[0], other], verdict=Verdict("differs", "They part."))
    assert "differ from epoch 3 on" in headline(page)
    assert 'class="hero bad"' in page
    table = page.split('<table class="digests">')[1].split("</table>")[0]
    assert table.count('<td class="differs"') == table.count(">≠<") == 6
    assert table.count('<td class="same"') == table.count(">=<") == 3
    assert all(f'title="{e.state.removeprefix("sha256:")}"' in table for e in other.trail)


def test_a_page_never_claims_more_than_its_digests(tmp_path, two, control):
    with pytest.raises(SeedlessError, match="differ from epoch 1 on"):
        write(tmp_path, [two[0], control], verdict=SAME)
    assert not (tmp_path / "report.html").exists()


def test_the_control_is_explained_and_judged_by_bits_alone(tmp_path, two, control):
    page = write(tmp_path, two, verdict=SAME, controls=[control])
    section = page.split('id="control"')[1].split("</section>")[0]
    assert "differs from epoch 1 on" in section
    assert "8 of 9 states" in section
    assert "bit 0 of element 7 of <code>head.weight</code>" in section
    assert "before step 1." in section
    # A control whose settings were recorded but whose bit was never flipped has other links in its
    # chain and the same bits: it must not pass for a control that works.
    settings = {"control": {"flip_bit": "head.weight:7:0", "at_step": 0}}
    idle = read_run(make_run(tmp_path / "E", settings=settings), "Idle control")
    assert idle.trail[0].digest != two[0].trail[0].digest
    assert same_bits(idle, two[0])
    page = write(tmp_path, two, verdict=SAME, controls=[idle])
    assert "nothing here is proven" in headline(page)
    assert 'class="hero bad"' in page
    assert "Idle control did not differ" in page


@pytest.mark.parametrize(
    ("outcome", "text", "tone"),
    [
        ("identical", "Run again, the same model: identical in every bit", "good"),
        ("differs", "a repeat gave other bits", "bad"),
        ("cannot judge", "Cannot be decided on this machine", "unsure"),
        ("invalid", "Not a valid run", "bad"),
    ],
)
def test_each_outcome_of_a_single_run_has_its_headline(tmp_path, two, outcome, text, tone):
    page = write(tmp_path, two[:1], verdict=Verdict(outcome, "So it is."))
    assert text in headline(page)
    assert f'class="hero {tone}"' in page


def test_an_unknown_outcome_is_refused():
    with pytest.raises(SeedlessError, match="known: identical, differs, cannot judge, invalid"):
        Verdict("fine", "All is well.")


def test_a_single_run_says_what_was_trained_and_how_to_verify_it(tmp_path, two):
    page = write(tmp_path, two[:1])
    assert "Conformer trained on simulated" in headline(page)
    assert "seedless verify RUN" in page
    assert 'class="hero plain"' in page
    assert 'id="control"' not in page
    assert 'id="examples"' not in page
    assert "identical in every bit" not in headline(page)
    parse(page)


@pytest.mark.parametrize(
    ("name", "shown"),
    [("resnet18", "ResNet-18"), ("conformer", "Conformer"), ("baseline", "The baseline")],
)
def test_a_network_has_the_name_that_its_authors_write(tmp_path, name, shown):
    run = read_run(make_run(tmp_path / "A", settings={"model": {"name": name}}), "mine")
    assert f"{shown} trained on simulated" in headline(write(tmp_path, [run]))


def test_runs_without_a_verdict_are_compared_by_what_they_recorded(tmp_path, two):
    assert "Two runs that recorded the same bits" in headline(write(tmp_path, two))


def test_few_positives_are_flagged_and_an_undefined_auc_is_no_number(tmp_path, two):
    page = write(tmp_path, two)
    rows = page.split('<table class="classes stack">')[1].split("</table>")[0].split("<tr>")[2:]
    found = {re.search(r'row">(\w+)<', row)[1]: row for row in rows}
    assert list(found) == ["SR", "PVC", "LBBB", "AF"]  # the dataset's order
    assert [name for name, row in found.items() if ">few<" in row] == ["PVC", "LBBB"]
    assert "0.951" in found["SR"]
    assert "left:95.1%" in found["SR"]
    assert "not defined" in found["PVC"]


def test_other_settings_or_environment_are_told(tmp_path, two):
    other = read_run(make_run(tmp_path / "T", threads=4), "Four threads")
    page = write(tmp_path, [two[0], other])
    assert "<code>threads.intraop</code>: 4" in page
    assert "instead of 2" in page
    assert "Four threads</strong> had other values" not in write(tmp_path, two)


def test_a_run_that_drew_random_numbers_promises_nothing(tmp_path, two):
    run = read_run(make_run(tmp_path / "M", moved=["torch"]), "M")
    assert "Nothing, for this run" in write(tmp_path, [run])
    assert "Nothing, for this run" not in write(tmp_path, two)


def test_a_portable_run_promises_its_bits_on_every_processor(tmp_path, two):
    settings = {"execution": {"arithmetic": "portable"}}
    run = read_run(make_run(tmp_path / "P", settings=settings), "Process P")
    portable = write(tmp_path, [run])
    native = write(tmp_path, two[:1])
    assert "on any processor with IEEE float64" in portable
    assert "Another library version may round differently" in portable
    assert "the same kind of machine" not in portable
    assert "the same kind of machine" in native
    assert "Another processor, thread count or library version" in native


def test_what_a_run_does_not_have_is_left_out(tmp_path):
    whole = read_run(make_run(tmp_path / "A", epochs=1), "A")
    receipt = {"predicate": {"weights": {"md5": "ab" * 16}}}
    run = replace(whole, receipt=receipt, config_text="", log=(), metrics={})
    page = write(tmp_path, [run])
    assert "A model, trained" in headline(page)
    found = re.findall(r'section id="(\w+)"', page)
    assert found == ["promise", "digests", "verify", "receipt"]
    parse(page)


def test_trails_of_different_lengths_differ_where_one_ends(tmp_path, two):
    short = read_run(make_run(tmp_path / "S", epochs=5), "Short")
    assert find_difference(two[0], short) == find_difference(short, two[0]) == 6
    for runs in ([two[0], short], [short, two[0]]):
        assert ">none</code>" in write(tmp_path, runs)


def test_a_run_without_a_trail_is_refused():
    with pytest.raises(RunError, match="nothing can be compared"):
        make_view("A", {}, "", (), ())


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(SeedlessError, match="cannot write"):
        write_page(tmp_path / "none" / "a.html", "text")


def test_a_picture_is_a_png_or_an_svg(tmp_path, two):
    with pytest.raises(SeedlessError, match="base64"):
        write(tmp_path, two, examples=[Example("x", "no picture!")])


def test_curves_keep_to_the_drawing_and_skip_what_is_not_finite():
    for values in [(0.4, 0.1), (1e-7, 1e9), (-3.0, -3.0), (float("nan"), 2.0), (5.0,)]:
        points = tuple(enumerate(values, start=1))
        drawing = draw_curves("loss", [Series("a", points)], selected=1)
        for x, y in re.findall(r'cx="([-\d.]+)" cy="([-\d.]+)"', drawing):
            assert 0 <= float(x) <= 360
            assert 0 <= float(y) <= 210
        assert "nan" not in drawing
    assert draw_curves("loss", [Series("a", ())]) == ""
    assert draw_curves("loss", [Series("a", ((1, float("inf")),))]) == ""


def test_a_fingerprint_tells_digests_apart():
    assert draw_fingerprint("0f" * 32) == draw_fingerprint("0f" * 32)
    assert draw_fingerprint("0f" * 32) != draw_fingerprint("0f" * 31 + "0e")


def test_templates_are_part_of_the_package():
    folder = Path(__file__).parents[2] / "src" / "seedless" / "report" / "templates"
    pages = "".join((folder / f"{name}.html").read_text() for name in ("base", "run", "head"))
    listed = set(re.findall(r'include "([^"]+)"', pages))
    there = {str(path.relative_to(folder)) for path in folder.rglob("*.*")}
    assert there - listed == {
        "base.html",
        "run.html",
        "study.html",
        "doctor.html",
        "loop.html",
        "attribution.html",
        "progress.html",
        "parts.html",
        "card.md",
    }


def have_every_level(page):
    """Whether the headings of a page begin with h1, and none is more than one level deeper."""
    levels = [0, *(int(level) for level in re.findall(r"<h([1-6])[ >]", page))]
    return all(after - before <= 1 for before, after in itertools.pairwise(levels))


def test_headings_leave_out_no_level(tmp_path, two, control):
    page = write(tmp_path, two, verdict=SAME, controls=[control])
    assert "<h3>" in page
    assert have_every_level(page)
    assert not have_every_level(page.replace("<h2>", "<h3>"))


def test_equal_runs_lie_on_each_other_and_others_each_look_different():
    assert choose_roles([True]) == ["alone"]
    assert choose_roles([True, True, True], 1) == ["first", "repeat", "repeat", "control"]
    apart = choose_roles([True] + [False] * (MOST_TOLD_APART - 1), 1)
    assert len(set(apart)) == MOST_TOLD_APART + 1
    assert set(choose_roles([True] + [False] * MOST_TOLD_APART)) == {"crowd"}


def test_every_look_of_a_line_is_in_the_style(tmp_path, two):
    style = write(tmp_path, two).split("<style>")[1].split("</style>")[0]
    looks = {name for role in choose_roles([True] + [False] * 17) for name in role.split()}
    assert looks - {"dash-0"} <= set(re.findall(r"\.line\.([\w-]+)", style))


def test_a_run_that_repeats_with_other_bits_does_not_look_like_a_repeat(tmp_path, two):
    other = read_run(make_run(tmp_path / "C", flipped=3), "Process C")
    page = write(tmp_path, [*two, other])
    legend = page.split('<ul class="legend')[1].split("</ul>")[0]
    assert len(set(re.findall(r'class="line ([^"]+)"', legend))) == 3
    assert "on top of it" not in legend
    assert "on top of it" in write(tmp_path, two)
