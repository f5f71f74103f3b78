"""Small files that would cost much: `verify` refuses each with exit code 2, at little cost.

Every bomb is a whole run folder whose receipt has the right digests. All are verified in one
process, which measures the most memory and the processor time that each takes.
"""

import json
import os
import shutil
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from seedless.core.digests import canonical_json
from seedless.proof.receipt import read_receipt
from tests.forgery import read_entries, rechain, seal, write_statement
from tests.tiny import copy_run, fit_run, flags_restored

MAX_PEAK_BYTES = 2**30
MAX_SECONDS = 30

# Verify each folder named on standard input; print exit code, output, peak memory and seconds.
CHILD = """
import contextlib, io, json, resource, signal, sys, time, traceback
from pathlib import Path
import torch
import seedless.audit.verification
from seedless.cli.main import main

resource.setrlimit(resource.RLIMIT_AS, (6 * 2**30, 6 * 2**30))

def stop(*_):
    raise TimeoutError

signal.signal(signal.SIGALRM, stop)
for folder in json.loads(sys.stdin.read()):
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    sys.argv = ["seedless", "verify", folder, "--validate-only"]
    out, code, began = io.StringIO(), None, time.process_time()
    signal.alarm(120)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            main()
        except SystemExit as ended:
            code = ended.code
        except BaseException:
            traceback.print_exc(limit=-1)
    signal.alarm(0)
    status = dict(line.split(":") for line in open("/proc/self/status"))
    peak = 1024 * int(status["VmHWM"].split()[0])
    print(json.dumps([code, out.getvalue()[:4000], peak, time.process_time() - began]), flush=True)
"""


def change_npz(run, **arrays):
    """Replace some arrays of the predictions, in numpy's own form."""
    with np.load(run / "predictions.npz") as file:
        found = dict(file) | arrays
    np.savez(run / "predictions.npz", **{k: v for k, v in found.items() if v is not None})


def deflate_predictions(run):
    """Add an array of 0.8 GB of zeros to the predictions, packed to 0.8 MB."""
    with zipfile.ZipFile(run / "predictions.npz") as file:
        members = {name: file.read(name) for name in file.namelist()}
    with zipfile.ZipFile(run / "predictions.npz", "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
        with file.open("test_features.npy", "w", force_zip64=True) as stream:
            head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (16, 12500000), }"
            head += b" " * (-(len(head) + 11) % 64) + b"\n"
            stream.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head)
            for _ in range(50):
                stream.write(bytes(16 * 10**6))


def claim_huge_array(run):
    with zipfile.ZipFile(run / "predictions.npz", "a") as file:
        head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (16, 1000000000000), }"
        head += b" " * (-(len(head) + 11) % 64) + b"\n"
        file.writestr(
            "test_features.npy", b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head
        )


def write_config(run, text):
    (run / "config.toml").write_text(text)


def append_config(run, line):
    write_config(run, line + "\n" + (run / "config.toml").read_text())


def set_config(run, section, **values):
    """Give the run other settings, in config.toml and receipt alike, whatever they are."""
    old = (run / "config.toml").read_text()
    lines, here = [], None
    for line in old.splitlines():
        here = line[1:-1] if line.startswith("[") else here
        if here != section or line.split(" =")[0] not in values:
            lines.append(line)
        if line == f"[{section}]":
            lines += [f"{key} = {value}" for key, value in values.items()]
    write_config(run, "\n".join(lines) + "\n")


def nest_metadata(run):
    path = run / "checkpoints" / "epoch-0001.safetensors"
    deep = "[" * 100_000 + "]" * 100_000
    save_file(load_file(path), path, metadata={"seedless": f'{{"digest":{deep}}}'})


def write_header(run, header, size=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    declared = len(text) if size is None else size
    (run / "weights.safetensors").write_bytes(declared.to_bytes(8, "little") + text)


def write_many_trail_lines(run):
    entries = read_entries(run)
    with (run / "trail.jsonl").open("wb") as file:
        file.write(canonical_json(entries[0]) + b"\n")
        file.write(b"{}\n" * 3_000_000)


def write_wide_trail_line(run):
    entries = read_entries(run)
    entries[1]["state"] = {str(number): "" for number in range(1_500_000)}
    rechain(run, entries)


def write_receipt_with(run, **claims):
    statement = read_receipt(run)
    statement["predicate"].update(claims)
    write_statement(run, statement)


DEEP = b"[" * 10**6
BOMBS = {
    "an array that unpacks to 0.8 GB": deflate_predictions,
    "an array that claims 10^12 elements": claim_huge_array,
    "a million classes": lambda run: change_npz(
        run,
        classes=np.arange(10**6).astype("U"),
        **{f"{s}_{p}": None for s in ("test", "validation") for p in ("features",)},
        test_ids=np.array(["a"]),
        test_probabilities=np.zeros((1, 10**6)),
        test_labels=np.zeros((1, 10**6), "u1"),
        validation_ids=np.array(["a"]),
        validation_probabilities=np.zeros((1, 10**6)),
        validation_labels=np.zeros((1, 10**6), "u1"),
    ),
    "features that take long to score": lambda run: change_npz(
        run, test_features=np.ones((16, 10**7 // 3), "f4")
    ),
    "3,000 nested brackets in the configuration": lambda run: append_config(
        run, "x = " + "[" * 3000 + "]" * 3000
    ),
    "50,000 dotted keys in the configuration": lambda run: append_config(
        run, ".".join(["a"] * 50_000) + " = 1"
    ),
    "a configuration of 10 MB": lambda run: append_config(run, "#" * 10**7),
    "an integer of many digits": lambda run: append_config(run, "x = 0x" + "f" * 10_000),
    "an unknown key of a deep value": lambda run: append_config(
        run, "x = " + "[" * 199 + "]" * 199
    ),
    "10^12 epochs": lambda run: set_config(run, "train", epochs=10**12),
    "10^6 epochs": lambda run: set_config(run, "train", epochs=10**6, checkpoint_every=1),
    "nested metadata of a checkpoint": nest_metadata,
    "a header of 2^62 bytes": lambda run: write_header(run, b"{}", size=2**62),
    "a header nested deep": lambda run: write_header(run, b'{"a":' * 10**6),
    "a header of 10^6 tensors": lambda run: write_header(
        run,
        {
            str(number): {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
            for number in range(200_000)
        },
    ),
    "a nested line of the trail": lambda run: (run / "trail.jsonl").write_bytes(DEEP + b"\n"),
    "a trail of 3 million lines": write_many_trail_lines,
    "a trail with 1.5 million tensors": write_wide_trail_line,
    "a log of 3 million lines": lambda run: (run / "log.jsonl").write_bytes(b"0\n" * 3_000_000),
    "a nested line of the log": lambda run: (run / "log.jsonl").write_bytes(DEEP + b"\n"),
    "nested metrics": lambda run: (run / "metrics.json").write_bytes(DEEP),
    "metrics of 20 MB": lambda run: (run / "metrics.json").write_bytes(b"{}".ljust(2 * 10**7)),
    "metrics of 5 million values": lambda run: (run / "metrics.json").write_bytes(
        b"[" + b"{}," * 5_000_000 + b"0]"
    ),
    "a nested note": lambda run: (run / "light.json").write_bytes(DEEP),
}
RECEIPTS = {
    "a nested receipt": lambda run: (run / "receipt.json").write_bytes(DEEP),
    "a receipt of 5 million values": lambda run: write_receipt_with(run, kind=[[]] * 5_000_000),
}


@pytest.fixture(scope="module")
def verified(tmp_path_factory):
    """Verify an honest run and all bombs; return {name: (code, output, peak, seconds)}."""
    place = tmp_path_factory.mktemp("bombs")
    with flags_restored():
        honest = fit_run(place / "honest")
    folders = {"honest": honest}
    for number, (name, change) in enumerate({**BOMBS, **RECEIPTS}.items()):
        folders[name] = copy_run(honest, place / f"bomb{number}")
        change(folders[name])
        if name not in RECEIPTS:
            seal(folders[name])
    done = subprocess.run(
        [sys.executable, "-c", CHILD],
        input=json.dumps([str(folder) for folder in folders.values()]),
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    shutil.rmtree(place)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    return dict(zip(folders, answers, strict=False))


def test_an_honest_run_is_consistent(verified):
    code, output, _, _ = verified["honest"]
    assert (code, output[:11]) == (0, "CONSISTENT:")


@pytest.mark.parametrize("name", [*BOMBS, *RECEIPTS])
def test_a_bomb_is_invalid_at_little_cost(verified, name):
    code, output, peak, seconds = verified[name]
    assert "Traceback" not in output
    assert code == 2, output
    assert output.startswith("INVALID: ")
    assert len(output) < 3000
    assert peak < MAX_PEAK_BYTES
    assert seconds < MAX_SECONDS
