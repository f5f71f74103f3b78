"""The page of two runs that differ: says what the records say, and shows them as text."""

import hashlib
import re
from itertools import zip_longest

import pytest

from seedless.report.doctor_page import render_doctor_page
from seedless.report.recorded_sources import compare_draws, compare_files, compare_seeds
from seedless.report.recorded_steps import DoctorRun, compare_ops, list_steps, tabulate_steps
from tests.report.test_page import have_every_level, headline, parse

SCRIPT = """import torch
from torch import nn

net = nn.Linear(8, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in loader:
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    optimizer.step()
"""
DIAGNOSIS = {
    "identical": False,
    "step": 3,
    "what": "batch",
    "op": "",
    "line": "train.py:6",
    "cause": "unseeded-shuffle",
    "title": "the DataLoader shuffles with a generator that was not seeded",
    "remedy": "Pass generator=torch.Generator().manual_seed(0) to the DataLoader at train.py:6.",
    "confidence": "certain",
    "evidence": ["The indices of the batch differ, the weights before it do not."],
    "module": "",
    "ranks": [],
}
IDENTICAL = {"identical": True}


def digest(*parts):
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def make_records(salt="", *, differs_from=3, steps=30, draws=4, threads=2, rank=0, world_size=1):
    """The records of a run whose batches are others from step ``differs_from`` on."""
    records = [
        {
            "kind": "process",
            "role": "main",
            "worker_id": None,
            "argv": ["train.py"],
            "python": "3.11.7",
            "rank": rank,
            "world_size": world_size,
            "variables": {"OMP_NUM_THREADS": str(threads)},
        },
        {"kind": "torch", "version": "2.13.0", "cuda": None, "devices": [], "threads": threads},
        {
            "kind": "seed",
            "generator": "numpy",
            "call": "np.random.seed",
            "value": None,
            "line": "train.py:2",
        },
        {"kind": "flags", "step": 1, "flags": {"deterministic_algorithms": False}},
    ]
    for step in range(1, steps + 1):
        other = salt if step >= differs_from else ""
        later = salt if step > differs_from else ""
        records += [
            {
                "kind": "draws",
                "generator": "numpy",
                "call": "np.random.rand",
                "line": "train.py:6",
                "count": draws,
            },
            {
                "kind": "step",
                "step": step,
                "optimizer": 0,
                "optimizer_type": "SGD",
                "line": "train.py:9",
                "values": {
                    "weights_before": digest("w", step, later),
                    "indices": [digest("i", step, other)],
                    "batch": [digest("b", step, other)],
                    "output": [digest("o", step, other)],
                    "loss": [digest("l", step, other)],
                    "gradients": digest("g", step, other),
                    "rate": digest(0.1),
                    "weights": digest("w", step + 1, other),
                },
                "shown": {"loss": [0.7 / step + 0.001 * bool(other)], "rate": [0.1]},
                "generators": {"python": digest(step), "torch": digest("t", step, other)},
            },
        ]
    records += [
        {
            "kind": "files",
            "read": [{"path": "data/x.npy", "sha256": digest("data", salt), "line": "train.py:1"}],
            "written": [],
        },
        {
            "kind": "sources",
            "files": [{"path": "train.py", "sha256": hashlib.sha256(SCRIPT.encode()).hexdigest()}],
        },
        {"kind": "end", "steps": steps, "reason": "exit", "error": None},
    ]
    return records


def pair_ops(salt="x", ended=None):
    return list(zip_longest(make_ops(), make_ops(salt)[:ended]))


def make_ops(salt=""):
    return [
        {
            "op": f"aten.op{n}.default",
            "phase": "forward",
            "module": "net",
            "inputs": [digest(n, salt * (n > 9))],
            "settings": [],
            "outputs": [digest(n + 1, salt * (n >= 9))],
            "shapes": [[8, 2], []],
            "line": "train.py:7",
        }
        for n in range(40)
    ]


@pytest.fixture
def pair():
    return DoctorRun("run 1", make_records()), DoctorRun("run 2", make_records("x"))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    return tmp_path


def render(pair, folder, diagnosis=DIAGNOSIS, **options):
    return render_doctor_page(
        diagnosis, pair, command=["python", "train.py", "--name", "a b"], folder=folder, **options
    )


def section(page, name):
    return page.split(f'<section id="{name}">')[1].split("</section>")[0]


def test_it_says_first_what_differs_why_and_the_line(pair, folder):
    page = render(pair, folder, experiments=[("torch seeded with 0", "the difference disappears")])
    assert "The runs differ first at step 3: batch" in headline(page)
    top = page.split("</header>")[0]
    assert "The DataLoader shuffles with a generator that was not seeded" in top
    assert "manual_seed(0) to the DataLoader at train.py:6" in top
    assert re.search(r"<mark>.*6</span>  for x, y in loader:</mark>", top)
    assert "loss.backward()" in top
    assert "the difference disappears" in section(page, "evidence")
    assert "python train.py --name &#39;a b&#39;" in section(page, "command")
    found = parse(page)
    assert have_every_level(page)
    assert found.links == []
    assert not {"script", "link", "iframe", "object", "embed", "img"} & found.tags
    assert page == render(
        pair, folder, experiments=[("torch seeded with 0", "the difference disappears")]
    )


def test_the_first_difference_is_framed_and_what_follows_is_marked(pair, folder):
    table = tabulate_steps(pair, None, 3)
    assert table.columns[:3] == ["weights before", "indices", "batch"]
    assert (table.total, table.differing) == (30, 28)
    first = [
        (row["step"], name)
        for row in table.rows
        for name, cell in zip(table.columns, row["cells"], strict=True)
        if cell["first"]
    ]
    assert first == [(3, "indices")]
    third = next(row for row in table.rows if row["step"] == 3)
    standings = [cell["standing"] for cell in third["cells"]]
    assert standings == ["same", *["differs"] * 5, "same", "differs"]
    steps = section(render(pair, folder), "steps")
    assert "28 of 30 steps have a value that differs" in steps
    assert "Shown are steps 1 to 11 of 30" in steps
    assert "0.233333333" in steps
    assert "0.234333333" in steps


def test_identical_runs_have_no_mark(folder):
    runs = DoctorRun("run 1", make_records()), DoctorRun("run 2", make_records())
    page = render(runs, folder, {"identical": True})
    assert "identical in every value recorded" in headline(page)
    assert 'class="hero good"' in page
    assert "≠" not in section(page, "steps")
    assert "Every value of all 30 steps agrees" in page
    assert "No version, environment variable or flag that was recorded differs" in page
    assert '<section id="files">' not in page


def test_an_evaluation_of_other_samples_is_told_from_other_weights(folder):
    records = make_records()
    evaluated = [
        {**line, "values": {**line["values"], "input": "other", "output": "other"}}
        if line.get("step") == 6 and line["kind"] == "step"
        else line
        for line in records
    ]
    page = render((DoctorRun("run 1", records), DoctorRun("run 2", evaluated)), folder, IDENTICAL)
    assert "Every loss, gradient and weight agrees" in headline(page)
    assert 'class="hero good"' in page


def test_a_page_never_claims_more_than_its_steps(pair, folder):
    page = render(pair, folder, {"identical": True})
    assert "Called identical, but the values recorded differ" in headline(page)
    assert 'class="hero bad"' in page
    empty = DoctorRun("run 1", []), DoctorRun("run 2", [])
    page = render(empty, folder, {"identical": True})
    assert 'class="hero unsure"' in page


def test_what_could_not_be_told_is_not_called_identical(pair, folder):
    page = render(pair, folder, {"identical": None, "evidence": ["run 2 was killed"]})
    assert 'class="hero unsure"' in page
    assert "identical" not in headline(page)


def test_a_resumed_run_is_compared_from_the_step_it_goes_on_from(folder):
    unbroken = DoctorRun("unbroken", make_records(steps=8))
    later = [r for r in make_records(steps=8) if r["kind"] != "step" or r["step"] > 5]
    renumbered = [{**r, "step": r["step"] - 5} if r["kind"] == "step" else r for r in later]
    resumed = DoctorRun("resumed", renumbered, steps_before=5)
    table = tabulate_steps((unbroken, resumed), None, None)
    assert [row["step"] for row in table.rows] == [6, 7, 8]
    assert table.differing == 0
    assert tabulate_steps((unbroken, DoctorRun("resumed", renumbered)), None, None).differing == 8
    page = render((unbroken, resumed), folder, {"identical": True})
    assert 'class="hero good"' in page


def test_what_a_resumed_loader_read_ahead_is_shown_and_not_counted(folder):
    def change(name):
        steps = [r for r in make_records(steps=4) if r["kind"] == "step"]
        return [
            {**r, "step": r["step"] - 2, "values": {**r["values"], name: "other"}}
            for r in steps[2:]
        ]

    unbroken = DoctorRun("unbroken", make_records(steps=4))
    for name, differing in (("indices", 0), ("batch", 0), ("loss", 2)):
        runs = unbroken, DoctorRun("resumed", change(name), steps_before=2)
        assert tabulate_steps(runs, None, None).differing == differing
        tone = "bad" if differing else "good"
        page = render(runs, folder, {"identical": True})
        assert f'class="hero {tone}"' in page
        assert "A data loader may read ahead" in page


def test_the_steps_of_the_rank_that_differs_are_shown(folder):
    def both(salt):
        other = make_records(salt, rank=1, world_size=2)
        return [*make_records(rank=0, world_size=2), *other]

    runs = DoctorRun("run 1", both("")), DoctorRun("run 2", both("x"))
    assert tabulate_steps(runs, None, 3).differing == 0
    page = render(runs, folder, {**DIAGNOSIS, "ranks": [1]})
    assert "These are the steps of rank 1" in page
    assert "28 of 30 steps" in page


def test_seeds_and_draws_stand_with_their_lines(folder):
    pair = DoctorRun("run 1", make_records()), DoctorRun("run 2", make_records("x", draws=5))
    (seed,) = compare_seeds(pair)
    assert (seed["call"], seed["line"]) == ("np.random.seed", "train.py:2")
    assert seed["values"] == ("from entropy", "from entropy")
    assert not seed["same"]  # two seeds from entropy are two seeds
    (draw,) = compare_draws(pair, 3)
    assert draw["values"] == ("12", "15")
    assert not draw["same"]
    page = section(render(pair, folder), "random")
    assert "The state of <code>torch</code>" in page
    assert "differs after step 3" in page
    assert "The state of <code>python</code> is the same after every step" in page


def test_seeds_of_one_line_are_counted():
    def seed(values):
        call = {"kind": "seed", "generator": "numpy", "call": "np.random.seed", "line": "a.py:1"}
        return [{**call, "value": value} for value in values]

    pairs = [("7", "7"), (["1", "1"], ["1", "1"]), (["1", "2"], ["1", "3"])]
    rows = [compare_seeds([DoctorRun("a", seed(a)), DoctorRun("b", seed(b))]) for a, b in pairs]
    assert [(row["values"], row["same"]) for (row,) in rows] == [
        (("7", "7"), True),
        (("1, 2 times", "1, 2 times"), True),
        (("1 and 1 more", "1 and 1 more"), False),
    ]


def test_a_worker_is_named():
    worker = [
        {"kind": "process", "role": "worker", "worker_id": 1, "rank": 0},
        {"kind": "draws", "generator": "numpy", "call": "normal", "line": "a.py:1", "count": 3},
    ]
    runs = [DoctorRun(name, [*make_records(), *worker]) for name in "ab"]
    assert [row["process"] for row in compare_draws(runs, 3)] == ["main", "worker 1"]


def test_settings_and_files_that_differ_are_listed(folder):
    pair = DoctorRun("run 1", make_records()), DoctorRun("run 2", make_records("x", threads=4))
    settings = section(render(pair, folder), "settings").split("<details>")[0]
    assert "variable: OMP_NUM_THREADS</th><td>2</td><td>4</td>" in settings
    assert "deterministic_algorithms" not in settings
    assert [(row["path"], row["what"]) for row in compare_files(pair)] == [
        ("data/x.npy", "other content")
    ]


def test_the_operations_around_the_first_difference_are_shown(pair, folder):
    found = compare_ops(pair_ops())
    assert (found["agreed"], found["total"]) == (9, 40)
    assert [row["number"] for row in found["rows"] if row["first"]] == [10]
    assert len(found["rows"]) == 13
    page = section(render(pair, folder, ops=pair_ops(), ops_step=3), "operations")
    assert "9 of 40 operations agree before the first that differs" in page
    assert "8x2, scalar" in page
    ended = compare_ops(pair_ops("", ended=20))
    assert ended["agreed"] == 20
    assert "nothing" in ended["rows"][-1]["names"]


def test_records_are_text_and_never_markup(folder):
    evil = "<script>alert(1)</script>\"'&\x1b[31m\u202e"

    def spoil(value):
        if isinstance(value, dict):
            return {key if key in KEPT else evil: spoil(item) for key, item in value.items()}
        if isinstance(value, list):
            return [spoil(item) for item in value]
        return evil if isinstance(value, str) else value

    KEPT = {key for record in make_records() for key in record} | set(DIAGNOSIS)

    def keep_kind(record):
        return {**spoil(record), "kind": record["kind"]}

    runs = tuple(DoctorRun(evil, [keep_kind(r) for r in make_records(salt)]) for salt in ("", "x"))
    ops = [tuple(spoil(record) for record in pair) for pair in pair_ops()]
    page = render_doctor_page(
        {**spoil(DIAGNOSIS), "identical": False},
        runs,
        command=[evil],
        folder=folder,
        experiments=[(evil, evil)],
        ops=ops,
    )
    assert "script" not in parse(page).tags
    assert page.count("&lt;script&gt;") > 20
    assert "\x1b" not in page
    assert "\u202e" not in page


@pytest.mark.parametrize("value", [None, 3, "text", [], [1], {}, {"a": []}, True])
def test_values_of_another_type_do_not_break_the_page(folder, value):
    records = [
        {key: record["kind"] if key == "kind" else value for key in record}
        for record in make_records(steps=2)
    ]
    diagnosis = dict.fromkeys(DIAGNOSIS, value)
    ops = [(dict.fromkeys(make_ops()[0], value), None)]
    runs = DoctorRun("run 1", records), DoctorRun("run 2", make_records(steps=2))
    parse(render(runs, folder, diagnosis, ops=ops))


def test_no_file_is_shown_that_the_script_did_not_read(pair, tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    secret = tmp_path / "secret.py"
    secret.write_text("password = 'never shown'\n")
    (inside / "notes.txt").write_text("never shown\n")
    (inside / "link.py").symlink_to(secret)
    for line in (f"{secret}:1", "../secret.py:1", "notes.txt:1", "link.py:1", "\0.py:1", ".py:1"):
        page = render(pair, inside, {**DIAGNOSIS, "line": line})
        assert "never shown" not in page
        assert '<figure class="source">' not in page
    # The same file is shown when both runs recorded that they executed it.
    own = {"path": str(secret), "sha256": hashlib.sha256(secret.read_bytes()).hexdigest()}
    runs = tuple(
        DoctorRun(run.label, [*run.records, {"kind": "sources", "files": [own]}]) for run in pair
    )
    assert "never shown" in render(runs, inside, {**DIAGNOSIS, "line": f"{secret}:1"})


def test_a_script_that_changed_since_is_said_to_have(pair, folder):
    assert "has changed since" not in render(pair, folder)
    (folder / "train.py").write_text(SCRIPT + "# edited\n")
    assert "has changed since" in render(pair, folder)
    full = {"kind": "sources", "files": [{"path": str(folder / "train.py"), "sha256": "0" * 64}]}
    runs = [
        DoctorRun(run.label, [full if r["kind"] == "sources" else r for r in run.records])
        for run in pair
    ]
    assert "has changed since" in render(tuple(runs), folder)


def test_a_long_run_and_long_texts_give_a_small_page(folder):
    runs = tuple(DoctorRun(f"run {n}", make_records("x" * n, steps=3_000)) for n in (1, 2))
    long = {**DIAGNOSIS, "step": 1_500, "evidence": ["e" * 10**6] * 500}
    page = render(runs, folder, long)
    assert len(page) < 300_000
    assert max(len(word) for word in re.findall(r">([^<]*)<", page.split("</style>")[1])) < 2_500


def test_steps_without_an_optimizer_are_backward_passes():
    records = [{"kind": "backward", "step": 1, "values": {}}, {"kind": "draws"}]
    assert list(list_steps(records)) == [1]
