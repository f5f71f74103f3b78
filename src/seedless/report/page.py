"""The HTML page of runs: one file that loads nothing from elsewhere and runs no script.

Equal inputs give equal bytes. A section is a file in templates/sections/ and a line in run.html;
its values are computed in sections.py and scores.py.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from seedless.core.display import escape_text
from seedless.core.errors import SeedlessError
from seedless.core.files import write_atomic
from seedless.evaluate.auc import FEW_POSITIVES
from seedless.report.answers import show_answers
from seedless.report.contents import add_contents
from seedless.report.example_pictures import Example, show_example
from seedless.report.facts import describe_taken, find_weights_file
from seedless.report.render import render
from seedless.report.run_view import RunView, as_mapping, find_difference, same_bits
from seedless.report.scores import show_scores
from seedless.report.sections import (
    group_values,
    list_changes,
    list_classes,
    list_curves,
    list_facts,
    list_legend,
    show_control,
    show_run,
    tabulate_digests,
)
from seedless.report.seeds import show_seeds

Outcome = Literal["identical", "differs", "cannot judge", "invalid"]

# Names of networks as their authors write them; others begin with a capital.
_PROPER_NAMES = {
    "resnet18": "ResNet-18",
    "xresnet1d101": "xResNet1d-101",
    "baseline": "The baseline",
}


@dataclass(frozen=True)
class Verdict:
    """The outcome of a verification, in a sentence, and its duration."""

    outcome: Outcome
    sentence: str
    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.outcome not in get_args(Outcome):
            known = ", ".join(get_args(Outcome))
            raise SeedlessError(f"unknown outcome {self.outcome!r}; known: {known}")


@dataclass(frozen=True)
class Headline:
    """The title of the page. ``tone``: good, bad, unsure or plain; ``mark``: a sign, or none."""

    tone: str
    mark: str
    text: str


def write_page(out: Path, page: str) -> Path:
    """Write the text of a page and return its path."""
    try:
        write_atomic(out, page.encode())
    except OSError as error:
        raise SeedlessError(f"cannot write {out}: {error.strerror or error}") from None
    return out


def render_page(
    runs: Sequence[RunView],
    *,
    title: str,
    verdict: Verdict | None = None,
    controls: Sequence[RunView] = (),
    examples: Sequence[Example] = (),
    varied: bool = False,
    seeds: Sequence[RunView] = (),
) -> str:
    """Return the page of runs that should be equal, and of controls that should not, as text.

    Args:
        runs: the runs; the first is shown in full.
        title: of the page.
        verdict: of executing the run again, if that was done.
        controls: runs with a bit flipped on purpose, which must differ.
        examples: pictures of records, with captions.
        varied: whether the runs have different settings; then the page shows how they vary.
        seeds: ordinary runs with a seed, to show what another seed changes.
    """
    if not runs:
        raise SeedlessError("a page needs at least one run")
    first, everyone, scores = runs[0], [*runs, *controls], show_scores(runs, varied)
    page = render(
        "run.html",
        title=title,
        headline=choose_headline(runs, verdict, controls, varied),
        verdict=verdict,
        runs=[show_run(run, first) for run in runs],
        controls=[show_control(control, first) for control in controls],
        facts=list_facts(first),
        moved=(first.predicate.get("promise") or {}).get("generators_moved", ()),
        portable=first.is_portable,
        # None: a run with a loss of its own has no limit that it could end below.
        converged=first.metrics.get("converged", True) is not False,
        scored_on="validation" if "validation" in first.metrics else "training",
        user_model=first.predicate.get("kind") == "fit",
        weights_file=_show_weights_file(first),
        digests=tabulate_digests(runs, controls),
        tensors=first.trail[-1].tensors,
        curves=list_curves(runs, controls),
        legend=list_legend(runs, controls),
        classes=list_classes(first),
        answers=show_answers(first),
        rated=(first.metrics.get("test") or {}).get("thresholds_from"),
        one_class=as_mapping(first.predicate.get("data")).get("task") == "multi-class",
        few=FEW_POSITIVES,
        **scores,
        seeds=show_seeds(runs, seeds) if seeds else None,
        scores=[
            (part, first.metrics[part])
            for part in ("train", "validation", "test")
            if part in first.metrics
        ],
        examples=[show_example(example) for example in examples],
        settings=group_values(first.settings),
        settings_changes=list_changes(everyone, "settings"),
        config_text=first.config_text,
        environment=group_values(first.environment),
        environment_changes=list_changes(everyone, "environment"),
        receipts=[
            (run.label, json.dumps(run.receipt, indent=2, ensure_ascii=False)) for run in everyone
        ],
    )
    return add_contents(page)


def choose_headline(
    runs: Sequence[RunView],
    verdict: Verdict | None,
    controls: Sequence[RunView] = (),
    varied: bool = False,
) -> Headline:
    """Return the headline; it never claims more than the digests on the page show."""
    first, others = runs[0], runs[1:]
    equal = all(same_bits(first, other) for other in others)
    if verdict and verdict.outcome == "identical" and not equal:
        raise SeedlessError(
            f"the verdict says identical, but the runs differ {_describe_difference(runs)}: "
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
        return Headline(
            "bad", "≠", f"Not the same model: the runs differ {_describe_difference(runs)}"
        )
    if verdict is None:
        if others:
            return Headline("plain", "=", f"{_count(runs)} runs that recorded the same bits")
        return Headline("plain", "", f"{_name_model(first)}, ready to be checked")
    many = f"{_count(runs)} processes, one model" if others else "Run again, the same model"
    return {
        "identical": Headline("good", "=", f"{many}: identical in every bit"),
        "differs": Headline("bad", "≠", "Not the same model: a repeat gave other bits"),
        "cannot judge": Headline("unsure", "?", "Cannot be decided on this machine"),
    }[verdict.outcome]


def _show_weights_file(run: RunView) -> dict[str, str]:
    """Return the weights file that a run began with, in words; empty where there was none."""
    file = find_weights_file(run)
    if not file:
        return {}
    shown = {name: escape_text(file.get(name)) for name in ("name", "digest")}
    return {**shown, "taken": describe_taken(file)}


def _count(runs: Sequence[RunView]) -> str:
    words = ("One", "Two", "Three", "Four", "Five", "Six")
    return words[len(runs) - 1] if len(runs) <= len(words) else str(len(runs))


def _name_model(run: RunView) -> str:
    name = as_mapping(run.settings.get("model")).get("name")
    source = as_mapping(run.predicate.get("data")).get("name")
    if name == "given":  # what configurations call a user's own model
        return "A user's model"
    name = _PROPER_NAMES.get(str(name), name)
    subject = f"{name[:1].upper()}{name[1:]}" if name else "A model"
    return f"{subject} trained on {source}" if source else f"{subject}, trained"


def _describe_difference(runs: Sequence[RunView]) -> str:
    """Return from which epoch on any run differs from the first."""
    epochs = [find_difference(runs[0], other) for other in runs[1:]]
    differing = [epoch for epoch in epochs if epoch is not None]
    if not differing:
        return "in their final weights, though not in their trails"
    return f"from epoch {min(differing)} on" if min(differing) else "from the start"
