"""Tables of studies: rows of text, with published values next to ours, and notes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seedless.core.display import escape_text


@dataclass(frozen=True)
class Published:
    """A published mean; its SD over ``n`` runs where they were published.

    ``comparable``: whether ours were made as it was; if not, no difference is computed.
    """

    mean: float
    sd: float | None = None
    n: int | None = None
    comparable: bool = True

    def __str__(self) -> str:
        return f"{self.mean:.4g}" if self.sd is None else f"{self.mean:.4g} ± {self.sd:.2g}"

    def contains(self, value: float) -> bool | None:
        """Return whether a value is in the 95 % interval of the published mean.

        The interval is Student's, mean ± t(.975, n - 1) SD / sqrt(n); None without a published SD.
        """
        if self.sd is None or self.n is None or self.n < 2:
            return None
        from scipy import stats

        half = float(stats.t.ppf(0.975, self.n - 1)) * self.sd / math.sqrt(self.n)
        return abs(value - self.mean) <= half


# The last columns of every table with published values, and the cell where no SD was published.
PUBLISHED_COLUMNS = ("published", "difference", "in its 95 % interval")
NO_INTERVAL = "none given"


def format_published(known: Published | None, ours: float | None) -> tuple[str, str, str]:
    """Return the cells of `PUBLISHED_COLUMNS` for our mean; empty where nothing is published."""
    if known is None:
        return "", "", ""
    if ours is None or not known.comparable:
        return str(known), "", ""
    inside = known.contains(ours)
    answer = NO_INTERVAL if inside is None else ("yes" if inside else "no")
    return str(known), f"{ours - known.mean:+.4f}", answer


def list_published_values(known: Published | None, ours: float | None) -> dict[str, Any]:
    """Return the numbers behind the cells of `format_published`; None where there are none."""
    values: dict[str, Any] = {
        "published": None if known is None else known.mean,
        "published_sd": None if known is None else known.sd,
        "published_n": None if known is None else known.n,
        "difference": None,
        "in_interval": None,
    }
    if known is not None and known.comparable and ours is not None:
        values |= {"difference": ours - known.mean, "in_interval": known.contains(ours)}
    return values


def compare_with_published(
    scores: Sequence[float], known: Published | None
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the cells of a row that ends in `PUBLISHED_COLUMNS`, and the numbers behind them."""
    mean = sum(scores) / len(scores) if scores else None
    values = {"mean": mean, **list_published_values(known, mean)}
    return (format_mean(scores), *format_published(known, mean)), values


@dataclass(frozen=True)
class Table:
    """Columns, rows of cells, and notes below them.

    ``values``: the numbers behind the cells, unrounded, for programs.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    values: tuple[dict[str, Any], ...] = ()

    def to_markdown(self) -> str:
        """Return it as Markdown."""
        lines = [
            f"## {self.title}",
            "",
            "| " + " | ".join(self.columns) + " |",
            "|"
            + "|".join("---" if place == 0 else "--:" for place in range(len(self.columns)))
            + "|",
            *("| " + " | ".join(map(escape_cell, row)) + " |" for row in self.rows),
        ]
        if self.notes:
            lines += ["", *(f"- {escape_text(note)}" for note in self.notes)]
        return "\n".join(lines) + "\n"

    def __str__(self) -> str:
        rows = [tuple(map(escape_text, row)) for row in self.rows]
        cells = [self.columns, *rows]
        widths = [max(len(row[place]) for row in cells) for place in range(len(self.columns))]

        def line(row: Sequence[str]) -> str:
            first, *rest = (
                cell.ljust(width) if place == 0 else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            return "  ".join([first, *rest]).rstrip()

        rule = "  ".join("-" * width for width in widths)
        parts = [self.title, "", line(self.columns), rule, *map(line, rows)]
        return "\n".join([*parts, *(["", *map(escape_text, self.notes)] if self.notes else [])])


def escape_cell(text: str) -> str:
    """Return a cell that stays one cell, and holds neither HTML nor a link."""
    plain = escape_text(text).replace("&", "&amp;").replace("<", "&lt;")
    return plain.replace("|", "\\|").replace("](", "]\\(")


def mean_and_sd(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean and the sample SD (n - 1) of at least one value; one value has SD 0."""
    mean = math.fsum(values) / len(values)
    squares = math.fsum((value - mean) ** 2 for value in values)
    return mean, math.sqrt(squares / (len(values) - 1)) if len(values) > 1 else 0.0


def format_mean(values: Sequence[float]) -> str:
    """Return "mean ± SD", the single value, or "none"."""
    if not values:
        return "none"
    mean, sd = mean_and_sd(values)
    return f"{mean:.4f}" + (f" ± {sd:.4f}" if len(values) > 1 else "")
