"""Where does variance come from, when only one source was varied at a time?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from seedless.core.errors import StatsError
from seedless.stats.answer import Answer, show
from seedless.stats.samples import Values, find_moments, read_sample


@dataclass(frozen=True)
class Source:
    """The variance of one group, and what is left of it without the noise all groups share.

    ``own`` may be negative, which says that the source is too small to be seen; ``sd`` is then
    None.
    """

    name: str
    n: int
    observed: float
    own: float
    sd: float | None


@dataclass(frozen=True, kw_only=True)
class Sources(Answer):
    """One row a source; ``negative`` names those that came out below 0."""

    rows: tuple[Source, ...]
    noise: str | None
    negative: tuple[str, ...]


def separate_sources(groups: Mapping[str, Values], noise: str | None = None) -> Sources:
    """Compare replicate groups in each of which one thing was varied and the rest held.

    Args:
        groups: for each source, such as "initialization", the scores of the runs that vary it.
        noise: the group of plain repeats, such as "device operations", whose variance is in every
            other group too and is taken off. None where repeats are identical in every bit.
    """
    if not groups:
        raise StatsError("name at least one group of replicates")
    if noise is not None and noise not in groups:
        raise StatsError(f"there is no group {noise!r} to take off; known: {', '.join(groups)}")
    found = {name: find_moments(read_sample(values, name)) for name, values in groups.items()}
    floor = found[noise].variance if noise is not None else 0.0
    rows = []
    for name, moments in found.items():
        own = moments.variance - (floor if name != noise else 0.0)
        sd = math.sqrt(own) if own >= 0 else None
        rows.append(Source(name, moments.n, moments.variance, own, sd))
    negative = tuple(row.name for row in rows if row.own < 0)
    parts = ", ".join(
        f"{row.name} {'below 0' if row.sd is None else 'SD ' + show(row.sd)}" for row in rows
    )
    sentence = f"Varied one at a time: {parts}."
    if negative:
        sentence += f" Not seen above {noise}: {', '.join(negative)}."
    return Sources(
        rows=tuple(rows),
        noise=noise,
        negative=negative,
        n=tuple(row.n for row in rows),
        assumption="sources that add up and do not interact: what one does with the others held "
        "is what it always does",
        sentence=sentence,
    )
