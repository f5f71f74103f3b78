"""The page of a run that trains: it loads itself again until the run is done or stopped."""

import pytest

from seedless.report.progress_page import render_progress

LOG = [
    {"epoch": 1, "step": 4, "loss": 0.9, "rate": 0.1, "score": None, "seconds": 2.0},
    {"epoch": 2, "step": 8, "loss": 0.7, "rate": 0.1, "score": 0.6, "seconds": 4.0},
    {"epoch": 3, "step": 12, "loss": 0.6, "rate": 0.1, "score": 0.5, "seconds": 3.0},
]


def test_it_shows_epoch_scores_and_time_left_and_loads_itself_again():
    page = render_progress("<mine>", LOG, 5, "training")
    assert "epoch 3 of 5" in page
    assert '<meta http-equiv="refresh" content="3">' in page
    assert page.count('<svg class="curves"') == 2
    for text in ("0.6000</b> training loss", "0.5000</b> validation", "0.6000</b> the best"):
        assert text in page
    assert "6 s</b> left" in page
    assert "<mine>" not in page


@pytest.mark.parametrize(("state", "advice"), [("stopped", "resume"), ("done", "report")])
def test_a_run_that_ended_loads_nothing_again_and_says_what_to_do(state, advice):
    page = render_progress("mine", LOG, 5, state)
    assert "refresh" not in page
    assert f"seedless {advice} RUN" in page
    slower = [{**line, "seconds": 99.0} for line in LOG]
    assert render_progress("mine", slower, 5, state) == page  # equal runs, equal pages


def test_a_run_without_a_line_has_a_page():
    assert "epoch 0 of 5" in render_progress("mine", [], 5, "training")


def test_a_run_with_a_loss_of_its_own_shows_that_loss_and_its_lowest():
    """Its score is the negative loss: the highest selects the weights, and nobody reads it."""
    log = [{**line, "score": None if line["score"] is None else -line["score"]} for line in LOG]
    page = render_progress("mine", log, 5, "training", own_loss=True)
    assert "0.5000</b> validation loss" in page
    assert "0.5000</b> the best" in page
    assert "negative" not in page
    assert "-0." not in page
