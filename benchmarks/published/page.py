"""docs/reference/published.md: every claim beside what the files give."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.published.claims import CLAIMS
from benchmarks.published.evidence import Found, read_json
from benchmarks.published.headline import pair_like_for_like

OPENING = """# A paper's published results, computed again

The method this library rebuilds was published with {files} JSON files of results, nearly all of
them one for a trained model. This page sets what the paper says of those runs beside what the files
give, computed with `seedless.stats` alone by `python -m benchmarks.published`; do not edit it by
hand. A test compares every value with an independent computation in scipy and statsmodels, to six
digits.

**What to take from it.** The headline, conformer with mixed bases against Kaiming's weights, comes
out as printed but for rounding: p = {p:.4f}, d = {d:.2f}, n = 20 and 20. But only the first arm was
trained with class weights. With the same loss in both arms, and the 18 of 20 Kaiming runs that
converged, the same test gives p = {fair:.4f}: like for like, the headline is not significant.
(Paired by seed the same runs give p = {pairs:.4f}. Which test counts has to be settled before
looking, and the paper chose the unpaired one.) Most tables reproduce to the
digit. What does not are sentences about all of something ("all p > .25", "equal or lower variance",
"systematically tighter"), one confidence limit, and rows of the ablation whose files are those of
another experiment. Values are test macro AUC unless said otherwise, SDs are sample SDs, ranges are
in percentage points.

{total} claims: {counts}.
"""

VERDICTS = {
    "reproduces": "reproduces",
    "reproduces_within_rounding": "within rounding",
    "does_not_reproduce": "does not reproduce",
    "not_in_paper": "not in the paper",
    "evidence_missing": "no file published",
    "mean_reproduces_sd_evidence_missing": "mean reproduces, no file for the SD",
    "stored_only_not_recomputable": "stored, cannot be recomputed",
}

SECTIONS = {
    "main": "Main table",
    "conf": "Conformer: mixed bases against Kaiming",
    "basis": "Four bases",
    "abl": "Ablation",
    "golden": "Runs without a seed",
    "medmnist": "Images",
    "retina": "Retina, class by class",
    "perclass": "Single classes over 20 seeds",
    "cv": "Folds",
    "xd": "Other datasets",
    "batch": "Batch orders",
    "demog": "Sex",
}


def write_page(evidence: Path) -> str:
    """Return the whole page."""
    entries = read_json(evidence, "expected.json")
    found = {entry["id"]: CLAIMS[entry["id"]](evidence) for entry in entries}
    counts = Counter(_judge(entry) for entry in entries)
    listed = ", ".join(f"{name} ({counts[name]})" for name in VERDICTS.values() if counts[name])
    files = sum(path.name != "expected.json" for path in evidence.rglob("*.json"))
    lines = [
        OPENING.format(
            files=files,
            p=found["conf.welch_p"].value,
            d=found["conf.cohen_d"].value,
            fair=found["conf.like_for_like"].value["p"],
            pairs=pair_like_for_like(evidence),
            total=len(entries),
            counts=listed,
        )
    ]
    for prefix, title in SECTIONS.items():
        lines += [f"## {title}", "", "| claim | published | recomputed | verdict | n | note |"]
        lines.append("|---|---|---|---|---|---|")
        for entry in entries:
            if entry["id"].split(".")[0] == prefix:
                lines.append(_write_row(entry, found[entry["id"]]))
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _judge(entry: dict[str, Any]) -> str:
    """Return the verdict in words; what the paper does not state it cannot have right."""
    silent = entry["paper_value"] is None and entry["verdict"] == "reproduces"
    return VERDICTS["not_in_paper" if silent else entry["verdict"]]


def _write_row(entry: dict[str, Any], found: Found) -> str:
    verdict = _judge(entry)
    cells = [
        f"`{entry['id']}` {entry['description']}",
        _show(entry["paper_value"]) if entry["paper_value"] is not None else "not stated",
        _show(found.value) if found.value is not None else "none",
        f"**{verdict}**" if entry["verdict"] == "does_not_reproduce" else verdict,
        ", ".join(map(str, found.n)) or "0",
        found.remark or entry["note"],
    ]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _show(value: Any) -> str:
    """Return numbers with six significant digits, and what holds them as words."""
    if isinstance(value, dict):
        between = "<br>" if any(isinstance(item, dict) for item in value.values()) else "; "
        return between.join(
            f"{key.replace('_', ' ')}: {_show(item)}" for key, item in value.items()
        )
    if isinstance(value, list | tuple):
        return ", ".join(_show(item) for item in value)
    if value is None:
        return "none"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
