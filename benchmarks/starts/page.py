"""Write the pages about starts on networks of other libraries, from their records:

    python -m benchmarks.starts.page [default-start.jsonl]

docs/results/start-causes.md, and docs/results/default-start.md where the trainings of the protocol
are in benchmarks/results/default-start.jsonl; a file that is named is copied there first.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.pages import DOCS, RESULTS, read_records, render
from benchmarks.starts import analysis, plan
from benchmarks.starts.causes import GRADIENTS, RECORD
from benchmarks.starts.compare import RECORD as TRAININGS
from benchmarks.starts.variants import NAMES, VARIANTS
from seedless.stats.holm_correction import holm

CAUSES_PAGE = DOCS / "results" / "start-causes.md"
DEFAULT_PAGE = DOCS / "results" / "default-start.md"


def summarize_causes(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the AUC of each variant by network, over replicates that all of them have."""
    networks = list(dict.fromkeys(row["network"] for row in rows))
    there = {(row["network"], row["variant"], row["replicate"]) for row in rows}
    whole = [
        network for network in networks if all((network, variant, 0) in there for variant in NAMES)
    ]
    replicates = 0
    while whole and all((n, v, replicates) in there for n in whole for v in NAMES):
        replicates += 1
    table = {}
    for variant in NAMES:
        cells = []
        for network in whole:
            chosen = [
                row["auc"]
                for row in rows
                if (row["network"], row["variant"]) == (network, variant)
                and row["replicate"] < replicates
            ]
            cells.append(math.fsum(chosen) / len(chosen))
        table[variant] = cells
    means = {variant: math.fsum(cells) / max(1, len(cells)) for variant, cells in table.items()}
    others = [
        means[variant] - means["dct"]
        for variant in VARIANTS
        if variant not in ("dct", "columns signed")
    ]
    found = {"networks": whole, "replicates": replicates, "table": table, "means": means}
    return {**found, "others": (min(others), max(others))}


def summarize_gradients(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return for each variant the geometric mean of its norms over those of canonical_kaiming."""
    table = {}
    for variant in (plan.OWN, *NAMES):
        ratios = [row["norms"][variant] / row["norms"]["canonical_kaiming"] for row in rows]
        changed = [row for row in rows if row["changed"].get(variant, 1)]
        middle = math.exp(math.fsum(math.log(ratio) for ratio in ratios) / len(ratios))
        table[variant] = {
            "mean": middle,
            "low": min(ratios),
            "high": max(ratios),
            "networks": len(changed) if variant not in ("dct", plan.OWN) else len(rows),
        }
    return {"count": len(rows), "table": table}


def make_causes_page(folder: Path = RESULTS) -> str:
    """Return the page about the causes."""
    records = read_records(folder)
    causes, gradients = records[RECORD], records[GRADIENTS]
    return render(
        "start-causes.md",
        causes=summarize_causes(causes["results"]["rows"]),
        gradients=summarize_gradients(gradients["results"]["rows"]),
        epochs=causes["results"]["rows"][0]["epochs"],
        pixels=causes["results"]["pixels"],
        records=(causes, gradients),
    )


def read_trainings(file: Path) -> list[dict[str, Any]]:
    """Return the rows of the comparison."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def compare_all(scores: analysis.Scores) -> list[tuple[analysis.Paired, float]]:
    """Return every pair of starts, each once, with the p of its difference after Holm's method."""
    pairs = [(a, b) for i, a in enumerate(plan.STARTS) for b in plan.STARTS[i + 1 :]]
    tests = {f"{b} minus {a}": analysis.compare(scores, b, a) for a, b in pairs}
    adjusted = holm({name: test.two_sided for name, test in tests.items()}, plan.ALPHA).adjusted
    return [(test, adjusted[name]) for name, test in tests.items()]


def make_default_page(rows: Iterable[dict[str, Any]]) -> str:
    """Return the page of the comparison; it needs one replicate of every cell."""
    rows = list(rows)
    networks = analysis.list_networks(rows)
    replicates = analysis.count_replicates(rows, networks)
    if not replicates:
        raise SystemExit("error: expected a first replicate of every network, start and data set")
    done = [row for row in rows if "error" not in row]
    scores = analysis.average(done, replicates, networks=networks)
    return render(
        "default-start.md",
        plan=plan,
        networks=networks,
        left_out=[name for name in plan.NETWORKS if name not in networks],
        replicates=replicates,
        scores=scores,
        choice=analysis.choose_default(scores),
        pairs=compare_all(scores),
        by_data={
            data: compare_all(analysis.average(done, replicates, data, networks))
            for data in plan.EPOCHS
        },
        places=sorted({f"{row['device']}, torch {row['torch']}" for row in done}),
        count=len([row for row in done if row["replicate"] < replicates]),
    )


def main() -> None:
    """Write the pages whose records are there."""
    kept = RESULTS / TRAININGS
    if len(sys.argv) > 1:
        kept.write_bytes(Path(sys.argv[1]).read_bytes())
    CAUSES_PAGE.write_text(make_causes_page(), encoding="utf-8")
    print(CAUSES_PAGE)
    if kept.exists():
        DEFAULT_PAGE.write_text(make_default_page(read_trainings(kept)), encoding="utf-8")
        print(DEFAULT_PAGE)


if __name__ == "__main__":
    main()
