"""What a comparison of two arms comes to, and how it is printed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from seedless.stats.compare import Row
from seedless.stats.difference import Difference


@dataclass(frozen=True)
class Comparison:
    """A row of statistics, and what to know before believing it.

    Attributes:
        metric: what was compared.
        row: the statistics; see `seedless.stats.compare.Row`.
        matched: how runs were paired, or why they were not.
        set_aside: for each arm the scores of the runs that did not converge, where a bar was given.
        warnings: what makes the comparison less than fair.
    """

    metric: str
    row: Row
    matched: str
    set_aside: tuple[tuple[float, ...], ...]
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        lines = [*_write_arms(self), *_write_tests(self), self.row.sentence]
        lines += [f"undefined: {reason}" for reason in self.row.undefined]
        return "\n".join(lines + [f"WARNING: {warning}" for warning in self.warnings])

    def as_values(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        return asdict(self)


def _write_arms(found: Comparison) -> list[str]:
    heads = ("n", "mean", "SD", "lowest", "highest", "range", "set aside")
    lines = [_line(found.metric, *heads)]
    for arm, aside in zip((found.row.a, found.row.b), found.set_aside, strict=True):
        numbers = (arm.mean, arm.sd, arm.low, arm.high, arm.range)
        lines.append(_line(arm.name, str(arm.n), *map(_show, numbers), str(len(aside))))
    return [*lines, ""]


def _line(name: str, n: str, *cells: str) -> str:
    return f"{name:<16} {n:>4} " + " ".join(f"{cell:>11}" for cell in cells)


def _write_tests(found: Comparison) -> list[str]:
    row = found.row
    lines = []
    if row.welch is not None:
        gap = f"{_show(row.welch.difference)}, 95 % {_interval(row.welch.interval)}"
        lines.append(_entry("A - B", gap))
        lines.append(_entry("Welch", _write_t(row.welch)))
    if row.effect is not None:
        wald, exact = row.effect.wald, row.effect.noncentral_t
        text = f"{_show(row.effect.d)}, 95 % {_interval(wald)} (Wald)"
        if exact is not None:
            text += f", {_interval(exact)} (noncentral t)"
        lines.append(_entry("Cohen's d", text))
    if row.paired is not None:
        lines.append(_entry("paired t", f"{_write_t(row.paired)}; {found.matched}"))
    else:
        lines.append(_entry("paired t", f"none; {found.matched}"))
    for name, test in (("TOST", row.equivalence), ("paired TOST", row.paired_equivalence)):
        if test is not None:
            margin = f"for a margin of {_show(test.margin)}, df = {_show(test.df)}"
            text = f"p = {_show(test.p)} {margin}; 90 % {_interval(test.interval)}"
            lines.append(_entry(name, text))
    if row.power is not None and row.runs_needed is not None:
        needed = row.runs_needed.per_arm
        text = "no number of runs reaches" if needed is None else f"{needed} runs per arm for"
        lines.append(
            _entry("power", f"{_show(row.power.power)} were d the true effect; {text} 0.8")
        )
    return [*lines, ""]


def _entry(name: str, text: str) -> str:
    return f"{name:<12} {text}"


def _write_t(test: Difference) -> str:
    return f"t = {_show(test.t)}, df = {_show(test.df)}, p = {_show(test.p)}"


def _interval(ends: tuple[float, float]) -> str:
    return f"[{_show(ends[0])}, {_show(ends[1])}]"


def _show(value: float) -> str:
    return f"{value:.6g}"
