"""A process of its own for executing a run again: a request in a file, an answer in another.

    python -m seedless.audit.worker REQUEST.json

The process gets the variables recorded with the run that change bits, and none that were not set.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from seedless.core.errors import RunError, SeedlessError
from seedless.numerics.determinism import set_environment_variables
from seedless.numerics.environment import VARIABLES

# What a request may ask for, and the function that answers it.
ACTIONS = {
    "verify": ("seedless.audit.verify", "answer"),
    "trace": ("seedless.audit.step_trace", "answer"),
}

_LOCAL = ("CUDA_VISIBLE_DEVICES", "PYTHONHASHSEED")  # of this machine, not of the run


def run_worker(
    action: str, request: Mapping[str, Any], variables: Mapping[str, str]
) -> dict[str, Any]:
    """Run a request in a fresh process and return its answer; an error there is one here."""
    environment = {k: v for k, v in os.environ.items() if k not in VARIABLES or k in _LOCAL}
    environment |= {k: v for k, v in variables.items() if k in VARIABLES and k not in _LOCAL}
    environment["PYTHONPATH"] = os.pathsep.join(path or os.getcwd() for path in sys.path)
    with TemporaryDirectory() as folder:
        question, answer = Path(folder) / "request.json", Path(folder) / "answer.json"
        question.write_text(json.dumps({**request, "action": action, "answer": str(answer)}))
        command = [sys.executable, "-m", "seedless.audit.worker", str(question)]
        done = subprocess.run(command, env=environment)
        if not answer.exists():
            raise RunError(
                f"the process that executes the run ended with exit code {done.returncode} and no "
                "answer; was it killed, or out of memory?"
            )
        found: dict[str, Any] = json.loads(answer.read_text())
    if "error" in found:
        raise RunError(found["error"])
    return found


def main() -> None:
    """Answer one request."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # it may be ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C is for whoever asked to speak of
    set_environment_variables()
    request = json.loads(Path(sys.argv[1]).read_text())
    module, function = ACTIONS[request["action"]]
    try:
        found = getattr(importlib.import_module(module), function)(request)
    except SeedlessError as error:
        found = {"error": str(error)}
    answer = Path(request["answer"])
    temporary = answer.with_suffix(".part")
    temporary.write_text(json.dumps(found))
    temporary.replace(answer)


if __name__ == "__main__":
    main()
