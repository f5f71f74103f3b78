"""docs/reference/published.md: every claim beside what the files give."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.pages import render
from benchmarks.published.claims import CLAIMS
from benchmarks.published.evidence import Found, read_json
from benchmarks.published.headline import pair_like_for_like, test_all_weighted

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
    counts = Counter(_name_verdict(entry) for entry in entries)
    return render(
        "published.md",
        files=sum(path.name != "expected.json" for path in evidence.rglob("*.json")),
        p=found["conf.welch_p"].value,
        d=found["conf.cohen_d"].value,
        fair=found["conf.like_for_like"].value["p"],
        pairs=pair_like_for_like(evidence),
        whole=test_all_weighted(evidence),
        total=len(entries),
        counts=", ".join(f"{name} ({counts[name]})" for name in VERDICTS.values() if counts[name]),
        sections={
            title: [
                _make_row(entry, found[entry["id"]])
                for entry in entries
                if entry["id"].split(".")[0] == prefix
            ]
            for prefix, title in SECTIONS.items()
        },
    )


def _name_verdict(entry: dict[str, Any]) -> str:
    """Return the verdict in words; what the paper does not state it cannot have right."""
    silent = entry["paper_value"] is None and entry["verdict"] == "reproduces"
    return VERDICTS["not_in_paper" if silent else entry["verdict"]]


def _make_row(entry: dict[str, Any], found: Found) -> list[str]:
    """Return the cells of a claim's row."""
    verdict = _name_verdict(entry)
    cells = [
        f"`{entry['id']}` {entry['description']}",
        _show(entry["paper_value"]) if entry["paper_value"] is not None else "not stated",
        _show(found.value) if found.value is not None else "none",
        f"**{verdict}**" if entry["verdict"] == "does_not_reproduce" else verdict,
        ", ".join(map(str, found.n)) or "0",
        found.remark or entry["note"],
    ]
    return [cell.replace("|", "\\|") for cell in cells]


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
