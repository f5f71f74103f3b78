"""Write the run of a script of schema 2.1: ``python -m tests.golden.write_script_run``.

It is made only when the schema is new, and never again: later versions must verify it as it is.
"""

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from seedless.audit.script.recording import record_script

FOLDER = Path(__file__).with_name("script")


def write_run() -> None:
    """Run the script in a copy of its folder, where its output is left."""
    with TemporaryDirectory() as place:
        for path in (FOLDER / "work").iterdir():
            (Path(place) / path.name).write_bytes(path.read_bytes())
        os.chdir(place)
        record_script([sys.executable, "train.py"], FOLDER / "run")


if __name__ == "__main__":
    write_run()
