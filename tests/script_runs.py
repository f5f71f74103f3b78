"""Runs of scripts made without executing one: what a recorder could have seen."""

from seedless.core.digests import digest_bytes
from seedless.runs.script_seal import seal_script

ENVIRONMENT = {
    "python": "3.11.7",
    "machine": "x86_64",
    "packages": {"numpy": "2.4.6", "torch": "2.13.0+cpu"},
    "cpu": {"model": "A processor"},
    "devices": [],
    "cuda": None,
    "threads": {"intraop": 1, "interop": 1},
    "flags": {"deterministic_algorithms": False, "cudnn.benchmark": None},
    "variables": {"PYTHONHASHSEED": "0"},
}
SCRIPT = {
    "command": ["python", "train.py", "--epochs", "2"],
    "exit_code": 0,
    "sources": {"train.py": digest_bytes(b"print()\n"), "/lib/net.py": digest_bytes(b"")},
    "changed": [],
    "unobserved": ["h5py"],
    "outputs": {"out/model.pt": {"size": 3, "digest": digest_bytes(b"abc"), "content": None}},
    "outputs_named": False,
}
DATA = [
    {"path": "table.csv", "size": 4, "digest": digest_bytes(b"1,2\n")},
    {"path": "/data/images.npy", "size": 0, "digest": digest_bytes(b"")},
]


def make_steps(count, **changes):
    """Return steps as the recorder writes them; ``changes``: step -> its values of another run."""
    return [
        {
            "step": k,
            "optimizer": 0,
            "values": {"weights": f"{k:016x}", "batch": [f"{k:015x}a", f"{k:015x}b"], **extra},
            "shown": {"loss": [1.0 / k, 2.0 / k], "rate": [0.1, 0.2]},
        }
        for k in range(1, count + 1)
        for extra in [changes.get(f"step_{k}", {})]
    ]


def write_script_run(run, *, script=None, environment=None, processes=None, data=DATA):
    """Write a run folder of a script and return it."""
    seal_script(
        run,
        {**SCRIPT, **(script or {})},
        {**ENVIRONMENT, **(environment or {})},
        [make_steps(3)] if processes is None else processes,
        data,
    )
    return run
