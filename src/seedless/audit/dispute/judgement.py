"""Settle a dispute: find the first place where two parties differ, and derive what is right there.

    line 0 -> epoch -> step (disputed_step.py) -> operation -> execute that one operation

Each stage narrows the place down. What both state alike is not examined. What they state
differently is derived here: the result of one operation, by executing it on the inputs both agree
on; an argument or an input, by executing one step from the state both agree on; where a party gives
no consistent answer, by executing the epoch from the last checkpoint both agree on.
"""

from collections.abc import Sequence

from seedless.audit.dispute.disputed_step import Case, judge_steps
from seedless.audit.dispute.party_answers import Place, list_fields
from seedless.audit.dispute.party_process import PartyError
from seedless.audit.dispute.ruling import Ruling, make_ruling
from seedless.audit.reexecution import derive_facts, read_facts
from seedless.audit.spot_check import score_again
from seedless.audit.trail_comparison import DivergenceError
from seedless.core.digests import digest_each
from seedless.core.mismatch import compare_values
from seedless.proof.trail import compare_trails
from seedless.runs.validation import ValidatedRun
from seedless.train.checkpoint import list_checkpoints

RESULTS = ("weights", "metrics", "predictions")


def is_disputed(a: ValidatedRun, b: ValidatedRun) -> bool:
    """Whether two runs state anything differently that their configuration decides."""
    stated = [{**read_facts(run, a), **{key: run.claims[key] for key in RESULTS}} for run in (a, b)]
    return (
        bool(compare_values(stated[0], stated[1])) or compare_trails(a.trail, b.trail) is not None
    )


def settle(case: Case, *, ask: bool) -> Ruling:
    """Return who is right at the first place where two runs of one configuration differ.

    Args:
        case: the parties.
        ask: ask them for steps and operations; otherwise the epoch is executed here at once.
    """
    # [Step 1] What the two runs began with, and their results where the trails agree.
    runs = [side.run for side in case.sides]
    facts = [read_facts(run, runs[0]) for run in runs]
    difference = compare_trails(runs[0].trail, runs[1].trail)
    if compare_values(facts[0], facts[1]) or (difference is not None and difference[0] == 0):
        return judge_start(case)
    if difference is None:
        return judge_results(case)
    if changed := compare_values(facts[0], derive_facts(case.a.run, case.judge.execution.prepared)):
        reason = "A and B agree on what they began with, and it is not what is found here"
        return Ruling("cannot judge", reason, tuple(map(str, changed)))
    # [Step 2] The first epoch that differs. Its steps say more, unless only what follows them does.
    epoch, names = difference
    place = Place(epoch, find_common_checkpoint(case, epoch))
    reason = "both parties are folders: a command of a party finds the operation, too"
    if ask:
        reason = "the parties differ in what is computed after the steps of an epoch"
    if ask and {*names} - {"score", "schedule", "step"}:
        try:
            return judge_steps(case, place)
        except PartyError as error:
            reason = str(error)
    return judge_epoch(case, place, names, reason)


def judge_start(case: Case) -> Ruling:
    """Derive data, first weights and line 0 of the trail, which differ between the parties."""
    here = {
        **derive_facts(case.a.run, case.judge.execution.prepared),
        "state": digest_each(case.judge.execution.beginning),
    }
    stated = [
        {**read_facts(side.run, case.a.run), "state": side.run.trail[0]["state"]}
        for side in case.sides
    ]
    names = [mismatch.field for mismatch in compare_values(stated[0], stated[1])]
    return make_ruling(
        [not compare_values(here, one) for one in stated],
        f"before the first step, {list_fields(names)}; derived from configuration and data",
        place={"epoch": 0, "names": names},
        settled_by="the start",
    )


def judge_results(case: Case) -> Ruling:
    """Compute the predictions and scores again where the trails agree and the receipts do not."""
    stated = [{key: side.run.claims[key] for key in RESULTS} for side in case.sides]
    names = [mismatch.field for mismatch in compare_values(stated[0], stated[1])]
    if not names:
        return Ruling("no dispute", "every entry of the two trails agrees, and so do the results")
    try:
        here = score_again(case.a.run, case.judge.execution.prepared)
    except DivergenceError as error:
        return Ruling("cannot judge", str(error))
    return make_ruling(
        [not compare_values(here, one) for one in stated],
        f"the trails agree, and {list_fields(names)}; computed from the selected weights",
        place={"names": names},
        settled_by="the scores",
    )


def judge_epoch(case: Case, place: Place, names: Sequence[str], reason: str) -> Ruling:
    """Execute the disputed epoch here, from the last checkpoint both agree on."""
    entry = case.judge.execute_epoch({"start": place.start, "epoch": place.epoch})[1]
    stated = [side.run.trail[place.epoch] for side in case.sides]
    begin = f"the checkpoint of epoch {place.start}" if place.start else "the beginning"
    return make_ruling(
        [compare_trails([entry], [one]) is None for one in stated],
        f"in epoch {place.epoch}, {list_fields(names)}; executed here from {begin}",
        details=(reason,),
        place={"epoch": place.epoch, "names": [*names]},
        settled_by="one epoch",
    )


def find_common_checkpoint(case: Case, epoch: int) -> int:
    """Return the last epoch before one that both folders have a checkpoint of; 0 for none."""
    epochs = [
        {position.epoch for position, _ in list_checkpoints(side.run.path) if not position.batch}
        for side in case.sides
    ]
    return max({0} | {one for one in epochs[0] & epochs[1] if one < epoch})
