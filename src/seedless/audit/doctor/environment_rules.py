"""Causes outside the computation: sources, settings, variables, flags, files and folders."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from seedless.audit.doctor.case import CERTAIN, LIKELY, POSSIBLE, Candidate, Case
from seedless.audit.doctor.hash_order import judge_hash_order
from seedless.audit.doctor.record_lines import ReadFile, WrittenFile
from seedless.audit.doctor.recorded_run import Process, RecordedRun

# Variables that set the number of threads, and those that switch TF32.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
TF32_VARIABLES = ("NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE")

# Parts of the names of flags, and the cause for which a flag with that name stands.
FLAG_CAUSES = {
    "autocast": "autocast",
    "tf32": "tf32",
    "float32_matmul_precision": "tf32",
    "precision": "tf32",
    "dtype": "dtype",
    "compiled": "compiled",
    "threads": "threads",
    "benchmark": "cudnn-autotune",
}


def judge_program(case: Case) -> Iterator[Candidate]:
    """Yield causes that make the runs two programs: sources, interpreter, torch, arguments."""
    if case.pair is None:
        return
    one, two = case.pair
    changed = [path for path in one.sources if two.sources.get(path, "") != one.sources[path]]
    both = [path for path in changed if path in two.sources]
    if both:
        sentence = f"the digest of {both[0]} is not the same in both runs"
        yield Candidate("source-changed", f"{both[0]}:1", CERTAIN, (sentence,), {"name": both[0]})
    for name, left, right in _list_versions(one, two):
        if left != right:
            sentence = f"{name} is {left} in one run and {right} in the other"
            yield Candidate("another-program", "", LIKELY, (sentence,), {"name": name})
    if one.start.argv != two.start.argv:
        left, right = " ".join(one.start.argv), " ".join(two.start.argv)
        sentence = f"the arguments are {left!r} in one run and {right!r} in the other"
        yield Candidate("settings", "", LIKELY, (sentence,), {"name": "the arguments"})


def judge_variables(case: Case) -> Iterator[Candidate]:
    """Yield causes for variables of the environment that differ, also those varied on purpose."""
    if case.pair is None:
        return
    left, right = (process.start.variables for process in case.pair)
    values = {name: (left.get(name), right.get(name)) for name in sorted({*left, *right})}
    for name, (one, two) in {**values, **case.varied}.items():
        if one == two:
            continue
        cause = "settings"
        if name in THREAD_VARIABLES:
            cause = "threads"
        elif name in TF32_VARIABLES:
            cause = "tf32"
        sentence = f"the variable {name} is {_show(one)} in one run and {_show(two)} in the other"
        if name == "PYTHONHASHSEED":
            found = judge_hash_order(case)
            yield replace(found, evidence=(sentence, *found.evidence), experiment="")
        else:
            yield Candidate(cause, "", LIKELY, (sentence,), {"name": name})


def judge_flags(case: Case) -> Iterator[Candidate]:
    """Yield causes for flags of torch that differ at the first step that differs."""
    one, two = case.first.steps
    if one is None or two is None or case.pair is None:
        return
    differing = dict(_compare_flags(one.flags, two.flags))
    threads = [process.torch.threads for process in case.pair if process.torch is not None]
    if len(set(threads)) > 1:
        differing.setdefault("threads", (threads[0], threads[1]))
    found: dict[str, Candidate] = {}
    for name, (left, right) in differing.items():
        parts = [cause for part, cause in FLAG_CAUSES.items() if part in name.lower()]
        cause = parts[0] if parts else "settings"
        sentence = f"the flag {name} is {_show(left)} in one run and {_show(right)} in the other"
        line = case.compiled_line if cause == "compiled" else ""
        found.setdefault(cause, Candidate(cause, line, LIKELY, (sentence,), {"name": name}))
    order = list(dict.fromkeys(FLAG_CAUSES.values()))
    yield from sorted(
        found.values(), key=lambda one: order.index(one.cause) if one.cause in order else 99
    )


def judge_files(case: Case) -> Iterator[Candidate]:
    """Yield causes for files that changed, and for folders that were listed in another order."""
    for left, right in find_changed_files(*case.runs):
        sentence = _describe_change(left, right)
        confidence = LIKELY if left.sha256 and right.sha256 else POSSIBLE
        yield Candidate("data-changed", right.line, confidence, (sentence,), {"name": right.path})
    if case.pair is None:
        return
    one, two = case.pair
    written = {file.path for run in case.runs for file in list_written(run)}
    for a, b in zip(one.listings, two.listings, strict=False):
        if a.path != b.path or a.ordered == b.ordered:
            continue
        if a.sorted == b.sorted:
            sentence = f"{a.call} at {a.line} gave the {a.count} names of {a.path} in another order"
            yield Candidate("listing-order", a.line, LIKELY, (sentence,), {"name": a.path})
        else:
            sentence = f"{a.call} at {a.line} found {a.count} names, then {b.count}, in {a.path}"
            own = any(path.startswith(f"{a.path.rstrip('/')}/") for path in written)
            cause = "leftover-file" if own else "data-changed"
            yield Candidate(cause, a.line, POSSIBLE, (sentence,), {"name": a.path})


def find_changed_files(a: RecordedRun, b: RecordedRun) -> list[tuple[ReadFile, ReadFile]]:
    """Return the files that both runs read, and that were not the same in both.

    Files that a training process wrote itself are left out: those differ because the runs do.
    """
    own = {
        file.path for run in (a, b) for process in run.training for file in process.files.written
    }
    before = {file.path: file for file in list_read(a)}
    pairs = ((before[file.path], file) for file in list_read(b) if file.path in before)
    return [
        (left, right)
        for left, right in pairs
        if right.path not in own and _has_changed(left, right)
    ]


def list_read(run: RecordedRun) -> list[ReadFile]:
    """Return the files that the processes that train, and their workers, read."""
    return [file for process in (*run.training, *run.workers) for file in process.files.read]


def list_written(run: RecordedRun) -> list[WrittenFile]:
    """Return the files that any process wrote."""
    return [file for process in (*run.processes, *run.workers) for file in process.files.written]


def _has_changed(left: ReadFile, right: ReadFile) -> bool:
    if left.sha256 and right.sha256:
        return left.sha256 != right.sha256
    return (left.size, left.mtime_ns) != (right.size, right.mtime_ns)


def _describe_change(left: ReadFile, right: ReadFile) -> str:
    if left.size != right.size:
        return f"{left.path} had {left.size} bytes in one run and {right.size} in the other"
    if left.sha256 and right.sha256:
        return f"{left.path} did not have the same content in both runs"
    return f"{left.path} was written again between the runs; its content was not compared"


def _list_versions(one: Process, two: Process) -> Iterator[tuple[str, str, str]]:
    yield "the program", one.start.executable, two.start.executable
    yield "the version of Python", one.start.python, two.start.python
    if one.torch is not None and two.torch is not None:
        yield "the version of torch", one.torch.version, two.torch.version
        yield "the device", ", ".join(one.torch.devices), ", ".join(two.torch.devices)


def _compare_flags(
    one: Mapping[str, Any], two: Mapping[str, Any]
) -> Iterator[tuple[str, tuple[Any, Any]]]:
    for name in sorted({*one, *two}):
        if one.get(name) != two.get(name):
            yield name, (one.get(name), two.get(name))


def _show(value: Any) -> str:
    return "not set" if value is None else str(value)
