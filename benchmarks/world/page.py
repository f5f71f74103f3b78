"""Write docs/explanation/scale.md: ``python -m benchmarks.world page``."""

from __future__ import annotations

from collections.abc import Mapping
from math import log2
from pathlib import Path
from typing import Any

from benchmarks.pages import DOCS, Record, describe, read_records, render
from benchmarks.world.devices import WORLDS

PAGE = DOCS / "explanation" / "scale.md"
# Bytes a second in one direction, and seconds from one GPU to the next. NVLink 4: 900 GB/s a GPU in
# both directions together. Ethernet: 400 Gb/s a GPU.
NETWORKS = {"NVLink": (450e9, 3e-6), "400 Gb/s Ethernet": (50e9, 10e-6)}
SIZES = (8, 64)


def estimate_seconds(bytes_: int, messages: int, size: int, network: str) -> float:
    """Return the seconds of all-reduces: latency as in a tree, bytes as in a ring."""
    bandwidth, latency = NETWORKS[network]
    return 2 * (size - 1) / size * bytes_ / bandwidth + messages * 2 * log2(size) * latency


def make_page(records: Mapping[str, Record] | None = None) -> str:
    """Return the page from the three records."""
    recorded = read_records() if records is None else records
    devices, cost, traffic = (recorded[f"world-{name}"] for name in ("devices", "cost", "traffic"))
    return render(
        "scale.md",
        worlds=_list_worlds(devices["results"]["digests"]),
        steps=devices["results"]["steps"],
        costs=_list_costs(cost["results"]["rows"]),
        samples=cost["results"]["samples"],
        rounds=cost["results"]["rounds"],
        memory={n: kib / 2**10 for n, kib in cost["results"]["rows"]["peak_rss_kib"].items()},
        traffic=traffic["results"]["rows"],
        estimates=_list_estimates(traffic["results"]["rows"]),
        describe=describe,
        describe_cpu=_describe_cpu,
        devices_record=devices,
        cost_record=cost,
        traffic_record=traffic,
    )


def _describe_cpu(record: Record) -> str:
    """Return the processor and the command of a record made without a GPU, in one line."""
    cpu, torch = record["environment"]["cpu"], record["environment"]["packages"]["torch"]
    return f"{cpu['model']}, {cpu['cores']} cores, torch {torch}; `{record['command']}`"


def _list_worlds(digests: Mapping[str, Mapping[str, list[str]]]) -> list[dict[str, Any]]:
    """Return each world with the first characters of its models' digests."""
    return [
        {"label": label, "digests": {name: found[0][7:15] for name, found in models.items()}}
        for label, models in sorted(digests.items(), key=lambda item: list(WORLDS).index(item[0]))
    ]


def _list_costs(rows: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a row for each model and number of processes, with ratios to one process."""
    listed = []
    for name, by_size in rows.items():
        if name == "peak_rss_kib":
            continue
        alone = by_size["1"]["seconds"]
        for size, row in by_size.items():
            seconds = row["seconds"]
            listed.append(
                {
                    "name": name,
                    "size": size,
                    "portable": seconds["portable"] * 1e3,
                    "native": seconds["native"] * 1e3,
                    "against_one": seconds["portable"] / alone["portable, no group"],
                    "native_against_one": seconds["native"] / alone["native"],
                    "messages": row["messages"],
                    "bytes": row["bytes"],
                }
            )
    return listed


def _list_estimates(rows: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the milliseconds of communication for each model, size and network."""
    return [
        {
            "name": name,
            "milliseconds": {
                f"{size} GPUs, {network}": 1e3
                * estimate_seconds(row["bytes"], row["messages"], size, network)
                for size in SIZES
                for network in NETWORKS
            },
            "plain": {
                f"{size} GPUs, {network}": 1e3
                * estimate_seconds(4 * row["parameters"], 1, size, network)
                for size in SIZES
                for network in NETWORKS
            },
        }
        for name, row in rows.items()
    ]


def write_page() -> Path:
    """Write the page and return where it is."""
    PAGE.write_text(make_page(), encoding="utf-8")
    return PAGE
