"""Facts about a run for its card: one that is missing or malformed is left out, never an error."""

import math
from collections.abc import Mapping
from typing import Any

from seedless.core.dataset import OWN_LOSS
from seedless.core.display import escape_text
from seedless.report.run_view import RunView, as_mapping

SPLITS = ("test", "validation", "train")  # the most meaningful first


def find_scores(run: RunView) -> tuple[str, Mapping[str, Any]]:
    """Return the most meaningful split of a run, and its scores."""
    for split in SPLITS:
        if scores := as_mapping(run.metrics.get(split)):
            return split, scores
    return "", {}


def list_classes(
    run: RunView, scores: Mapping[str, Any]
) -> list[tuple[str, float | None, int | None]]:
    """Return (class, AUC, positives) in the order of the data's classes."""
    classes = as_mapping(scores.get("classes"))
    order = [name for name in name_classes(run) if name in classes]
    order += [name for name in classes if name not in order]
    rows = []
    for name in order:
        one = as_mapping(classes[name])
        positives = one.get("positives")
        count = positives if isinstance(positives, int) else None
        rows.append((name, as_number(one.get("auc")), count))
    return rows


def name_classes(run: RunView) -> list[str]:
    """Return the names of the classes, in the order of the logits."""
    return [str(name) for name in look_up(run, "data").get("classes") or ()]


def name_data(run: RunView) -> str:
    """Return the dataset's name."""
    name = str(look_up(run, "data").get("name") or "unknown")
    return "arrays of its author" if name == "given" else name.removesuffix(".npz")


def name_task(run: RunView) -> str:
    """Return what kind of classification it is; of a run with a loss of its own nobody knows."""
    if has_own_loss(run):
        return "a task with a loss of its own"
    return f"{look_up(run, 'data').get('task') or ''} classification".strip()


def has_own_loss(run: RunView) -> bool:
    """Whether the loss was a function of the user's: then there are no classes and no AUC."""
    return bool(look_up(run, "data").get("task") == OWN_LOSS)


def list_own_scores(scores: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Return (name, value) of the loss and of the user's metrics."""
    values = ((name, as_number(value)) for name, value in scores.items() if name != "n")
    return [(str(name), value) for name, value in values if value is not None]


def is_user_model(run: RunView) -> bool:
    """Whether the run is one of `fit`, with the user's model and arrays."""
    return run.predicate.get("kind") == "fit"


def takes_images(run: RunView) -> bool:
    """Whether the model takes images."""
    return bool(as_mapping(run.settings.get("model")).get("channels"))


def find_weights_file(run: RunView) -> Mapping[str, Any]:
    """Return what the receipt says of the weights file that the run began with, if any."""
    return as_mapping(look_up(run, "initialization").get("file"))


def describe_taken(file: Mapping[str, Any]) -> str:
    """Return how many tensors of a model were taken from a weights file, and how many not."""
    counts = {part: len(file.get(part) or ()) for part in ("taken", "started", "kept")}
    total = sum(counts.values())
    new = f", {counts['started']:,} initialized" if counts["started"] else ""
    return f"{counts['taken']:,} of {total:,} tensors taken from it{new}"


def look_up(run: RunView, name: str) -> Mapping[str, Any]:
    """Return a section of the receipt's claims; an empty one where it is missing."""
    return as_mapping(run.predicate.get(name))


def as_number(value: Any) -> float | None:
    """Return a finite number, or None for anything else."""
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if plain and math.isfinite(value) else None


def escape(text: object) -> str:
    """Return text that Markdown shows as it is, in one line; HTML and links in it are text."""
    plain = " ".join(escape_text(" ".join(str(text).split())).split())
    entities = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
    return "".join(entities.get(c, f"\\{c}" if c in "\\`*_[]|#~" else c) for c in plain)


def show_code(value: object) -> str:
    """Return a value as Markdown code; one that could end the code is shown as escaped text."""
    text = escape_text(value)
    return escape(text) if {*text} & {*"`|<>&"} or not text.strip() else f"`{text}`"
