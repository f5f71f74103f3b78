"""Reading and caching: ``python -m benchmarks.data``.

- The format-16 fast path against `wfdb.rdsamp`, header and samples, on the 150 real records of
  SEEDLESS_TEST_DATA (default: shared/data next to the repository).
- Opening a cache of 20,000 records of 12 x 1000 in a new process: seconds, and resident memory.
  The check of PTB-XL's 43,598 source files before that is measured, too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from benchmarks.measure import take_turns, write_results
from benchmarks.pages import RESULTS
from seedless.core.dataset import TEN_FOLDS, Dataset
from seedless.data.cache import open_cached
from seedless.data.readers.wfdb_records import read_header, read_signal

DATA = Path(os.environ.get("SEEDLESS_TEST_DATA", RESULTS.parents[2] / "shared" / "data"))
RECORDS = 20_000
SOURCES = 43_598  # a header and a signal file for each of PTB-XL's 21,799 records
OPEN = """
import json, sys, time
from pathlib import Path
import numpy, filelock, seedless.data.cache as cache

def resident():
    text = Path("/proc/self/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0]) / 1e3

before, start = resident(), time.perf_counter()
data = cache.open_cached(Path(sys.argv[1]), {}, [Path(p) for p in sys.argv[2:]], None)
seconds = time.perf_counter() - start
assert data.X.shape == (20_000, 12, 1000)
print(json.dumps({"seconds": seconds, "resident MB": resident(), "MB before": before}))
"""


def measure_reading() -> dict[str, float]:
    """Seconds for 150 records, and how many times faster we are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import wfdb

        paths = sorted(str(path)[:-4] for path in (DATA / "ptb-xl-sample").rglob("*.hea"))
        times = take_turns(
            {
                "seedless": lambda: [read_signal(read_header(path)) for path in paths],
                "wfdb.rdsamp": lambda: [wfdb.rdsamp(path) for path in paths],
            },
            rounds=7,
        )
    return {
        "records": len(paths),
        **times,
        "times faster": times["wfdb.rdsamp"] / times["seedless"],
    }


def measure_opening() -> dict[str, dict[str, float]]:
    """Seconds and megabytes of the median of five new processes, without and with sources."""
    wave = np.cos(np.arange(12_000.0)).reshape(1, 12, 1000).astype(np.float32)
    data = Dataset(
        name="benchmark",
        X=np.broadcast_to(wave, (RECORDS, 12, 1000)),  # the content does not matter, the size does
        Y=np.eye(12, dtype=np.uint8)[np.arange(RECORDS) % 12],
        classes=tuple(f"class {k}" for k in range(12)),
        folds=np.arange(RECORDS) % 10 + 1,
        ids=np.arange(RECORDS).astype(np.str_),
        protocol=TEN_FOLDS,
        patients=(np.arange(RECORDS) // 2).astype(np.str_),
    )
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder, source = Path(name) / "entry", Path(name) / "records"
        for number in range(SOURCES):
            path = source / f"{number // 2000:02d}" / f"{number}.dat"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        for title, sources in (("entry alone", []), ("with 43,598 source files", [source])):
            start = time.perf_counter()
            open_cached(folder, {}, sources, lambda: data)
            built = time.perf_counter() - start
            runs = [
                json.loads(
                    subprocess.run(
                        [sys.executable, "-c", OPEN, str(folder), *map(str, sources)],
                        capture_output=True,
                        check=True,
                    ).stdout
                )
                for _ in range(5)
            ]
            found[title] = {"build": built, **sorted(runs, key=lambda run: run["seconds"])[2]}
    return found


def main() -> None:
    """Measure, print, and write ``results/data.json``."""
    results = {"format 16": measure_reading(), "cache of 20,000 x 12 x 1000": measure_opening()}
    print(json.dumps(results, indent=2))
    write_results("data", "python -m benchmarks.data", results)


if __name__ == "__main__":
    main()
