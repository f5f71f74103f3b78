"""Write docs/reference/zoo.md from the records zoo*.json: ``python -m benchmarks.zoo.page``."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.pages import DOCS, Record, read_records, render

PAGE = DOCS / "reference" / "zoo.md"
# Of two answers that of the earlier one here is taken: networks that were mended were asked again.
PREFERRED = ("zoo-mended", "zoo-cpu16", "zoo-cuda", "zoo-init16", "zoo-cpu2")
OTHER_STARTS = ("dct, keep zeros", "scrambled", "scrambled, keep zeros", "canonical_kaiming")
TARGETS = {"initialized": 0.95, "portable": 0.97, "threads": 1.0, "cuda": 1.0}
MAX_GRADIENT_RATIO = 30.0
MAX_SHOWN_LENGTH = 260
NOT_INSTALLED = "ModuleNotFoundError"
Row = Mapping[str, Any]


def make_page(recorded: Mapping[str, Record] | None = None) -> str:
    """Return the page, with every record of the zoo that exists."""
    found = read_records() if recorded is None else recorded
    records = {name: found[name] for name in PREFERRED if name in found}
    rows = merge_rows(records.values())
    compared_again = compare_equal_versions(rows, found)
    libraries = sorted({name.partition("/")[0] for name in rows})
    groups = {one: [row for n, row in rows.items() if n.startswith(f"{one}/")] for one in libraries}
    return render(
        "zoo.md",
        records={name: (describe_machine(one), one) for name, one in records.items()},
        rows={name: describe_row(row) for name, row in rows.items()},
        summary={name: summarize(group) for name, group in groups.items()},
        total=(total := summarize(rows.values())),
        targets=judge_targets(total),
        refusals=count_refusals(rows),
        far=list_far_gradients(rows, found.get("init-gradients", {})),
        starts=OTHER_STARTS,
        compared_again=compared_again,
        elsewhere=compare_processors(found.get("zoo-cpu16"), found.get("zoo-amd")),
    )


def describe_machine(record: Record) -> str:
    """Return the processor that answered: the GPU for a record of a GPU's column, else the CPU."""
    environment = record["environment"]
    is_gpu = any("cuda" in row for row in record["results"].values())
    cpu = f"{environment['cpu']['model']}, {environment['cpu']['cores']} cores"
    place = environment["devices"][0]["name"] if is_gpu else cpu
    return f"{place}; torch {environment['packages']['torch']}"


def merge_rows(records: Iterable[Record]) -> dict[str, dict[str, Any]]:
    """Return the columns of every network; of two records of one column the first is taken.

    A machine that does not have the network's library has not answered.
    """
    rows: dict[str, dict[str, Any]] = {}
    for record in records:
        for name, columns in record["results"].items():
            merged = rows.setdefault(name, {})
            for column, answer in columns.items():
                if not answer.get("error", "").startswith(NOT_INSTALLED):
                    merged.setdefault(column, answer)
    return dict(sorted(rows.items()))


def compare_equal_versions(rows: dict[str, dict[str, Any]], found: Mapping[str, Record]) -> str:
    """Compare networks again whose code is another one in the GPU's version of their library.

    zoo-cpu-gpu-versions has their digests on a CPU with the versions of the GPU's machine. Changes
    the rows; returns the names of those networks.
    """
    again, gpu = found.get("zoo-cpu-gpu-versions"), found.get("zoo-cuda")
    if again is None or gpu is None:
        return ""
    for name, columns in again["results"].items():
        library = name.partition("/")[0]
        if again["libraries"][library] != gpu["libraries"][library]:
            raise ValueError(f"{name}: the records have two versions of {library}")
        here, there = columns["portable"], gpu["results"][name]["cuda"]
        rows[name]["cuda"] = there | {
            "same": here["digest"] == there["digest"],
            "same start": here["start"] == there["start"],
        }
    return ", ".join(again["results"])


def compare_processors(one: Record | None, other: Record | None) -> tuple[int, int]:
    """Return how many networks have the same digest on two machines, and how many were compared."""
    if one is None or other is None:
        return 0, 0
    pairs = [
        (row["portable"], other["results"][name]["portable"])
        for name, row in one["results"].items()
        if name in other["results"]
    ]
    compared = [(a, b) for a, b in pairs if "digest" in a and a["start"] == b["start"]]
    return sum(a["digest"] == b["digest"] for a, b in compared), len(compared)


def judge_targets(total: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return for each target its percentage, and "met" or "missed" with the number reached."""
    judged = {}
    for column, target in TARGETS.items():
        yes, _, asked = total[column].partition(" of ")
        if asked:
            share = int(yes) / int(asked)
            verdict = "met" if share >= target else "missed"
            judged[column] = f"{target:.0%}", f"{verdict}: {total[column]}, {share:.1%}"
    return judged


def list_far_gradients(
    rows: Mapping[str, Row], starts: Mapping[str, Row]
) -> list[tuple[str, float, dict[str, float]]]:
    """Return networks with a gradient far from the library's: name, ratio, ratios of other starts.

    ``starts``: the record of benchmarks.init_gradients, with norms for other starts.
    """
    far = []
    for name, row in rows.items():
        ratio = row.get("init", {}).get("ratio")
        if ratio is None or is_near(ratio):
            continue
        norms = starts.get(name, {})
        own = norms.get("own")
        others = {
            start: norms[start] / own
            for start in OTHER_STARTS
            if own and norms.get(start) is not None
        }
        far.append((name, ratio, others))
    return far


def is_near(ratio: float) -> bool:
    """Return whether a gradient's norm is within the factor of the library's; NaN is not."""
    return 1.0 / MAX_GRADIENT_RATIO <= ratio <= MAX_GRADIENT_RATIO


def count(rows: Iterable[Row], column: str, key: str | None = None) -> str:
    """Return "n of m": of the rows asked for a column, those without error that say yes to key."""
    asked = [row[column] for row in rows if column in row]
    yes = ["error" not in one and (key is None or bool(one.get(key))) for one in asked]
    return f"{sum(yes)} of {len(yes)}" if yes else ""


def count_of_those_that_ran(rows: Iterable[Row], column: str, key: str) -> str:
    """Return the same of the rows without an error: what did not run has no bits to compare."""
    return count([row for row in rows if key in row.get(column, {})], column, key)


def summarize(rows: Iterable[Row]) -> dict[str, Any]:
    """Return the cells of a library's line."""
    group = list(rows)
    started = [row for row in group if row.get("cuda", {}).get("same start")]
    ratios = [ratio for row in group if (ratio := find_time_ratio(row)) is not None]
    gradients = [row["init"]["ratio"] for row in group if row.get("init", {}).get("ratio")]
    finite = list(filter(math.isfinite, gradients))
    errors = [find_errors(row) for row in group]
    close = [ours <= max(4 * plain, 1e-5) for ours, plain in filter(None, errors)]
    return {
        "networks": len(group),
        "initialized": count(group, "init"),
        "gradient": statistics.median(finite) if finite else None,
        "near": f"{sum(map(is_near, gradients))} of {len(gradients)}" if gradients else "",
        "converted": count(group, "convert", "repeats"),
        "portable": count(group, "portable", "finite"),
        "threads": count_of_those_that_ran(group, "threads", "same"),
        "plain": count_of_those_that_ran(group, "plain", "same"),
        "cuda": count_of_those_that_ran(started, "cuda", "same"),
        "ratio": statistics.median(ratios) if ratios else None,
        "close": f"{sum(close)} of {len(close)}" if close else "",
    }


def find_time_ratio(row: Row) -> float | None:
    """Return a portable step's processor time over a plain one's, with one thread."""
    ours, plain = row.get("portable", {}), row.get("plain", {})
    if "digest" not in ours or not plain.get("seconds"):
        return None
    return float(ours["seconds"] / plain["seconds"])


def find_errors(row: Row) -> tuple[float, float] | None:
    """Return the relative errors of the first loss against float64: portable and plain."""
    true = row.get("float64", {}).get("loss")
    ours, plain = row.get("portable", {}).get("losses"), row.get("plain", {}).get("loss")
    if not true or not ours or plain is None:
        return None
    return abs(ours[0] - true) / abs(true), abs(plain - true) / abs(true)


def describe_row(row: Row) -> dict[str, str]:
    """Return the cells of a network's line."""
    ratio, errors = find_time_ratio(row), find_errors(row)
    init = row.get("init", {})
    return {
        "init": describe_answer(init),
        "gradient": f"{init['ratio']:.2g}" if init.get("ratio") else "",
        "convert": describe_answer(row.get("convert", {}), "repeats"),
        "portable": describe_answer(row.get("portable", {}), "finite"),
        "threads": describe_answer(row.get("threads", {}), "same"),
        "plain": describe_answer(row.get("plain", {}), "same"),
        "cuda": describe_gpu(row.get("cuda", {})),
        "ratio": "" if ratio is None else f"{ratio:.1f}",
        "error": "" if errors is None else f"{errors[0]:.0e} / {errors[1]:.0e}",
    }


def describe_answer(answer: Row, key: str | None = None) -> str:
    """Return yes, no, or an empty cell where nothing was asked."""
    if not answer:
        return ""
    return "yes" if "error" not in answer and (key is None or answer.get(key)) else "no"


def describe_gpu(answer: Row) -> str:
    """Return whether the digest is the CPU's; another start cannot be compared."""
    if answer.get("same start") is False:
        return "other start"
    return describe_answer(answer, "same")


def count_refusals(rows: Mapping[str, Row]) -> list[tuple[str, str, int, str]]:
    """Return column, first words of the error, how often, and one network, most frequent first."""
    words: Counter[tuple[str, str]] = Counter()
    example: dict[tuple[str, str], str] = {}
    for name, row in rows.items():
        for column in ("init", "convert", "portable", "cuda"):
            if "error" in row.get(column, {}):
                text = row[column]["error"].splitlines()[0]
                for rest in (", at ", ", in the backward", ", which draws", "; declare", ", in a"):
                    text = text.partition(rest)[0]
                key = column, text[:MAX_SHOWN_LENGTH].replace("|", "/")
                words[key] += 1
                example.setdefault(key, name)
    return [(*key, number, example[key]) for key, number in words.most_common(40)]


if __name__ == "__main__":
    PAGE.write_text(make_page(), encoding="utf-8")
    print(PAGE)
