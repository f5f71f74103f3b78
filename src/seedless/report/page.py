"""The page a run ends with: one HTML file that asks for nothing from outside and runs no script.

Equal inputs give equal bytes. A section is a file in templates/sections/ and a line in run.html;
what it shows is computed in sections.py and handed over as plain values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from seedless.core.errors import SeedlessError
from seedless.core.files import write_atomic
from seedless.evaluate.ranking import FEW_POSITIVES
from seedless.report.render import data_uri, render
from seedless.report.runview import RunView, find_difference, same_bits
from seedless.report.scores import show_scores
from seedless.report.sections import (
    group_values,
    list_changes,
    list_classes,
    list_curves,
    list_facts,
    show_control,
    show_run,
    tabulate_digests,
)

Outcome = Literal["identical", "differs", "cannot judge", "invalid"]


@dataclass(frozen=True)
class Verdict:
    """What a comparison or a replay found, how it says so, and how long it took."""

    outcome: Outcome
    sentence: str
    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.outcome not in get_args(Outcome):
            known = ", ".join(get_args(Outcome))
            raise SeedlessError(f"unknown outcome {self.outcome!r}; known: {known}")


@dataclass(frozen=True)
class Headline:
    """The first thing read. ``tone``: good, bad, unsure or plain; ``mark``: a sign, or none."""

    tone: str
    mark: str
    text: str


def write_page(
    out: Path,
    runs: Sequence[RunView],
    *,
    title: str,
    verdict: Verdict | None = None,
    controls: Sequence[RunView] = (),
    examples: Sequence[tuple[str, str]] = (),
    varied: bool = False,
) -> Path:
    """Write the page of one or more runs that should be equal, and of controls that should not.

    ``varied`` runs were asked for different things: the page shows how they vary. ``examples`` are
    pairs of a caption and a picture: a PNG in base64, or the text of an SVG.
    """
    text = render_page(
        runs, title=title, verdict=verdict, controls=controls, examples=examples, varied=varied
    )
    try:
        write_atomic(out, text.encode())
    except OSError as error:
        raise SeedlessError(f"cannot write {out}: {error.strerror or error}") from None
    return out


def render_page(
    runs: Sequence[RunView],
    *,
    title: str,
    verdict: Verdict | None = None,
    controls: Sequence[RunView] = (),
    examples: Sequence[tuple[str, str]] = (),
    varied: bool = False,
) -> str:
    """Return the page as text."""
    if not runs:
        raise SeedlessError("a page needs at least one run")
    first, everyone, scores = runs[0], [*runs, *controls], show_scores(runs, varied)
    return render(
        "run.html",
        title=title,
        headline=choose_headline(runs, verdict, controls, varied),
        verdict=verdict,
        runs=[show_run(run, first) for run in runs],
        controls=[show_control(control, first) for control in controls],
        facts=list_facts(first),
        moved=(first.predicate.get("promise") or {}).get("generators_moved", ()),
        portable=first.is_portable,
        converged=first.metrics.get("converged", True),
        judged="validation" if "validation" in first.metrics else "training",
        given=first.predicate.get("kind") == "fit",
        digests=tabulate_digests(runs, controls),
        tensors=first.trail[-1].tensors,
        curves=list_curves(runs, controls, crowd=scores["compared"] is not None),
        classes=list_classes(first),
        rated=(first.metrics.get("test") or {}).get("thresholds_from"),
        few=FEW_POSITIVES,
        **scores,
        scores=[
            (part, first.metrics[part])
            for part in ("train", "validation", "test")
            if part in first.metrics
        ],
        examples=[(caption, data_uri(picture)) for caption, picture in examples],
        settings=group_values(first.settings),
        settings_changes=list_changes(everyone, "settings"),
        config_text=first.config_text,
        environment=group_values(first.environment),
        environment_changes=list_changes(everyone, "environment"),
        receipts=[
            (run.label, json.dumps(run.receipt, indent=2, ensure_ascii=False)) for run in everyone
        ],
    )


def choose_headline(
    runs: Sequence[RunView],
    verdict: Verdict | None,
    controls: Sequence[RunView] = (),
    varied: bool = False,
) -> Headline:
    """Say what the page may claim. A page never says more than the digests it shows."""
    first, others = runs[0], runs[1:]
    equal = all(same_bits(first, other) for other in others)
    if verdict and verdict.outcome == "identical" and not equal:
        raise SeedlessError(
            f"the verdict says identical, but the runs differ {_tell_difference(runs)}: "
            "compare them again before a page is written"
        )
    if any(same_bits(first, control) for control in controls):
        return Headline("bad", "!", "The control did not differ: nothing here is proven")
    if verdict and verdict.outcome == "invalid":
        return Headline("bad", "!", "Not a valid run")
    if not equal and verdict is None and varied:
        models = len({run.hashes for run in runs})
        return Headline("plain", "", f"{len(runs)} runs, {models} models")
    if not equal:
        return Headline("bad", "≠", f"Not the same model: the runs differ {_tell_difference(runs)}")
    if verdict is None:
        if others:
            return Headline("plain", "=", f"{_count(runs)} runs that recorded the same bits")
        return Headline("plain", "", f"{_name_model(first)}, ready to be checked")
    many = f"{_count(runs)} processes, one model" if others else "Run again, the same model"
    return {
        "identical": Headline("good", "=", f"{many}: identical in every bit"),
        "differs": Headline("bad", "≠", "Not the same model: a repeat gave other bits"),
        "cannot judge": Headline("unsure", "?", "Cannot be judged on this machine"),
    }[verdict.outcome]


def _count(runs: Sequence[RunView]) -> str:
    words = ("One", "Two", "Three", "Four", "Five", "Six")
    return words[len(runs) - 1] if len(runs) <= len(words) else str(len(runs))


def _name_model(run: RunView) -> str:
    model, data = run.settings.get("model"), run.predicate.get("data")
    name = model.get("name") if isinstance(model, Mapping) else None
    source = data.get("name") if isinstance(data, Mapping) else None
    subject = f"{name[:1].upper()}{name[1:]}" if name else "A model"
    return f"{subject} trained on {source}" if source else f"{subject}, trained"


def _tell_difference(runs: Sequence[RunView]) -> str:
    """Say where runs part from the first: the earliest epoch of any."""
    epochs = [find_difference(runs[0], other) for other in runs[1:]]
    found = [epoch for epoch in epochs if epoch is not None]
    if not found:
        return "in their final weights, though not in their trails"
    return f"from epoch {min(found)} on" if min(found) else "from the start"
