"""Write a run or a bundle of schema 2: ``python -m tests.golden.write_schema_2 fit``, or bundle.

Both are in portable arithmetic, so that every machine can repeat them. They are made only when the
schema is new, and never again: later versions must verify the files as they are.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from seedless.core.config import parse_config
from seedless.runs.train import train_run
from tests.runs.test_run_data import SMALL, write_arrays
from tests.tiny import fit_run

FOLDER = Path(__file__).with_name("schema-2")
PORTABLE = {"arithmetic": "portable", "device": "cpu", "threads": 1}
EPOCHS = {"epochs": 2, "checkpoint_every": 2, "evaluate_every": 1}


def write_fit() -> None:
    """Write the folder of a run of `fit`, made from tests/tiny.py's `give`."""
    run = fit_run(FOLDER / "fit", train=EPOCHS, execution=PORTABLE)
    (run / ".lock").unlink()


def write_bundle() -> None:
    """Write a bundle of a run on an .npz file, with its data."""
    with TemporaryDirectory() as place:
        os.chdir(place)  # so that the configuration names the file without a folder
        settings = {**SMALL, "train": EPOCHS, "execution": PORTABLE, "data": {"name": "ours.npz"}}
        write_arrays("ours.npz")
        train_run(parse_config(settings), Path("run"))
        command = [shutil.which("seedless"), "bundle", "run", "--with-data"]
        subprocess.run([*command, "--out", FOLDER / "trained.bundle.zip"], check=True)


if __name__ == "__main__":
    {"fit": write_fit, "bundle": write_bundle}[sys.argv[1]]()
