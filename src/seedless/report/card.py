"""The model card of a run in the format of Hugging Face: front matter, then sections of Markdown.

Everything comes from the run's receipt and metrics; what a run does not have is left out. Nothing
depends on where or when it is written: a run's card is the same to the byte.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from seedless.core.digests import get_hex
from seedless.core.display import escape_json
from seedless.core.errors import SeedlessError
from seedless.evaluate.auc import FEW_POSITIVES
from seedless.report.facts import (
    as_number,
    describe_taken,
    escape,
    find_scores,
    find_weights_file,
    has_own_loss,
    is_user_model,
    list_classes,
    list_own_scores,
    look_up,
    name_classes,
    name_data,
    name_task,
    show_code,
    takes_images,
)
from seedless.report.render import render
from seedless.report.run_view import RunView, as_mapping

# A string, left as it is, or the start of a number such as 1e-05, which YAML 1.1 reads as text.
_BARE_EXPONENT = re.compile(r'"(?:[^"\\]|\\.)*"|(?<![\d.])(\d)e')
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
# A viewer that does not know front matter shows it as Markdown: its texts hold no HTML, no link.
_NO_MARKUP = {ord(c): f"\\u{ord(c):04x}" for c in "<>&[]`"}


def make_card(run: RunView, license_: str = "other") -> str:
    """Return the card of a run as Markdown; ``run.label`` is the model's name."""
    split, scores = find_scores(run)
    classes, count = list_classes(run, scores), scores.get("n")
    scale = as_mapping(look_up(run, "data").get("scale"))
    loss = as_mapping(run.settings.get("loss")).get("name")
    digest = get_hex(look_up(run, "weights").get("digest") or "")
    body = render(
        "card.md",
        label=escape(run.label),
        summary=f"{_describe_model(run)} {_describe_seeds(run)}",
        warnings=[f"**{title}.** {escape(text)}" for title, text in list_warnings(run)],
        simulated=str(look_up(run, "data").get("name")).startswith("simulated"),
        few=FEW_POSITIVES,
        rare=[
            f"{escape(label)} ({positives})"
            for label, _, positives in classes
            if positives is not None and positives < FEW_POSITIVES
        ],
        scored=bool(scores),
        split=split,
        records=count if isinstance(count, int) else None,
        macro=_format_area(as_number(scores.get("macro_auc"))),
        classes=[
            (escape(label), "" if positives is None else positives, _format_area(area))
            for label, area, positives in classes
        ],
        own_loss=has_own_loss(run),
        own_scores=[
            (escape(name), f"{value:.6g}")
            for name, value in (list_own_scores(scores) if has_own_loss(run) else [])
        ],
        recipe=_list_recipe(run),
        user_model=is_user_model(run),
        began_with_file=bool(find_weights_file(run)),
        digest=digest if re.fullmatch("[0-9a-f]{64}", digest) else "",
        scale={
            name: ", ".join(
                f"{v:.6g}" for v in map(as_number, scale.get(name) or ()) if v is not None
            )
            for name in ("mean", "deviation")
            if scale
        },
        shape="(batch, channels, height, width)" if takes_images(run) else "(batch, leads, time)",
        link="softmax" if loss == "cross_entropy" else "sigmoid",
        environment=_list_environment(run),
    )
    return f"{write_front_matter(describe(run, license_))}\n{body}"


def write_front_matter(values: Mapping[str, Any]) -> str:
    """Return values as YAML between lines of ---, a line for each key.

    Each value is JSON, which is YAML too, changed where YAML parsers would not agree on it.
    """
    try:
        lines = [
            f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False, allow_nan=False)}"
            for key, value in values.items()
        ]
    except (TypeError, ValueError) as error:
        raise SeedlessError(f"front matter holds plain values only: {error}") from None
    text = "\n".join(["---", *lines, "---", ""])
    text = _BARE_EXPONENT.sub(lambda m: f"{m[1]}.0e" if m[1] else m[0], text)
    text = _STRING.sub(lambda m: m[0].translate(_NO_MARKUP), text)
    # A parser may take other characters that do not print for the end of a line.
    return escape_json(text)


def describe(run: RunView, license_: str) -> dict[str, Any]:
    """Return the front matter as plain values."""
    images = takes_images(run)
    recordings = bool(as_mapping(run.settings.get("model")).get("leads"))
    kind = ["image-classification"] * images + ["ecg", "time-series"] * recordings
    matter: dict[str, Any] = {
        "license": license_,
        "library_name": "seedless",
        "tags": ["seedless", "reproducibility", "deterministic", "pytorch", "safetensors", *kind],
        "datasets": [name_data(run)],
    }
    split, scores = find_scores(run)
    if has_own_loss(run):
        named = [(name, name, value) for name, value in list_own_scores(scores)]
    else:
        named = [
            ("roc_auc", name, value)
            for name, value in (
                ("macro AUC", as_number(scores.get("macro_auc"))),
                *((f"AUC {label}", area) for label, area, _ in list_classes(run, scores)),
            )
            if value is not None
        ]
    matter["metrics"] = sorted({kind for kind, _, _ in named} or {"roc_auc"})
    metrics = [
        {"type": kind, "name": name, "value": round(value, 6)} for kind, name, value in named
    ]
    if metrics:
        result = {
            "task": {"type": "image-classification" if images else "other", "name": name_task(run)},
            "dataset": {"type": name_data(run), "name": name_data(run), "split": split},
            "metrics": metrics,
        }
        matter["model-index"] = [{"name": run.label, "results": [result]}]
    return matter


def _describe_model(run: RunView) -> str:
    """Return what the model is, its size, inputs, classes and data, in a sentence."""
    model, settings = look_up(run, "model"), as_mapping(run.settings.get("model"))
    name = str(settings.get("name") or "")
    kind = str(model.get("type") or "model") if name in ("", "given") else name
    size = model.get("parameters")
    inputs = settings.get("leads") or settings.get("channels")
    unit = "leads" if settings.get("leads") else "channels"
    classes = name_classes(run)
    parts = [
        show_code(kind) + (" in its small variant" if settings.get("small") else ""),
        f"{size:,} parameters" if isinstance(size, int) else "",
        f"{inputs} {unit}" if inputs else "",
        f"{len(classes)} classes ({', '.join(map(escape, classes))})" if classes else "",
    ]
    described = ", ".join(part for part in parts if part)
    return f"{described}; {escape(name_task(run))} on {show_code(name_data(run))}."


def _describe_seeds(run: RunView) -> str:
    """Return which seeds the run used, and where its bits are promised to repeat."""
    seeds = [
        f"{what} with seed {seed}"
        for part, what in (("init", "initialized"), ("order", "ordered"))
        if (seed := as_mapping(run.settings.get(part)).get("seed")) is not None
    ]
    trained = f"A random control, {' and '.join(seeds)}" if seeds else "Trained without a seed"
    if look_up(run, "promise").get("same_bits") is False:
        return f"{trained}."
    where = "on the same kind of machine, with the same versions and thread count,"
    if run.is_portable:
        where = "on any processor with IEEE float64, with the same versions,"
    return f"{trained}: anyone who repeats the run {where} gets the same bits, and can check it."


def list_warnings(run: RunView) -> list[tuple[str, str]]:
    """Return (title, sentence) of each warning that comes before any number."""
    promise = look_up(run, "promise")
    warnings = []
    if run.metrics.get("converged") is False:
        limit = as_mapping(run.settings.get("train")).get("converged_above")
        sentence = (
            f"Its score ended at or below the limit set for it, {limit}: do not use this model."
        )
        warnings.append(("Not converged", sentence))
    if promise.get("same_bits") is False:
        moved = ", ".join(map(str, promise.get("generators_moved") or ()))
        warnings.append(("The same bits are not promised", f"Global generators moved ({moved})."))
    if promise.get("control"):
        flipped = f"A bit of a weight was flipped on purpose: {promise['control']}."
        warnings.append(("A negative control", flipped))
    if find_scores(run)[0] != "test":
        warnings.append(("Not tested", "No scores on records that selection did not use."))
    return warnings


def _format_count(count: Any) -> str:
    return f"{count:,}" if isinstance(count, int) else str(count)


def _format_area(area: float | None) -> str:
    return "not defined" if area is None else f"{area:.4f}"


def _list_recipe(run: RunView) -> list[tuple[str, str]]:
    """Return (what, value) of the data, settings and digests that made the weights."""
    order, init = (as_mapping(run.settings.get(part)) for part in ("order", "init"))
    train = as_mapping(run.settings.get("train"))
    selected = as_mapping(run.metrics.get("selected"))
    counted = as_mapping(look_up(run, "data").get("records"))
    rows: list[tuple[str, Any]] = [
        ("data", name_data(run)),
        ("records", ", ".join(f"{name} {_format_count(n)}" for name, n in counted.items())),
        ("initialization", init.get("basis")),
        *_list_weights_file(run),
        ("batch order", order.get("name")),
        ("batch size", order.get("batch_size")),
        ("epochs", train.get("epochs")),
        ("selected epoch", selected.get("epoch")),
        ("optimizer", f"{train.get('optimizer')}, rate {train.get('rate')}" if train else None),
        ("configuration", look_up(run, "config").get("digest")),
        ("data digest", look_up(run, "data").get("digest")),
        *((f"weights, {name}", value) for name, value in run.hashes),
    ]
    return _drop_empty(rows)


def _list_weights_file(run: RunView) -> list[tuple[str, Any]]:
    """Return (what, value) of the weights file that the run began with; none where none was."""
    file = find_weights_file(run)
    if not file:
        return []
    return [
        ("began with the weights of", file.get("name")),
        ("its SHA-256", file.get("digest")),
        ("what was taken", describe_taken(file)),
    ]


def _list_environment(run: RunView) -> list[tuple[str, str]]:
    """Return (what, value) of the versions and the hardware."""
    environment = look_up(run, "environment")
    source, packages = look_up(run, "source"), as_mapping(environment.get("packages"))
    processor, threads = as_mapping(environment.get("cpu")), as_mapping(environment.get("threads"))
    devices = environment.get("devices") or ()
    rows: list[tuple[str, Any]] = [
        ("seedless", source.get("version")),
        ("source", source.get("digest")),
        ("Python", environment.get("python")),
        *packages.items(),
        ("platform", environment.get("platform")),
        ("processor", processor.get("model")),
        ("instruction set", processor.get("capability")),
        ("threads", threads.get("intraop")),
        *(("device", as_mapping(device).get("name")) for device in devices),
    ]
    return _drop_empty(rows)


def _drop_empty(rows: list[tuple[str, Any]]) -> list[tuple[str, str]]:
    """Return the rows that have a value, as Markdown."""
    return [(escape(name), show_code(value)) for name, value in rows if value not in (None, "")]
