"""The published tools that read what this package writes, in an environment of their own.

`make model-signing` installs them: the tool of that name, and in-toto's classes of attestations.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest


def run_published(program, *arguments):
    """Run a program of that environment; skip the test where it is not installed."""
    installed = Path(sys.prefix) / "model-signing" / "bin"
    file = Path(os.environ.get("SEEDLESS_PUBLISHED_TOOLS", installed)) / program
    if not file.exists():
        pytest.skip(
            "the published tools are not installed here: `make model-signing` installs them, or "
            "set SEEDLESS_PUBLISHED_TOOLS to the folder of their programs"
        )
    # The environment of the tests must not reach into theirs.
    variables = {name: os.environ[name] for name in os.environ if name != "PYTHONPATH"}
    command = [file, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=variables, timeout=300)
