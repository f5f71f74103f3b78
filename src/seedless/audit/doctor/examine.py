"""The whole procedure of `seedless doctor`: run, compare, record the step, judge, try it out."""

from dataclasses import asdict, dataclass, replace
from typing import Any

from seedless.audit.doctor.case import CERTAIN, POSSIBLE, Candidate, Case
from seedless.audit.doctor.diagnosis import (
    Diagnosis,
    add_evidence,
    fill_remedy,
    list_candidates,
    make_diagnosis,
)
from seedless.audit.doctor.experiments import EXPERIMENTS, MAX_EXPERIMENTS, Result
from seedless.audit.doctor.first_step import FirstStep, find_differing_ranks, has_effect
from seedless.audit.doctor.leftover import try_without_leftovers
from seedless.audit.doctor.op_pass import MAX_PAIRS, record_step
from seedless.audit.doctor.pair import Pair, Run, Runner, compare
from seedless.audit.doctor.run_outcome import explain_missing_steps, find_cut_off
from seedless.audit.doctor.trial import choose_untried, try_out
from seedless.core.errors import RunError


@dataclass(frozen=True)
class Examination:
    """The answer, and the runs that it rests on.

    Attributes:
        diagnosis: the answer.
        pair: the two runs that were compared; None if the answer rests on one run.
        recorded_pair: the two runs whose operations were recorded, if any.
        resumed_after: for a resumed run, the step of the unbroken one after which it goes on; 0
            where none was found.
    """

    diagnosis: Diagnosis
    pair: Pair | None = None
    recorded_pair: Pair | None = None
    resumed_after: int | None = None


# Runs that finding the cause of a difference takes at most: a pair without what the first run left
# over, the pairs that record a step, each experiment and its repetition, and once more the pairs
# that record a step, where a draw hid another cause.
MOST_RUNS_FOR_A_CAUSE = 2 + 2 * MAX_PAIRS + 2 * 2 * MAX_EXPERIMENTS + 2 * MAX_PAIRS


def examine(runner: Runner, runs: int = 2) -> Examination:
    """Run a command several times; say whether the runs are identical, and if not, why.

    Args:
        runner: runs the command.
        runs: how many runs are compared with the first.
    """
    # [Step 1] Run the command, and compare each run with the first.
    made = [_run_numbered(runner, index, runs) for index in range(runs)]
    pairs = [compare(made[0], other) for other in made[1:]]
    pair = next((one for one in pairs if _is_different(one)), pairs[0])
    if not _is_different(pair):
        observed = next((one.first for one in pairs if one.first is not None), None)
        return Examination(_add_observed(judge_agreement(made), observed), pair)
    if cut_off := find_cut_off(pair):
        return Examination(Diagnosis(None, steps=_count_steps(pair.a), reason=cut_off), pair)
    # [Step 2] With a variable varied: do the runs differ without it, too?
    if runner.varied:
        control = runner.run("control: the first values once more", variables=_first_values(runner))
        same = compare(made[0], control)
        if _is_different(same):
            found = examine_pair(replace(runner, varied={}), same)
            note = "two runs differ also where nothing was varied; that difference is explained"
            return replace(found, diagnosis=add_evidence(found.diagnosis, note))
    return examine_pair(runner, pair)


def examine_pair(runner: Runner, pair: Pair) -> Examination:
    """Say why two runs differ."""
    assert pair.first is not None
    varied = {name: (values[0], values[1]) for name, values in runner.varied.items()}
    case = Case((pair.a.recorded, pair.b.recorded), pair.first, varied=varied)
    # [Step 1] A file that the first run left over makes the second another run. Look for it first:
    # the next pair would find the file in both of its runs.
    leftover, results = try_without_leftovers(runner, pair, case)
    if leftover is not None and results and results[-1].removed:
        diagnosis = make_diagnosis(case, leftover)
        return Examination(_add_results(diagnosis, pair, results), pair)
    # [Step 2] Record the operations of the step that differs, in a pair of its own.
    passed = record_step(runner, case)
    case = passed.case
    # [Step 3] Ask the rules, then try the causes out.
    candidates = list_candidates(case)
    if leftover is not None and not results:  # it could not be tried
        candidates.insert(0, leftover)
    if passed.intermittent:
        chosen = choose_untried(candidates)
    else:
        chosen, tried = try_out(runner, case, candidates)
        results = [*results, *tried]
        # [Step 4] A draw that was taken away without effect hides another cause: look behind it.
        if chosen is not None and case.op is not None and case.op.draws:
            refuted = [one for one in tried if one.name == chosen.experiment and not one.removed]
            behind = _look_behind(runner, case, chosen) if refuted else None
            if behind is not None:
                case, chosen = behind
                passed = replace(passed, case=case, note=refuted[0].sentence)
    diagnosis = _add_results(make_diagnosis(case, chosen), pair, results)
    others = [other.evidence[0] for other in candidates if other.evidence]
    notes = filter(None, (passed.note, *others[:3]))
    diagnosis = replace(diagnosis, intermittent=passed.intermittent)
    return Examination(add_evidence(diagnosis, *notes), pair, passed.pair)


def _is_different(pair: Pair) -> bool:
    """Whether two runs differ in more than what is only looked at."""
    return pair.first is not None and has_effect(pair.a.recorded, pair.b.recorded)


def _add_observed(diagnosis: Diagnosis, first: FirstStep | None) -> Diagnosis:
    """Return the answer for runs that agree, with what differs without an effect, if anything."""
    if first is None or not diagnosis.identical:
        return diagnosis
    sentence = (
        f"at step {first.step} {', '.join(first.names)} differ, and no loss, gradient or weight of "
        "any step: the model was also called with something else, as in an evaluation"
    )
    return add_evidence(replace(diagnosis, step=first.step, what=first.what), sentence)


def _look_behind(runner: Runner, case: Case, draw: Candidate) -> tuple[Case, Candidate] | None:
    """Return the cause that is likely once a draw is taken away in both runs; None if none is."""
    passed = record_step(runner, case, EXPERIMENTS[draw.experiment].seeds)
    if passed.pair is None or (passed.case.op is not None and passed.case.op.draws):
        return None
    found = [one for one in list_candidates(passed.case) if one.confidence != POSSIBLE]
    return (passed.case, found[0]) if found else None


def _add_results(diagnosis: Diagnosis, pair: Pair, results: list[Result]) -> Diagnosis:
    experiments = tuple(asdict(result) for result in results)
    return replace(diagnosis, steps=_count_steps(pair.a), experiments=experiments)


def judge_agreement(runs: list[Run]) -> Diagnosis:
    """Return the answer for runs that agree in all their values."""
    steps = _count_steps(runs[0])
    if differing := find_differing_ranks(runs[0].recorded):
        step, what, ranks = differing
        line = runs[0].recorded.training[0].steps[step - 1].line
        title, remedy = fill_remedy(Candidate("rank-differs"), line)
        sentence = (
            f"the runs agree with each other; in each, the gradients of all ranks are equal at "
            f"step {step}, and the weights of rank {ranks[0]} are not those of rank 0"
        )
        return Diagnosis(
            False,
            step=step,
            what=what,
            line=line,
            cause="rank-differs",
            title=title,
            remedy=remedy,
            confidence=CERTAIN,
            ranks=ranks,
            evidence=(sentence,),
            steps=steps,
        )
    failed = [run for run in runs if run.execution.exit_code != 0]
    if failed:
        code = failed[0].execution.exit_code
        reason = f"the runs agree in all {steps} steps, but the command failed (exit code {code})"
        return Diagnosis(None, steps=steps, reason=reason)
    return Diagnosis(True, steps=steps)


def run_checked(runner: Runner, title: str, *args: Any, **options: Any) -> Run:
    """Run the command as `Runner.run` does; a run without a step is an error that says why."""
    run = runner.run(title, *args, **options)
    if not run.recorded.training:
        raise RunError(explain_missing_steps(run, runner.command))
    return run


def _run_numbered(runner: Runner, index: int, runs: int) -> Run:
    varied = {name: values[min(index, 1)] for name, values in runner.varied.items()}
    return run_checked(runner, f"run {index + 1} of {runs}", variables=varied)


def _first_values(runner: Runner) -> dict[str, str]:
    return {name: values[0] for name, values in runner.varied.items()}


def _count_steps(run: Run) -> int:
    return max((len(process.steps) for process in run.recorded.training), default=0)
