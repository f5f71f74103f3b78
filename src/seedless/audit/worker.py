"""Execute a run again in a process of its own, with the environment variables of the run.

python -P -m seedless.audit.worker      reads a request, writes an answer: core/worker_requests.py
"""

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seedless.core.local_group import ask_processes
from seedless.core.worker_requests import answer_request, ask_worker
from seedless.numerics.determinism import set_environment_variables
from seedless.numerics.environment import VARIABLES

# The actions that a request may name, and the function of each. Named and not imported, so that
# `set_environment_variables` runs before torch is loaded.
ACTIONS = {
    "verify": ("seedless.audit.verification", "answer"),
    "trace": ("seedless.audit.step_trace", "answer"),
}

_LOCAL = ("CUDA_VISIBLE_DEVICES", "PYTHONHASHSEED")  # these describe the machine, not the run


def run_worker(
    action: str, request: Mapping[str, Any], variables: Mapping[str, str], processes: int = 1
) -> dict[str, Any]:
    """Answer a request in a fresh process, with the variables recorded with a run.

    Of the variables that can change bits it gets those that were recorded, and no others. Nothing
    is imported from the folder of the run, ``request["run"]``. Several processes answer together.
    """
    changes = {name: variables.get(name) for name in VARIABLES if name not in _LOCAL}
    run = request["run"]
    folder = Path(run["path"] if isinstance(run, Mapping) else run)
    module, asked = "seedless.audit.worker", {**request, "action": action}
    answer: dict[str, Any]
    if processes == 1:
        answer = ask_worker(module, asked, changes, [folder])
    else:
        answer = ask_processes(module, asked, processes, changes, [folder])
    return answer


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to one request."""
    module, function = ACTIONS[request["action"]]
    result: dict[str, Any] = getattr(importlib.import_module(module), function)(request)
    return result


if __name__ == "__main__":
    set_environment_variables()
    answer_request(answer)
