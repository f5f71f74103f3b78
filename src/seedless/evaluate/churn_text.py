"""Churn in words and tables, as `seedless churn` prints it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seedless.core.display import escape_text

if TYPE_CHECKING:
    from seedless.evaluate.churn import Churn, ClassChurn, Share


def write_churn(result: Churn) -> str:
    """Return the table of flips by class."""
    wide = max(len("any class"), *(len(name) for name in result.classes))
    heading = f"{'class':<{wide}} {'flips':>6} {'rate':>7}  {'95 % interval':<18}"
    heading += "   only 1   only 2  McNemar p" if result.mcnemar else " mean of two runs"
    lines = [f"{len(result.runs)} runs, {result.split}: n = {result.exact.n}", heading]
    lines += [f"{name:<{wide}} {_row(row.flips, row)}" for name, row in result.classes.items()]
    lines += [f"{'any class':<{wide}} {_row(result.exact, result)}", ""]
    if result.mcnemar:
        lines.append("only 1, only 2: records that only this run decides correctly")
    else:
        lines += [
            "flips: records that not all runs decide alike; more runs, more flips",
            "mean of two runs: records that two of the runs decide differently, on average",
        ]
    return "\n".join(map(escape_text, lines))


def write_flips(result: Churn, name: str) -> str:
    """Return the list of the records that flip for one class, with the answer of each run."""
    row = result.classes[name]
    lines = [f"{name}: {row.flips.count} of {row.flips.n} records flip"]
    for number, run in enumerate(result.runs, start=1):
        limit = row.thresholds[number - 1]
        called = f", called from {0.5 if limit is None else limit:.4f} on"
        lines.append(f"  {number}: {run}{'' if result.task == 'multi-class' else called}")
    for flip in row.records:
        answers = "  ".join(
            f"{probability:.4f} {'yes' if call else 'no':<3}"
            for probability, call in zip(flip.probabilities, flip.calls, strict=True)
        )
        lines.append(f"{flip.id}  {answers}")
    return "\n".join(map(escape_text, lines))


def _row(share: Share, result: Churn | ClassChurn) -> str:
    low, high = share.interval.as_list()
    interval = f"{low:.2%} to {high:.2%}"
    text = f"{share.count:>6} {share.rate:>7.2%}  {interval:<18}"
    if (test := result.mcnemar) is None:
        return f"{text} {result.disagreement:>16.2%}"
    return f"{text} {test.first_only:>8} {test.second_only:>8}  {test.p:>9.4f}"
