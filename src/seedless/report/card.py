"""A model card for a run, in the Hugging Face form: front matter, then what a reader must know.

Everything comes from the run's receipt and metrics; what a run does not have is left out. Nothing
depends on where or when it is written, so that a run's card repeats to the byte.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seedless.report.frontmatter import write_front_matter
from seedless.report.runview import RunView, bare_hex

FEW = 10  # with fewer positives than this, one record moves a class's AUC too far to lean on it
SPLITS = ("test", "validation", "train")


def make_card(run: RunView, license_: str = "other") -> str:
    """Return the card of a run as Markdown; ``run.label`` is the model's name."""
    sections = (
        _introduce(run),
        _tell_use(run),
        _tabulate(run),
        _tell_making(run),
        _tell_loading(run),
        _tell_environment(run),
    )
    body = "\n\n".join(section for section in sections if section)
    return f"{write_front_matter(describe(run, license_))}\n{body}\n"


def describe(run: RunView, license_: str) -> dict[str, Any]:
    """Return the front matter as plain values."""
    images = _takes_images(run)
    kind = ["image-classification"] if images else ["ecg", "time-series"]
    matter: dict[str, Any] = {
        "license": license_,
        "library_name": "seedless",
        "tags": ["seedless", "reproducibility", "deterministic", "pytorch", "safetensors", *kind],
        "datasets": [_data_name(run)],
        "metrics": ["roc_auc"],
    }
    split, scores = _judged(run)
    metrics = [
        {"type": "roc_auc", "name": name, "value": value}
        for name, value in (
            ("macro AUC", _number(scores.get("macro_auc"))),
            *((f"AUC {label}", area) for label, area, _ in _list_classes(run, scores)),
        )
        if value is not None
    ]
    if metrics:
        result = {
            "task": {"type": "image-classification" if images else "other", "name": _task(run)},
            "dataset": {"type": _data_name(run), "name": _data_name(run), "split": split},
            "metrics": metrics,
        }
        matter["model-index"] = [{"name": run.label, "results": [result]}]
    return matter


def _introduce(run: RunView) -> str:
    model, settings = _of(run, "model"), _mapping(run.settings.get("model"))
    name = str(settings.get("name") or "")
    kind = str(model.get("type") or "model") if name in ("", "given") else name
    size = model.get("parameters")
    inputs = settings.get("leads") or settings.get("channels")
    unit = "leads" if settings.get("leads") else "channels"
    classes = _classes(run)
    parts = [
        f"`{kind}`" + (" in its small variant" if settings.get("small") else ""),
        f"{size:,} parameters" if isinstance(size, int) else "",
        f"{inputs} {unit}" if inputs else "",
        f"{len(classes)} classes ({', '.join(map(_escape, classes))})" if classes else "",
    ]
    said = ", ".join(part for part in parts if part)
    lines = [
        f"# {_escape(run.label)}",
        "",
        f"{said}; {_task(run)} on `{_data_name(run)}`. Trained without a seed: whoever repeats the "
        "run on the same kind of machine gets the same bits, and can check it.",
    ]
    return "\n".join(lines + _warn(run))


def _warn(run: RunView) -> list[str]:
    """Return what must be read before any number."""
    promise = _of(run, "promise")
    warnings = []
    if run.metrics.get("converged") is False:
        warnings.append("**Not converged.** The run's score is at chance: do not use this model.")
    if promise.get("same_bits") is False:
        moved = ", ".join(map(str, promise.get("generators_moved") or ()))
        warnings.append(f"**The same bits are not promised**: global generators moved ({moved}).")
    if promise.get("control"):
        warnings.append(
            "**A negative control.** A bit of a weight was flipped on purpose: "
            f"`{promise['control']}`."
        )
    if _judged(run)[0] != "test":
        warnings.append("**Not tested.** There are no scores on records kept apart from selection.")
    return [line for warning in warnings for line in ("", f"> {warning}")]


def _tell_use(run: RunView) -> str:
    _, scores = _judged(run)
    rare = [
        f"{_escape(label)} ({positives})"
        for label, _, positives in _list_classes(run, scores)
        if positives is not None and positives < FEW
    ]
    lines = [
        "## Intended use and limits",
        "",
        "For research on reproducible training and on this kind of data. It is not a medical "
        "device, was examined by no authority, and must not inform the care of anyone.",
        "",
        "- Its scores hold for the data named here. Other hospitals, devices, populations and "
        "preprocessing may give other ones.",
        "- Probabilities are not calibrated unless someone has measured that they are.",
        "- That a run repeats says that its making is known, not that its answers are right.",
    ]
    if str(_of(run, "data").get("name")).startswith("simulated"):
        lines.append("- The data are simulated: the scores say nothing about real patients.")
    if rare:
        lines.append(
            f"- Classes with fewer than {FEW} positives among the records scored: "
            f"{', '.join(rare)}. One record moves their AUC far; do not lean on it."
        )
    return "\n".join(lines)


def _tabulate(run: RunView) -> str:
    split, scores = _judged(run)
    if not scores:
        return "## Results\n\nThis run has no scores."
    macro, count = _number(scores.get("macro_auc")), scores.get("n")
    shown = "not defined" if macro is None else f"{macro:.4f}"
    lines = [
        "## Results",
        "",
        f"Area under the ROC curve on the {split} split"
        + (f", {count:,} records" if isinstance(count, int) else "")
        + f". Macro AUC, the mean over classes that have both kinds: **{shown}**.",
        "",
        "| class | positives | AUC |",
        "|---|---:|---:|",
    ]
    for label, area, positives in _list_classes(run, scores):
        found = "not defined" if area is None else f"{area:.4f}"
        lines.append(f"| {_escape(label)} | {'' if positives is None else positives} | {found} |")
    return "\n".join(lines)


def _tell_making(run: RunView) -> str:
    order, init = (_mapping(run.settings.get(part)) for part in ("order", "init"))
    train = _mapping(run.settings.get("train"))
    selected = _mapping(run.metrics.get("selected"))
    records = _of(run, "data").get("records")
    counted = _mapping(records)
    rows: list[tuple[str, Any]] = [
        ("data", _data_name(run)),
        ("records", ", ".join(f"{name} {count:,}" for name, count in counted.items())),
        ("initialization", init.get("basis")),
        ("batch order", order.get("name")),
        ("batch size", order.get("batch_size")),
        ("epochs", train.get("epochs")),
        ("epoch kept", selected.get("epoch")),
        ("optimizer", f"{train.get('optimizer')}, rate {train.get('rate')}" if train else None),
        ("configuration", _of(run, "config").get("digest")),
        ("data digest", _of(run, "data").get("digest")),
        *((f"weights, {name}", value) for name, value in run.hashes),
    ]
    lines = ["## How it was made", "", "| what | value |", "|---|---|"]
    lines += [f"| {name} | `{value}` |" for name, value in rows if value not in (None, "")]
    lines += [
        "",
        "The receipt beside the weights names all of it. With the run folder, this executes the "
        "run again and compares every epoch:",
        "",
        "```sh",
        "seedless verify RUN" + (" --entry package.module:function" * _is_given(run)),
        "```",
    ]
    return "\n".join(lines)


def _tell_loading(run: RunView) -> str:
    model = ", model=MODEL" * _is_given(run)
    digest = bare_hex(_of(run, "weights").get("digest"))
    lines = ["## How to load it", "", "```python", "import seedless", ""]
    lines += [f'run = seedless.load("RUN"{model})  # the run folder', "run.model  # in eval mode"]
    if digest:
        lines.append(f'assert seedless.digest(run.model) == "sha256:{digest}"')
    lines += ["```", "", _tell_input(run)]
    return "\n".join(lines)


def _tell_input(run: RunView) -> str:
    scale = _mapping(_of(run, "data").get("scale"))
    if not scale:
        return "It takes samples as they were given to `fit`, and gives logits."
    mean, deviation = (
        ", ".join(f"{value:.6g}" for value in scale.get(name) or ())
        for name in ("mean", "deviation")
    )
    shape = "(batch, channels, height, width)" if _takes_images(run) else "(batch, leads, time)"
    return (
        f"It takes {shape} after `(x - mean) / deviation`, with mean {mean} and deviation "
        f"{deviation}, and gives logits: a "
        f"{'softmax' if _of(run, 'data').get('task') == 'multi-class' else 'sigmoid'} makes them "
        "probabilities."
    )


def _tell_environment(run: RunView) -> str:
    found = _of(run, "environment")
    source, packages = _of(run, "source"), _mapping(found.get("packages"))
    processor, threads = _mapping(found.get("cpu")), _mapping(found.get("threads"))
    devices = found.get("devices") or ()
    rows: list[tuple[str, Any]] = [
        ("seedless", source.get("version")),
        ("source", source.get("digest")),
        ("Python", found.get("python")),
        *packages.items(),
        ("platform", found.get("platform")),
        ("processor", processor.get("model")),
        ("instruction set", processor.get("capability")),
        ("threads", threads.get("intraop")),
        *(("device", _mapping(device).get("name")) for device in devices),
    ]
    lines = [f"| {name} | `{value}` |" for name, value in rows if value not in (None, "")]
    if not lines:
        return ""
    return "\n".join(["## Environment", "", "| what | value |", "|---|---|", *lines])


def _judged(run: RunView) -> tuple[str, Mapping[str, Any]]:
    """Return the split that says most about the model, and its scores."""
    for split in SPLITS:
        if scores := _mapping(run.metrics.get(split)):
            return split, scores
    return "", {}


def _list_classes(
    run: RunView, scores: Mapping[str, Any]
) -> list[tuple[str, float | None, int | None]]:
    """Return (class, AUC, positives) in the order of the data's classes."""
    found = _mapping(scores.get("classes"))
    order = [name for name in _classes(run) if name in found]
    order += [name for name in found if name not in order]
    rows = []
    for name in order:
        one = _mapping(found[name])
        positives = one.get("positives")
        count = positives if isinstance(positives, int) else None
        rows.append((name, _number(one.get("auc")), count))
    return rows


def _classes(run: RunView) -> list[str]:
    return [str(name) for name in _of(run, "data").get("classes") or ()]


def _data_name(run: RunView) -> str:
    name = str(_of(run, "data").get("name") or "unknown")
    return "arrays of its author" if name == "given" else name.removesuffix(".npz")


def _task(run: RunView) -> str:
    return f"{_of(run, 'data').get('task') or ''} classification".strip()


def _is_given(run: RunView) -> bool:
    return run.predicate.get("kind") == "fit"


def _takes_images(run: RunView) -> bool:
    return bool(_mapping(run.settings.get("model")).get("channels"))


def _of(run: RunView, name: str) -> Mapping[str, Any]:
    return _mapping(run.predicate.get(name))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _number(value: Any) -> float | None:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if plain else None


def _escape(text: str) -> str:
    """Return text that Markdown shows as it is, in one line."""
    escaped = "".join(f"\\{c}" if c in "\\`*_[]<>|#" else c for c in text)
    return " ".join(escaped.split())
