"""Every claim and how to compute it, by the id that expected.json gives it."""

from __future__ import annotations

from benchmarks.published import bases, classes, headline, tables
from benchmarks.published.evidence import Claim

CLAIMS: dict[str, Claim] = {
    **headline.CLAIMS,
    **bases.CLAIMS,
    **classes.CLAIMS,
    **tables.CLAIMS,
}
