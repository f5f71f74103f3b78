"""The scores of a run in a table, as `seedless evaluate` prints it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seedless.core.display import escape_text

if TYPE_CHECKING:
    from seedless.analysis.evaluation import Evaluation
    from seedless.evaluate.subgroup import Rate, Subgroups


def write_evaluation(result: Evaluation) -> str:
    """Return the scores by class, those of all classes, and those of groups where asked for."""
    lines = [*_write_classes(result), *_write_totals(result)]
    if result.subgroups is not None:
        lines += ["", *_write_groups(result.subgroups)]
    return "\n".join(map(escape_text, lines))


def _write_classes(result: Evaluation) -> list[str]:
    scores = result.scores
    wide = max(len("class"), *(len(name) for name in scores["classes"]))
    heads = f"{'sens.':>6} {'spec.':>6} {'F1':>6} {'ECE':>6} {'thresh.':>7}"
    lines = [
        f"{result.run} on {result.data}, {result.split}: n = {scores['n']}",
        f"{'class':<{wide}} {'pos.':>6} {'AUC':>6} {'95 % interval':<14} {heads}",
    ]
    for name, row in scores["classes"].items():
        rates = " ".join(
            f"{_show(row[key]):>6}" for key in ("sensitivity", "specificity", "f1", "ece")
        )
        lines.append(
            f"{name:<{wide}} {row['positives']:>6} {_show(row['auc']):>6} "
            f"{_span(row['auc_interval']):<14} {rates} {_show(row['threshold']):>7}"
        )
    return lines


def _write_totals(result: Evaluation) -> list[str]:
    scores, rank = result.scores, result.scores["effective_rank"]
    facts = {
        "macro AUC": f"{_show(scores['macro_auc'])} {_span(scores['macro_auc_interval'])}",
        "calibration error": _show(scores["ece"]),
    }
    names = {"exact_match": "exact match", "hamming": "Hamming loss", "accuracy": "accuracy"}
    facts |= {name: _show(scores[key]) for key, name in names.items() if key in scores}
    facts |= {
        "effective rank": "no features" if rank is None else f"{rank:.1f}",
        "thresholds chosen on": scores["thresholds_from"] or "nothing: 0.5",
    }
    lines = [f"{name:<22} {value}" for name, value in facts.items()]
    if "accuracy" in scores:
        lines.append(
            "sens., spec. and F1 are of each class against all others, at its threshold; "
            "accuracy takes the most probable class"
        )
    if result.trained:
        lines.append(
            f"TRAINED ON             {result.trained} of these {scores['n']} records: "
            "the scores say little of new ones"
        )
    for side, left_out in result.left_out.items():
        if left_out:
            lines.append(f"left out, only in the {side}: {', '.join(left_out)}")
    return lines


def _write_groups(result: Subgroups) -> list[str]:
    lines = [f"by {result.attribute}, against {result.reference} ({result.unknown} unknown)"]
    for name, group in result.groups.items():
        lines.append(f"{name}: n = {group.n}, macro AUC {_rate(group.macro_auc)}")
        if group.macro_auc_difference.value is not None:
            lines.append(f"  difference {_rate(group.macro_auc_difference)}")
        for label, row in group.classes.items():
            difference = row.auc_difference
            against = "" if difference.value is None else f", difference {_rate(difference)}"
            lines.append(f"  {label}: {row.positives} positives, AUC {_rate(row.auc)}{against}")
    return lines


def _rate(rate: Rate) -> str:
    return f"{_show(rate.value)} {_span(rate.interval and rate.interval.as_list())}".rstrip()


def _show(value: float | None) -> str:
    return "undef." if value is None else f"{value:.3f}"


def _span(interval: Any) -> str:
    return "" if interval is None else f"{interval[0]:.3f}-{interval[1]:.3f}"
