"""The procedure of `--resume-at`: one run unbroken, one ended and started again, compared."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from seedless.audit.doctor.case import Candidate
from seedless.audit.doctor.diagnosis import Diagnosis, add_evidence, fill_remedy
from seedless.audit.doctor.examine import Examination, examine_pair, run_checked
from seedless.audit.doctor.first_step import STEP_COUNT
from seedless.audit.doctor.pair import Pair, Runner, compare
from seedless.audit.doctor.resume_check import ResumeFinding, check_resume
from seedless.audit.doctor.run_outcome import explain_missing_steps
from seedless.audit.doctor.working_copy import copy_working_folder, move_command
from seedless.core.errors import RunError
from seedless.script_recorder.settings import Settings


def examine_resume(
    runner: Runner, last: int, resume_command: Sequence[str] | None = None
) -> Examination:
    """Say whether a script that is ended and started again continues as if it had not been ended.

    Args:
        runner: runs the command.
        last: the step after which the run is ended.
        resume_command: starts it again; the same command by default.
    """
    # [Step 1] One run unbroken, one ended, each in a copy of the working folder.
    here = Path.cwd()
    one, two = (copy_working_folder(here, runner.folder / f"copy-{name}") for name in "ab")
    command = move_command(runner.command, here, one)
    whole = run_checked(runner, "unbroken", command=command, cwd=one, out=_make_out(one))
    command = move_command(runner.command, here, two)
    settings = Settings("", end_after=last)
    ended = run_checked(
        runner, f"ended after step {last}", settings, command=command, cwd=two, out=_make_out(two)
    )
    made = len(whole.recorded.training[0].steps)
    if made <= last:
        raise RunError(
            f"the command makes {made} steps; expected --resume-at between 1 and {made - 1}"
        )
    # [Step 2] Up to there they must agree, or there is no sense in what follows.
    pair = compare(whole, ended)
    if pair.first is not None and pair.first.what != STEP_COUNT:
        found = examine_pair(runner, pair)
        note = f"two runs differ before step {last}, without any resume: that is explained here"
        return replace(found, diagnosis=add_evidence(found.diagnosis, note))
    # [Step 3] Start it again where it was ended.
    again = move_command(resume_command or runner.command, here, two)
    resumed = runner.run("started again", command=again, cwd=two, out=_make_out(two))
    if not resumed.recorded.training:
        reason = explain_missing_steps(resumed, again)
        return Examination(Diagnosis(None, steps=last, reason=f"after the restart, {reason}"), pair)
    finding = check_resume(whole.recorded, ended.recorded, resumed.recorded, last)
    return Examination(
        _make_answer(finding, made),
        Pair(whole, resumed, None),
        resumed_after=finding.after or 0,
    )


def _make_answer(finding: ResumeFinding, made: int) -> Diagnosis:
    if not finding.cause:
        return Diagnosis(True, steps=finding.steps, evidence=finding.evidence)
    candidate = Candidate(
        finding.cause, finding.line, finding.confidence, finding.evidence, finding.words
    )
    title, remedy = fill_remedy(candidate, finding.line)
    return Diagnosis(
        identical=False,
        step=finding.step,
        what=finding.what,
        line=finding.line,
        cause=finding.cause,
        title=title,
        remedy=remedy,
        confidence=finding.confidence,
        ranks=finding.ranks,
        evidence=finding.evidence,
        steps=made,
    )


def _make_out(copy: Path) -> Path:
    """Return the folder that {out} stands for in runs in one copy; it is beside the copy."""
    out = copy.with_name(f"{copy.name}-out")
    out.mkdir(exist_ok=True)
    return out
