"""The procedure of `--against`: a run of the command, compared with one recorded before."""

from dataclasses import replace
from pathlib import Path

from seedless.audit.doctor.case import Candidate, Case
from seedless.audit.doctor.command import OUT_WORD, Execution
from seedless.audit.doctor.diagnosis import Diagnosis, add_evidence, list_candidates, make_diagnosis
from seedless.audit.doctor.examine import Examination, examine_pair, judge_agreement, run_checked
from seedless.audit.doctor.pair import Run, Runner, compare
from seedless.audit.doctor.recorded_run import read_run
from seedless.audit.doctor.run_outcome import find_cut_off
from seedless.core.errors import RunError


def examine_against(runner: Runner, folder: Path) -> Examination:
    """Say why a run of the command differs from one that `--out` kept.

    The earlier run cannot be repeated, so that what is said rests on the records of both. Whether
    the command repeats itself today is tried first.
    """
    # [Step 1] Compare with the earlier run.
    earlier = open_recorded_run(folder)
    now = run_checked(runner, "run 1")
    pair = compare(earlier, now)
    if pair.first is None:
        return Examination(judge_agreement([earlier, now]), pair)
    if cut_off := find_cut_off(pair):
        return Examination(Diagnosis(None, reason=cut_off), pair)
    # [Step 2] Does the command repeat itself?
    again = run_checked(runner, "run 2, to see whether the command repeats itself")
    same = compare(now, again)
    if same.first is not None:
        found = examine_pair(runner, same)
        note = "two runs of today differ as well: that difference is explained here"
        return replace(found, diagnosis=add_evidence(found.diagnosis, note))
    # [Step 3] It does: what changed since is in the settings, the sources or the files.
    case = Case((earlier.recorded, now.recorded), pair.first)
    candidates: list[Candidate] = [one for one in list_candidates(case) if not one.experiment]
    diagnosis = make_diagnosis(case, candidates[0] if candidates else None)
    others = [one.evidence[0] for one in candidates[1:4] if one.evidence]
    return Examination(
        add_evidence(diagnosis, "two runs of today agree with each other", *others), pair
    )


def open_recorded_run(folder: Path) -> Run:
    """Return an earlier run from the folder that `--out` kept, or from one of its runs."""
    for place in (folder / "run-1", folder):
        if (place / "records").is_dir():
            done = Execution(place.absolute(), 0, 0.0)
            recorded = read_run(done.records, {str(done.folder / "out"): OUT_WORD})
            if not recorded.training:
                raise RunError(f"{place} holds no step; record it again with --out")
            return Run(done, recorded)
    raise RunError(
        f"expected a folder that `seedless doctor --out` wrote, got {folder}, which has neither "
        "run-1/records nor records"
    )
