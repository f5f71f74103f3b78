"""The values of the sections on scores: curves of one run, variation and churn of several."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from seedless.core.config import SEED_KEYS, flatten
from seedless.core.digests import get_hex
from seedless.evaluate.auc import FEW_POSITIVES, area_under_curve
from seedless.evaluate.calibration import bin_reliability, calibration_error
from seedless.evaluate.churn import compare_decisions
from seedless.evaluate.roc_curve import draw_roc as find_roc
from seedless.report.charts import (
    choose_scale,
    draw_axis,
    draw_reliability,
    draw_roc,
    draw_strip,
)
from seedless.report.render import mark_safe
from seedless.report.run_view import RunView, same_bits
from seedless.report.sections import list_differing
from seedless.stats.samples import find_moments

MAX_LISTED_RECORDS = 40  # records of a class that are listed
KEYS = 3  # settings that differ between runs, as columns; more are named below the table


def show_scores(runs: Sequence[RunView], varied: bool = False) -> dict[str, Any]:
    """Return the values of the sections plots, compared, spread and churn."""
    distinct = varied and not all(same_bits(runs[0], run) for run in runs[1:])
    plots, unplotted = show_plots(runs[0])
    return {
        "plots": plots,
        "unplotted": unplotted,
        "compared": show_compared(runs) if distinct else None,
        "spread": show_spread(runs) if distinct else None,
        "churn": show_churn(runs) if len(runs) > 1 else None,
    }


def differ_in_settings(runs: Sequence[RunView]) -> bool:
    """Return whether runs have different settings, so that different bits are expected."""
    return len(runs) > 1 and bool(list_differing([run.settings for run in runs])[0])


def show_plots(run: RunView) -> tuple[list[dict[str, Any]], list[str]]:
    """Return ROC curve and reliability of each class on the test set, and classes without them."""
    if run.predictions is None or "test" not in run.predictions.splits:
        return [], []
    test = run.predictions.splits["test"]
    plots, missing = [], []
    for k, name in enumerate(run.predictions.classes):
        scores, truth = test.probabilities[:, k], test.labels[:, k]
        curve, auc = find_roc(scores, truth), area_under_curve(scores, truth)
        error = calibration_error(scores, truth)
        if curve is None or auc is None or error is None:
            missing.append(name)
            continue
        points = list(zip(curve.x.tolist(), curve.y.tolist(), strict=True))
        plots.append(
            {
                "name": name,
                "positives": int(truth.sum()),
                "auc": auc,
                "ece": error,
                "roc": mark_safe(draw_roc(name, points, auc)),
                "reliability": mark_safe(
                    draw_reliability(name, bin_reliability(scores, truth), error)
                ),
            }
        )
    return plots, missing


def needs_no_seed(run: RunView) -> bool:
    """Return whether the settings of a run have no seed."""
    return all(flatten(run.settings).get(key) is None for key in SEED_KEYS)


def show_compared(runs: Sequence[RunView]) -> dict[str, Any]:
    """Return a row for each run: its differing settings, weights, selected epoch and score."""
    keys, tables = list_differing([run.settings for run in runs])
    rows, seen = [], dict[str, str]()
    some_seed = not all(map(needs_no_seed, runs))  # else every run would have a star
    for run, table in zip(runs, tables, strict=True):
        digest = get_hex((run.predicate.get("weights") or {}).get("digest") or "")
        selected = run.metrics.get("selected") or {}
        rows.append(
            {
                "label": run.label,
                "values": [table.get(key, "not set") for key in keys[:KEYS]],
                "digest": digest,
                "same_as": seen.get(digest),
                "epoch": selected.get("epoch"),
                "auc": (run.metrics.get("test") or {}).get("macro_auc"),
                "converged": run.metrics.get("converged", True),
                "starred": some_seed and needs_no_seed(run),
            }
        )
        seen.setdefault(digest, run.label)
    scores = [row["auc"] for row in rows if row["auc"] is not None]
    sentence = "These runs have different settings, and are compared by their results."
    if scores:
        sentence += f" Macro AUC on the test set goes from {min(scores):.3f} to {max(scores):.3f}."
    if failed := sum(not row["converged"] for row in rows):
        verb = "is" if failed == 1 else "are"
        sentence += f" {failed} of {len(rows)} did not converge, and {verb} shown with the others."
    return {
        "columns": keys[:KEYS],
        "hidden": keys[KEYS:],
        "rows": rows,
        "sentence": sentence,
    }


def show_spread(runs: Sequence[RunView]) -> dict[str, Any] | None:
    """Return for macro AUC and each class: every run's score, mean, SD, range and a drawing."""
    tests: list[Mapping[str, Any]] = [run.metrics.get("test") or {} for run in runs]
    if not all(tests):
        return None
    stars = [needs_no_seed(run) for run in runs]
    if all(stars):  # a star on every run says nothing
        stars = [False] * len(runs)
    first = tests[0]["classes"]
    order = (runs[0].predicate.get("data") or {}).get("classes") or list(first)
    lines: list[tuple[str, int | None, list[float | None]]] = [
        ("macro AUC", None, [test.get("macro_auc") for test in tests])
    ]
    for name in order:
        values = [(test["classes"].get(name) or {}).get("auc") for test in tests]
        lines.append((name, (first.get(name) or {}).get("positives"), values))
    drawn = [line for line in lines if any(value is not None for value in line[2])]
    every = [value for _, _, values in drawn for value in values if value is not None]
    if not every:
        return None
    scale = choose_scale(every)
    rows = [_spread_row(*line, stars, scale) for line in drawn]
    seeded = len(runs) - sum(stars)
    seeds = f"{seeded} runs with {'other seeds or settings' if seeded > 1 else 'one setting'}"
    starred = f", and {sum(stars)} that need{'s' if sum(stars) == 1 else ''} no seed" * any(stars)
    return {
        "rows": rows,
        "axis": mark_safe(draw_axis(scale)),
        "stars": any(stars),
        "undefined": [name for name, _, values in lines if all(value is None for value in values)],
        "sentence": f"{seeds}{starred}: the same records, scored by each.",
    }


def _spread_row(
    name: str,
    positives: int | None,
    values: Sequence[float | None],
    stars: Sequence[bool],
    scale: Any,
) -> dict[str, Any]:
    plain = [v for v, star in zip(values, stars, strict=True) if v is not None and not star]
    starred = [v for v, star in zip(values, stars, strict=True) if v is not None and star]
    moments = find_moments(np.array(plain)) if plain else None
    return {
        "name": name,
        "positives": positives,
        "few": positives is not None and positives < FEW_POSITIVES,
        "mean": "" if moments is None else f"{moments.mean:.3f}",
        "sd": "" if moments is None or moments.n < 2 else f"{moments.sd:.4f}",
        "range": f"{100 * (max(plain) - min(plain)):.1f}" if len(plain) > 1 else "",
        "strip": mark_safe(draw_strip(name, plain, starred, scale)),
    }


def show_churn(runs: Sequence[RunView]) -> dict[str, Any] | None:
    """Return the records that runs decide differently; None where predictions are missing."""
    predictions = {run.label: run.predictions for run in runs if run.predictions is not None}
    if len(predictions) < len(runs) or not all(
        "test" in one.splits for one in predictions.values()
    ):
        return None
    churn = compare_decisions(predictions)
    exact = churn.exact
    if not exact.count:
        return {
            "sentence": f"None: all {exact.n:,} test records get the same answer from every run.",
            "count": 0,
            "n": exact.n,
            "rows": [],
            "lists": [],
        }
    rows, lists = [], []
    for name, part in churn.classes.items():
        flips = part.flips
        low, high = 100 * flips.interval.low, 100 * flips.interval.high
        rows.append(
            {
                "name": name,
                "flips": flips.count,
                "n": flips.n,
                "rate": f"{100 * flips.rate:.1f} %",
                "interval": f"[{low:.1f}, {high:.1f}] %",
            }
        )
        if part.records:
            shown = [
                (flip.id, ", ".join(f"{value:.2f}" for value in flip.probabilities))
                for flip in part.records[:MAX_LISTED_RECORDS]
            ]
            lists.append((name, shown, len(part.records) - len(shown)))
    low, high = 100 * exact.interval.low, 100 * exact.interval.high
    decision = (
        "where the answer of a run is its most probable class"
        if churn.task == "multi-class"
        else "each at the thresholds it chose on validation"
    )
    return {
        "sentence": (
            f"{exact.count:,} of {exact.n:,} test records ({100 * exact.rate:.1f} %, 95 % interval "
            f"{low:.1f} to {high:.1f}) get a different answer from at least one of these runs, "
            f"{decision}. Below, their ids with every run's probability."
        ),
        "count": exact.count,
        "n": exact.n,
        "rows": rows,
        "lists": lists,
    }
