"""The whole procedure of `seedless doctor`: run, compare, record the step, judge, try it out."""

from dataclasses import asdict, dataclass, replace

from seedless.audit.doctor.case import CERTAIN, LIKELY, POSSIBLE, Candidate, Case
from seedless.audit.doctor.diagnosis import (
    Diagnosis,
    add_evidence,
    confirm,
    list_candidates,
    make_diagnosis,
)
from seedless.audit.doctor.experiments import (
    Result,
    choose_experiments,
    run_experiment,
)
from seedless.audit.doctor.first_step import find_differing_ranks
from seedless.audit.doctor.hash_order import judge_hash_order
from seedless.audit.doctor.op_pass import record_step
from seedless.audit.doctor.pair import Pair, Run, Runner, compare
from seedless.audit.doctor.run_outcome import explain_missing_steps, find_cut_off
from seedless.core.errors import RunError


@dataclass(frozen=True)
class Examination:
    """The answer, and the runs that it rests on.

    Attributes:
        diagnosis: the answer.
        pair: the two runs that were compared; None if the answer rests on one run.
        recorded_pair: the two runs whose operations were recorded, if any.
    """

    diagnosis: Diagnosis
    pair: Pair | None = None
    recorded_pair: Pair | None = None


def examine(runner: Runner, runs: int = 2) -> Examination:
    """Run a command several times; say whether the runs are identical, and if not, why.

    Args:
        runner: runs the command.
        runs: how many runs are compared with the first.
    """
    # [Step 1] Run the command, and compare each run with the first.
    made = [_run_checked(runner, index, runs) for index in range(runs)]
    pairs = [compare(made[0], other) for other in made[1:]]
    pair = next((one for one in pairs if one.first is not None), pairs[0])
    if pair.first is None:
        return Examination(judge_agreement(made), pair)
    if cut_off := find_cut_off(pair):
        return Examination(Diagnosis(None, steps=_count_steps(pair.a), reason=cut_off), pair)
    # [Step 2] With a variable varied: do the runs differ without it, too?
    if runner.varied:
        control = runner.run("control: the first values once more", variables=_first_values(runner))
        same = compare(made[0], control)
        if same.first is not None:
            found = examine_pair(replace(runner, varied={}), same)
            note = "two runs differ also where nothing was varied; that difference is explained"
            return replace(found, diagnosis=add_evidence(found.diagnosis, note))
    return examine_pair(runner, pair)


def examine_pair(runner: Runner, pair: Pair) -> Examination:
    """Say why two runs differ."""
    assert pair.first is not None
    varied = {name: (values[0], values[1]) for name, values in runner.varied.items()}
    case = Case((pair.a.recorded, pair.b.recorded), pair.first, varied=varied)
    # [Step 1] Record the operations of the step that differs, in a pair of its own.
    passed = record_step(runner, case)
    case = passed.case
    # [Step 2] Ask the rules, then try the causes out.
    candidates = list_candidates(case)
    results: list[Result] = []
    if passed.intermittent:
        chosen = _choose_untried(candidates)
    else:
        chosen, results = _try_out(runner, case, candidates)
    diagnosis = replace(
        make_diagnosis(case, chosen),
        steps=_count_steps(pair.a),
        intermittent=passed.intermittent,
        experiments=tuple(asdict(result) for result in results),
    )
    others = [other.evidence[0] for other in candidates if other.evidence]
    notes = filter(None, (passed.note, *others[:3]))
    return Examination(add_evidence(diagnosis, *notes), pair, passed.pair)


def judge_agreement(runs: list[Run]) -> Diagnosis:
    """Return the answer for runs that agree in all their values."""
    steps = _count_steps(runs[0])
    if differing := find_differing_ranks(runs[0].recorded):
        step, what, ranks = differing
        place = runs[0].recorded.training[0].steps[step - 1].line
        case_line = place or "the first step"
        return Diagnosis(
            False,
            step=step,
            what=what,
            line=place,
            cause="rank-differs",
            title="the ranks of one run do not hold the same weights",
            remedy=f"broadcast the weights of rank 0 before {case_line}",
            confidence=CERTAIN,
            ranks=ranks,
            evidence=(
                f"the runs agree with each other; in each, the gradients of all ranks are equal "
                f"at step {step}, and the weights of rank {ranks[0]} are not those of rank 0",
            ),
            steps=steps,
        )
    failed = [run for run in runs if run.execution.exit_code != 0]
    if failed:
        code = failed[0].execution.exit_code
        reason = f"the runs agree in all {steps} steps, but the command failed (exit code {code})"
        return Diagnosis(None, steps=steps, reason=reason)
    return Diagnosis(True, steps=steps)


def _run_checked(runner: Runner, index: int, runs: int) -> Run:
    varied = {name: values[min(index, 1)] for name, values in runner.varied.items()}
    run = runner.run(f"run {index + 1} of {runs}", variables=varied)
    if not run.recorded.training:
        raise RunError(explain_missing_steps(run, runner.command))
    return run


def _choose_untried(candidates: list[Candidate]) -> Candidate | None:
    """Return the best cause of a difference that did not come again.

    An experiment would prove nothing: the difference stays away without it. What the records show
    of files, sources and settings holds all the same.
    """
    if not candidates:
        return None
    best = next((one for one in candidates if not one.experiment), candidates[0])
    return best if not best.experiment else replace(best, confidence=POSSIBLE)


def _try_out(
    runner: Runner, case: Case, candidates: list[Candidate]
) -> tuple[Candidate | None, list[Result]]:
    """Return the cause that holds, and the experiments that were run for it."""
    results: list[Result] = []
    best = candidates[0] if candidates else None
    if best is not None and not best.experiment and best.confidence in (CERTAIN, LIKELY):
        return best, results
    for name in choose_experiments(candidates, case):
        result = run_experiment(runner, name, case)
        results.append(result)
        if not result.removed:
            continue
        for candidate in candidates:
            if candidate.experiment == name:
                return confirm(candidate, result.sentence), results
        # No rule asked for it, so that chance is the better explanation until it comes again.
        again = run_experiment(runner, name, case)
        results.append(again)
        if not again.removed:
            continue
        if name == "hash-seed":
            return confirm(judge_hash_order(case), result.sentence), results
        general = _explain_general(name, result)
        return general, results
    if best is not None and best.confidence == POSSIBLE and best.experiment:
        return None, results  # its experiment spoke against it
    return best, results


def _explain_general(name: str, result: Result) -> Candidate:
    """Return the cause for an experiment that no rule asked for."""
    cause = {"one-thread": "threads", "deterministic": "nondeterministic-op"}.get(
        name, "unseeded-draws"
    )
    words = {
        "generator": "a generator",
        "call": "random.seed, np.random.seed and torch.manual_seed",
    }
    return Candidate(cause, "", LIKELY, (result.sentence,), words)


def _first_values(runner: Runner) -> dict[str, str]:
    return {name: values[0] for name, values in runner.varied.items()}


def _count_steps(run: Run) -> int:
    return max((len(process.steps) for process in run.recorded.training), default=0)
