"""What it costs to hash every sample that is trained on: ``python -m benchmarks.hashing``.

Two cached datasets are opened, sorted and scaled, with the hashing of each sample in memory and
without it, in turns: the 1,819 real records of SEEDLESS_TEST_DATA (default: shared/data next to the
repository), and 17,418 computed ones of the same form, as many as PTB-XL trains on. One epoch of
the published network on the real records is timed for comparison. All seconds are of processor
time, of all threads together, so that other processes of the machine hardly count.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np

from benchmarks.measure import take_turns, write_results
from benchmarks.pages import RESULTS
from seedless.core.config import parse_config
from seedless.core.dataset import TEN_FOLDS, Dataset
from seedless.data import model_inputs
from seedless.data.cache import open_cached
from seedless.data.model_inputs import SortedData, sort_records
from seedless.data.readers.arrays import read_arrays
from seedless.data.readers.content_ids import digest_in_blocks
from seedless.runs.prepare import prepare
from seedless.train.loop import train

DATA = Path(os.environ.get("SEEDLESS_TEST_DATA", RESULTS.parents[2] / "shared" / "data"))
RECORDS = 17_418
ROUNDS = 3


def compute_records() -> Dataset:
    """Return records of 12 x 1000, each a wave of another phase: the content does not matter."""
    wave = np.cos(np.arange(12_000) / 50).reshape(12, 1000).astype(np.float32)
    samples = np.empty((RECORDS, 12, 1000), dtype=np.float32)
    for row in range(RECORDS):
        np.add(wave, np.float32(row), out=samples[row])
    return Dataset(
        name="computed",
        X=samples,
        Y=np.eye(12, dtype=np.uint8)[np.arange(RECORDS) % 12],
        classes=tuple(f"class {k}" for k in range(12)),
        folds=np.arange(RECORDS) % 10 + 1,
        ids=np.arange(RECORDS).astype(np.str_),
        protocol=TEN_FOLDS,
    )


def measure_hashing(data: Dataset) -> dict[str, float]:
    """Return seconds to open, sort and scale a cached dataset, with and without hashing it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "entry"
        opened = open_cached(folder, {}, [], lambda: data)
        in_memory = sort_records(opened)

        def load() -> None:
            SortedData(open_cached(folder, {}, [], lambda: data)).scale("global")

        def load_unhashed() -> None:
            known = in_memory.digests
            with mock.patch.object(model_inputs, "digest_in_blocks", return_value=known):
                load()

        times = take_turns(
            {
                "loading, with hashing": load,
                "loading, without": load_unhashed,
                "hashing alone": lambda: digest_in_blocks(in_memory.X),
            },
            ROUNDS,
            time.process_time,
        )
    return {
        "records": len(data),
        "gigabytes": data.X.nbytes / 1e9,
        **times,
        "loading takes times longer": times["loading, with hashing"] / times["loading, without"],
    }


def measure_epoch(data: Dataset) -> float:
    """Return the seconds of one epoch of the published network, trained on the CPU."""
    settings = {"data": {"name": "ours.npz"}, "train": {"epochs": 1, "evaluate_every": 1}}
    prepared = prepare(parse_config({**settings, "execution": {"device": "cpu"}}), data)
    start = time.process_time()
    train(prepared.problem, ())
    return time.process_time() - start


def main() -> None:
    """Measure, print, and write ``results/hashing.json``."""
    real = replace(read_arrays(DATA / "ptb-xl-derived100.npz"), content=None)
    found = {"1,819 real records": measure_hashing(real)}
    found[f"{RECORDS:,} computed records"] = measure_hashing(compute_records())
    seconds = measure_epoch(real)
    results = {
        "rounds": ROUNDS,
        **found,
        "one epoch of the real records, seconds": seconds,
        "hashing the real records, part of one epoch": (
            found["1,819 real records"]["hashing alone"] / seconds
        ),
    }
    print(json.dumps(results, indent=2))
    write_results("hashing", "python -m benchmarks.hashing", results)


if __name__ == "__main__":
    main()
