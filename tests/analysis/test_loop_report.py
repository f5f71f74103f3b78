"""The page of scripts and recorded loops: curves, digests, files, and where runs differ."""

import json
import re

import pytest
import torch

import seedless
from seedless.analysis.loop_report import is_recorded
from seedless.core.errors import RunError
from tests.forgery import rechain
from tests.report.test_page import have_every_level
from tests.script_runs import make_steps, write_script_run


def write_loop(folder, steps=4, **changes):
    torch.manual_seed(0)
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), changes.get("rate", 0.1))
    with seedless.record(folder, model, optimizer, config={"rows": 3}) as trail:
        for step in range(1, steps + 1):
            loss = model(torch.ones(3, 2)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            trail.step(step=step, loss={"train": loss})
    return folder


def test_the_page_of_a_script_shows_command_curves_files_and_receipt(tmp_path):
    run = write_script_run(tmp_path / "run")
    text = seedless.report(run).read_text()
    assert "A script of 3 steps, as it was recorded" in text
    assert "python train.py --epochs 2" in text
    assert "Loss by step." in text
    assert "Learning rate by step." in text
    for name in ("out/model.pt", "train.py", "/data/images.npy", "h5py", "seedless verify RUN"):
        assert name in text
    assert "&#34;predicateType&#34;" in text
    assert seedless.verify(run, validate_only=True).ok  # the page may lie in the folder
    again = seedless.report(run, out=tmp_path / "page.html").read_text()
    assert again == text


def test_runs_that_agree_and_runs_that_differ(tmp_path):
    a, same = (write_script_run(tmp_path / name) for name in ("a", "same"))
    steps = [make_steps(3, step_2={"weights": 16 * "f"})]
    other = write_script_run(tmp_path / "other", processes=steps, environment={"python": "3.12.1"})
    page = tmp_path / "page.html"
    assert "2 runs that recorded the same values" in seedless.report(a, same, out=page).read_text()
    text = seedless.report(a, same, other, out=page, force=True).read_text()
    assert "The runs differ first at step 2" in text
    assert "<b>same</b>: every step that both have agrees" in text
    assert "3.12.1" in text
    assert have_every_level(text)
    legend = text.split('<ul class="legend')[1].split("</ul>")[0]
    assert len(set(re.findall(r'class="line ([^"]+)"', legend))) == 3
    assert all(f"</svg>{name}" in legend for name in ("a", "same", "other"))


def test_a_recorded_loop_has_a_page_and_can_be_compared(tmp_path):
    a, b = write_loop(tmp_path / "a"), write_loop(tmp_path / "b", rate=0.2)
    text = seedless.report(a).read_text()
    assert "A training loop of 4 steps, as it was recorded" in text
    assert "Loss by step." in text
    assert "rows" in text
    text = seedless.report(a, b, out=tmp_path / "page.html").read_text()
    assert "differs first" in text


def test_the_table_of_steps_says_how_many_it_leaves_out(tmp_path):
    """40 steps: the first eight, the last eight, and a row for the others."""
    long = write_loop(tmp_path / "long", steps=40)
    text = seedless.report(long).read_text()
    rows = text.split('<table class="steps">')[1].split("</table>")[0]
    assert re.findall(r'<th scope="row">(\d+)', rows) == [*map(str, [*range(1, 9), *range(33, 41)])]
    place = rows.index("24 steps left out")
    assert rows.index('<th scope="row">8') < place < rows.index('<th scope="row">33')
    assert "last loss</li>" in text
    # Negative control: a loop that is shown as a whole.
    short = write_loop(tmp_path / "short", steps=16)
    assert "left out" not in seedless.report(short).read_text()
    both = seedless.report(long, short, out=tmp_path / "both.html").read_text()
    assert "last loss of long</li>" in both


def test_a_loop_may_hold_any_value(tmp_path):
    run = write_loop(tmp_path / "a", steps=2)
    lines = [json.loads(line) for line in (run / "trail.jsonl").read_text().splitlines()]
    lines[1]["loss"] = {"a": ["<script>alert(1)</script>"]}
    lines[2].update(loss=[10**400], rate=True, step=2**62)
    rechain(run, lines)
    text = seedless.report(run).read_text()
    assert "<script>" not in text


def test_what_the_page_cannot_show_is_refused(tmp_path):
    run, loop = write_script_run(tmp_path / "run"), write_loop(tmp_path / "loop")
    with pytest.raises(RunError, match="without verify"):
        seedless.report(run, verify=True)
    assert is_recorded(run)
    assert is_recorded(loop)
    assert not is_recorded(tmp_path)
    (run / "data.jsonl").write_text("")
    with pytest.raises(RunError, match="is not what its receipt says"):
        seedless.report(run)


def test_diff_compares_scripts_by_step(tmp_path):
    a, same = (write_script_run(tmp_path / name) for name in ("a", "same"))
    command = {"command": ["python", "train.py", "--epochs", "3"]}
    steps = [make_steps(3, step_3={"loss": 16 * "f"})]
    other = write_script_run(tmp_path / "other", processes=steps, script=command)
    assert seedless.diff(a, same).identical
    found = seedless.diff(a, other)
    assert (found.identical, found.step, found.names) == (False, 3, ("loss",))
    assert [field.field for field in found.settings] == ["command.3"]
