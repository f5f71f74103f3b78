"""The page is written while a run trains, and what it leaves behind keeps the run valid."""

import pytest

from seedless.core.config import parse_config
from seedless.runs import progress_page
from seedless.runs.progress_page import ProgressPage
from seedless.runs.train import InterruptedRunError, train_run
from seedless.runs.validation import validate
from seedless.train.progress_state import Observer

CONFIG = {
    "data": {"name": "simulated", "preset": "tiny"},
    "model": {"name": "baseline", "small": True},
    "order": {"batch_size": 64},
    "train": {"epochs": 3, "checkpoint_every": 1, "evaluate_every": 1, "warmup_steps": 2},
    "execution": {"device": "cpu", "threads": 1},
}


class Reader(Observer):
    """Keeps the page as it is after each epoch."""

    def __init__(self, run):
        self.file, self.pages = run / "report.html", []

    def epoch(self, progress):
        self.pages.append(self.file.read_text())


def test_it_follows_the_epochs_and_the_run_stays_valid(tmp_path, monkeypatch):
    monkeypatch.setattr(progress_page, "SECONDS_BETWEEN_PAGES", 0.0)
    run = tmp_path / "run"
    reader = Reader(run)
    train_run(parse_config(CONFIG), run, observers=(ProgressPage(run), reader))
    assert ["epoch 1 of 3" in reader.pages[0], "epoch 2 of 3" in reader.pages[1]] == [True, True]
    assert "All 3 epochs are done" in reader.pages[2]
    assert validate(run).problems == ()


def test_pages_are_seconds_apart_and_a_stop_is_said(tmp_path):
    run = tmp_path / "run"
    reader, asked = Reader(run), []

    def stop():
        asked.append(True)
        return len(asked) > 7  # in the second epoch or later

    with pytest.raises(InterruptedRunError):
        train_run(parse_config(CONFIG), run, observers=(ProgressPage(run), reader), stop=stop)
    assert len({*reader.pages}) == 1  # the second epoch came too soon
    assert "Stopped after" in reader.file.read_text()
    assert "seedless resume RUN" in reader.file.read_text()


def test_a_page_that_cannot_be_written_stops_no_run(tmp_path, monkeypatch):
    def fail(*_):
        raise progress_page.SeedlessError("the disk is full")

    monkeypatch.setattr(progress_page, "write_page", fail)
    run = tmp_path / "run"
    train_run(parse_config(CONFIG), run, observers=(ProgressPage(run),))
    assert not (run / "report.html").exists()
