"""How often does a referee judge rightly between two parties, and what does it take?

    python -m benchmarks.referee [--cases 100] [--out FOLDER]

Each case has two parties, of which one or both train with a fault that only this program knows
(benchmarks/faulty_party.py), or lie about what they did. The referee gets two valid run folders and
the parties' answers. A right verdict names the party that is right at the first difference, or
neither. Every tenth case asks processes through their commands; in the others the parties answer
within this process, with the same bytes. Writes referee.json.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.faulty_party import (
    KINDS,
    STEPS_PER_EPOCH,
    Fault,
    answer_with,
    make_faulty_run,
    make_preparer,
)
from benchmarks.measure import RESULTS, write_results
from seedless.audit.dispute.judgement import is_disputed
from seedless.audit.dispute.op_call import describe_tensor, read_tensor
from seedless.audit.dispute.party import LocalParty
from seedless.audit.dispute.party_process import Party, PartyError, PartyProcess
from seedless.audit.dispute.referee import check_pair, settle_pair
from seedless.runs.validation import ValidatedRun, validate

HONEST = Fault("none", 0)
STEPS = 3 * STEPS_PER_EPOCH
# In one place both parties can be wrong about, whatever the choice.
SAME_PLACE = ("learning rate", "weight", "first weight", "moment", "operation")
LIES = ("no answer", "an honest execution", "honest operations", "false inputs", "false records")


@dataclass(frozen=True)
class Dispute:
    """One case: the faults of A and B, what B or A lies about, and the right verdict."""

    a: Fault
    b: Fault
    expected: str
    lie: str = ""


class LyingParty(LocalParty):
    """A faulty party that answers some requests with something else than it executed."""

    def __init__(self, run: Path, fault: Fault, honest: Path, lie: str) -> None:
        executed = HONEST if lie == "an honest execution" else fault
        super().__init__(answer_with(run, executed))
        self.lie = lie
        self.honest = LocalParty(answer_with(honest, HONEST))

    def ask(self, request: Mapping[str, Any], max_bytes: int = 2**24) -> Any:
        """Return an answer, true or false."""
        ask = request["ask"]
        if self.lie == "no answer":
            raise PartyError("it ended without an answer")
        if self.lie == "honest operations" and ask in ("operations", "operation"):
            return self.honest.ask(request, max_bytes)
        answer = super().ask(request, max_bytes)
        if self.lie == "false inputs" and ask == "inputs":
            for value in answer["arguments"]:
                if isinstance(value, dict) and "tensor" in value:
                    value["tensor"] = describe_tensor(read_tensor(value["tensor"]).zero_())
        if self.lie == "false records" and ask == "record":
            answer["rate"] = 1.0
        return answer


def draw(*names: object) -> int:
    """Return a number that looks random and is a function of names alone."""
    return int.from_bytes(hashlib.sha256(repr(names).encode()).digest()[:4], "little")


def plan(cases: int) -> list[Dispute]:
    """Return the cases: most with one fault, every tenth with two, every seventh with a lie."""
    planned = []
    for case in range(cases):
        step, choice = 2 + draw("step", case) % (STEPS - 1), draw("choice", case)
        kind = "operation" if case % 6 == 5 else KINDS[case % len(KINDS)]
        if kind not in ("moment", "running mean") and case % 5 == 0:  # these are zero before it
            step = 1
        fault = Fault(kind, step, choice)
        sides = [fault, HONEST] if draw("side", case) % 2 else [HONEST, fault]
        expected, lie = "A is right" if sides[0] == HONEST else "B is right", ""
        if case % 10 == 4:  # both wrong at one place
            kind = SAME_PLACE[case // 10 % len(SAME_PLACE)]
            # 96 more is the same tensor or operation, and another bit or rate.
            sides = [Fault(kind, step, choice), Fault(kind, step, choice + 96)]
            expected = "neither is right"
        elif case % 10 == 9:  # both wrong, at different steps: the first difference decides
            early, late = Fault("gradient", 2, choice), Fault("swapped sample", 7, choice)
            sides = [early, late] if draw("side", case) % 2 else [late, early]
            expected = "A is right" if sides[1].step == 2 else "B is right"
        elif case % 7 == 3:
            lie = LIES[sum(bool(known.lie) for known in planned) % len(LIES)]
            lied = Fault("operation" if lie == "false inputs" else "gradient", step, choice)
            sides = [lied if one != HONEST else one for one in sides]
        planned.append(Dispute(sides[0], sides[1], expected, lie))
    return planned


def make_run(fault: Fault, folder: Path) -> Path:
    """Return the run of a fault, made once."""
    out = folder / hashlib.sha256(repr(fault).encode()).hexdigest()[:16]
    return out if out.exists() else make_faulty_run(fault, out)


def make_effective(dispute: Dispute, folder: Path) -> tuple[Dispute, list[ValidatedRun]]:
    """Return a case and its runs, with other choices for faults that change no digest.

    A flipped bit of a value that nothing uses, or a sample swapped with itself, is no dispute.
    """
    honest = validate(make_run(HONEST, folder))
    for _ in range(20):
        runs = [validate(make_run(fault, folder)) for fault in (dispute.a, dispute.b)]
        assert not any(run.problems for run in runs), [run.problems for run in runs]
        pairs = [
            (run, honest)
            for run, fault in zip(runs, (dispute.a, dispute.b), strict=True)
            if fault != HONEST
        ]
        if all(is_disputed(*pair) for pair in [*pairs, (runs[0], runs[1])]):
            return dispute, runs
        a, b = (
            fault if fault == HONEST else replace(fault, choice=fault.choice + 1)
            for fault in (dispute.a, dispute.b)
        )
        dispute = replace(dispute, a=a, b=b)
    raise AssertionError(f"no choice of {dispute} changes a digest")


def make_party(fault: Fault, run: Path, honest: Path, lie: str, stack: ExitStack | None) -> Party:
    """Return who answers for a run: with a stack, a process that it ends."""
    if lie and fault != HONEST:
        return LyingParty(run, fault, honest, lie)
    if stack is None:
        return LocalParty(answer_with(run, fault))
    command = [sys.executable, "-m", "benchmarks.faulty_party", str(run), json.dumps(asdict(fault))]
    return stack.enter_context(PartyProcess(command))


def judge(dispute: Dispute, folder: Path, commands: bool) -> dict[str, Any]:
    """Let a referee judge one case, and compare its verdict with what is known."""
    if dispute.expected == "no dispute":
        runs = [validate(make_run(HONEST, folder))] * 2
    else:
        dispute, runs = make_effective(dispute, folder)
    faults = (dispute.a, dispute.b)
    assert check_pair(runs[0], runs[1]) is None
    honest = make_run(HONEST, folder)
    with ExitStack() as stack:
        parties = [
            make_party(fault, run.path, honest, dispute.lie, stack if commands else None)
            for fault, run in zip(faults, runs, strict=True)
        ]
        ruling = settle_pair(runs, parties, make_preparer(HONEST))
    return {
        "a": asdict(dispute.a),
        "b": asdict(dispute.b),
        "lie": dispute.lie,
        "commands": commands,
        "expected": dispute.expected,
        "outcome": ruling.outcome,
        "right": ruling.outcome == dispute.expected,
        "settled_by": ruling.settled_by,
        "place": dict(ruling.place),
        "bytes": dict(ruling.exchanged),
        "seconds": ruling.seconds,
    }


def summarize(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return counts, bytes and seconds over all cases."""
    asked = [row for row in rows if row["bytes"]["a"]]
    exchanged = [row["bytes"]["a"] + row["bytes"]["b"] for row in asked]
    return {
        "cases": len(rows),
        "right": sum(row["right"] for row in rows),
        "wrong": [index for index, row in enumerate(rows) if not row["right"]],
        "outcomes": dict(Counter(row["outcome"] for row in rows)),
        "settled_by": dict(Counter(row["settled_by"] for row in rows)),
        "bytes_both_parties": {
            "n": len(exchanged),
            "median": statistics.median(exchanged),
            "largest": max(exchanged),
        },
        "seconds": {
            "median": statistics.median(row["seconds"] for row in rows),
            "largest": max(row["seconds"] for row in rows),
        },
    }


def main() -> None:
    """Judge the cases and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    rows = []
    with TemporaryDirectory() as folder:
        for number, dispute in enumerate(plan(options.cases)):
            row = judge(dispute, Path(folder), commands=number % 10 == 0)
            rows.append(row)
            mark = "right" if row["right"] else "WRONG"
            print(number, mark, row["outcome"], row["settled_by"], row["seconds"], flush=True)
        pair = Dispute(HONEST, HONEST, "no dispute")
        honest = [judge(pair, Path(folder), commands) for commands in (False, True)]
    results = {"summary": summarize(rows), "cases": rows, "honest_pairs": honest}
    command = f"python -m benchmarks.referee --cases {options.cases}"
    print(write_results("referee", command, results, options.out))
    print(json.dumps(results["summary"], indent=2))


if __name__ == "__main__":
    main()
