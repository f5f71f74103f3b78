"""Choose among the causes that the records speak for, by experiments where there are some."""

from dataclasses import replace

from seedless.audit.doctor.case import CERTAIN, LIKELY, POSSIBLE, Candidate, Case
from seedless.audit.doctor.diagnosis import confirm
from seedless.audit.doctor.experiments import Result, choose_experiments, run_experiment
from seedless.audit.doctor.hash_order import judge_hash_order
from seedless.audit.doctor.pair import Runner


def choose_untried(candidates: list[Candidate]) -> Candidate | None:
    """Return the best cause of a difference that did not come again.

    An experiment would prove nothing: the difference stays away without it. What the records show
    of files, sources and settings holds all the same.
    """
    if not candidates:
        return None
    best = next((one for one in candidates if not one.experiment), candidates[0])
    return best if not best.experiment else replace(best, confidence=POSSIBLE)


def try_out(
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
        if not (result.removed or result.confirms):
            continue
        for candidate in candidates:
            if candidate.experiment == name:
                return confirm(candidate, result.sentence), results
        # No rule asked for it, so that chance is the better explanation until it comes again.
        again = run_experiment(runner, name, case)
        results.append(replace(again, sentence=f"once more: {again.sentence}"))
        if not again.removed:
            continue
        if name == "hash-seed":
            return confirm(judge_hash_order(case), result.sentence), results
        general = _explain_general(name, result)
        return general, results
    # What is only possible does not hold against its experiment.
    left = (one for one in candidates if one.confidence != POSSIBLE or not one.experiment)
    return next(left, None), results


def _explain_general(name: str, result: Result) -> Candidate:
    """Return the cause for an experiment that no rule asked for."""
    cause = "threads" if name == "one-thread" else "unseeded-draws"
    words = {
        "generator": "a generator",
        "call": "random.seed, np.random.seed and torch.manual_seed",
    }
    return Candidate(cause, "", LIKELY, (result.sentence,), words)
