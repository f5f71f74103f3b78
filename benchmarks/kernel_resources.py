"""Compile the CUDA kernels of portable arithmetic without a GPU; write what each of them needs:

    python -m benchmarks.kernel_resources [--architectures sm_75,sm_90] [--out FOLDER]

The record, kernel-resources.json, has for each architecture the registers, the bytes of stack and
of spilled registers, and the shared memory of every kernel, as CUDA's assembler prints them. It is
written after every architecture. The text is the one that NVRTC compiles on a machine with a GPU,
and so are the flags. Needs nvcc; no kernel is executed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.pages import RESULTS
from seedless.portable.kernels.cuda import FLAGS
from seedless.portable.kernels.source import write_source

NAME = "kernel-resources.json"
ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_120")  # T4, A100, H100 and H200, RTX 50 series
ENTRY = re.compile(
    r"Compiling entry function '(?P<name>\w+)' for '\w+'.*?"
    r"(?P<stack_bytes>\d+) bytes stack frame, (?P<spill_store_bytes>\d+) bytes spill stores, "
    r"(?P<spill_load_bytes>\d+) bytes spill loads.*?"
    r"Used (?P<registers>\d+) registers(?P<rest>[^\n]*)",
    re.DOTALL,
)
SHARED = re.compile(r"(\d+) bytes smem")


def hash_source() -> str:
    """Return a digest of the kernels' text and of the flags it is compiled with."""
    return hashlib.sha256("\n".join([write_source(), *FLAGS]).encode()).hexdigest()


def read_usage(printed: str) -> dict[str, dict[str, int]]:
    """Return what each kernel needs from what the assembler prints with ``-v``."""
    kernels = {}
    for found in ENTRY.finditer(printed):
        values = found.groupdict()
        name, rest = values.pop("name"), values.pop("rest")
        shared = SHARED.search(rest)
        kernels[name] = {key: int(value) for key, value in values.items()}
        kernels[name]["shared_bytes"] = int(shared[1]) if shared else 0
    return dict(sorted(kernels.items()))


def compile_for(architecture: str, nvcc: str) -> dict[str, dict[str, int]]:
    """Return what each kernel needs on an architecture such as sm_90."""
    with TemporaryDirectory() as folder:
        text = Path(folder) / "kernels.cu"
        text.write_text(write_source(), encoding="utf-8")
        command = [nvcc, "-cubin", f"-arch={architecture}", *FLAGS, "-Xptxas", "-v"]
        command += ["-o", str(text.with_suffix(".cubin")), str(text)]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"nvcc could not compile the kernels for {architecture}:\n{done.stderr}")
    return read_usage(done.stdout + done.stderr)


def main() -> None:
    """Compile for every architecture, print the largest needs, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--architectures", default=",".join(ARCHITECTURES))
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        raise SystemExit("error: expected nvcc on the PATH; install the CUDA toolkit")
    version = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True)
    release = re.search(r"release [\d.]+, V([\d.]+)", version.stdout)
    record: dict[str, Any] = {
        "command": "python -m benchmarks.kernel_resources",
        "nvcc": release[1] if release else version.stdout,
        "flags": FLAGS,
        "source": hash_source(),
        "architectures": {},
    }
    for architecture in options.architectures.split(","):
        found = record["architectures"][architecture] = compile_for(architecture, nvcc)
        spilled = [name for name, one in found.items() if one["spill_store_bytes"]]
        most = max(found, key=lambda name: found[name]["registers"])
        print(
            f"{architecture}: {len(found)} kernels; most registers {found[most]['registers']}, "
            f"{most}; spilled: {', '.join(spilled) or 'none'}",
            flush=True,
        )
        text = json.dumps(record, indent=1, sort_keys=True) + "\n"
        (options.out / NAME).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
