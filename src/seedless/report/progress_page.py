"""The page of a run that is being trained: its curves so far."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from seedless.report.learning_curves import Series, draw_curves
from seedless.report.page import Headline
from seedless.report.render import mark_safe, render

SECONDS_TO_RELOAD = 3


def render_progress(
    name: str,
    log: Sequence[Mapping[str, Any]],
    epochs: int,
    state: str,
    *,
    own_loss: bool = False,
) -> str:
    """Return the page of a run with the lines of its log.

    ``state``: "training" for a page that loads itself again, "stopped", or "done". A page of a run
    that is done says nothing of times, so that equal runs have equal pages. ``own_loss``: whether
    the loss is a function of the user's, so that the validation loss is shown and no AUC.
    """
    done = len(log)
    headline = {
        "training": Headline("plain", "", f"Training: epoch {done} of {epochs}"),
        "stopped": Headline("unsure", "!", f"Stopped after {done} of {epochs} epochs"),
        "done": Headline("plain", "", f"All {epochs} epochs are done"),
    }[state]
    # The score of a loss of the user's own is its negative, since the highest score is selected.
    score_name, sign, best = ("loss", -1, min) if own_loss else ("macro AUC", 1, max)
    scores = [sign * line["score"] for line in log if line["score"] is not None]
    facts = [(f"{log[-1]['loss']:.4f}", "training loss")] if log else []
    facts += [(f"{scores[-1]:.4f}", f"validation {score_name}")] if scores else []
    facts += [(f"{best(scores):.4f}", "the best")] if len(scores) > 1 else []
    if state == "training" and log:
        seconds = sum(float(line["seconds"]) for line in log) / done * (epochs - done)
        facts.append((f"{seconds:,.0f} s", "left, at the speed so far"))
    loss = [(int(line["epoch"]), float(line["loss"])) for line in log]
    score = [
        (int(line["epoch"]), math.nan if line["score"] is None else sign * float(line["score"]))
        for line in log
    ]
    drawings = [
        ("Training loss", draw_curves("Training loss", [Series(name, tuple(loss))])),
        (
            f"Validation {score_name}",
            draw_curves(f"validation {score_name}", [Series(name, tuple(score))]),
        ),
    ]
    return render(
        "progress.html",
        title=f"seedless: {name}",
        headline=headline,
        state=state,
        reload=SECONDS_TO_RELOAD if state == "training" else None,
        facts=facts,
        curves=[(title, mark_safe(drawing)) for title, drawing in drawings if drawing],
    )
