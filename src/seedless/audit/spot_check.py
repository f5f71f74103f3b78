"""Execute a sample of a run's segments again, with its start, its data and its final scores.

    plan_sample -> prepare_again -> compare_start -> train_again for each segment -> compare_final

A forged segment that is not in the sample is not found: sampling.py says how likely that is. What
is checked whatever the sample: the data, the first weights, line 0 of the trail, and the
predictions and scores of the selected weights.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from seedless.audit.reexecution import (
    choose_device,
    find_segment,
    prepare_again,
    train_again,
)
from seedless.audit.sampling import check_token, choose_segments, describe_chances, draw_token
from seedless.audit.trail_comparison import DivergenceError, diverge
from seedless.audit.verdict import PART, Verdict
from seedless.audit.verdict_notes import explain_divergence, list_notes, list_remarks
from seedless.core.digests import digest_each, name_tensors
from seedless.core.errors import ConfigError, RunError
from seedless.core.mismatch import compare_values
from seedless.runs.prepare import Prepared, Preparer
from seedless.runs.seal import score_selected
from seedless.runs.validation import ValidatedRun
from seedless.train.checkpoint import list_checkpoints, read_checkpoint
from seedless.train.progress_state import Observer
from seedless.train.state_tensors import collect_state, fetch_state


@dataclass(frozen=True)
class Sample:
    """The segments of a run to execute.

    Attributes:
        token: 32 hex digits from which the choice follows.
        chosen: their numbers, from 1, in ascending order.
        total: how many segments the run has.
    """

    token: str
    chosen: tuple[int, ...]
    total: int

    @property
    def checked(self) -> dict[str, Any]:
        """Which segments are executed, as a verdict says it."""
        return {"segments": list(self.chosen), "of": self.total, "token": self.token}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Sample:
        """Return the sample of these fields, also after conversion to and from JSON."""
        return cls(**{**values, "chosen": tuple(values["chosen"])})

    def describe(self) -> list[str]:
        """Return in words what was chosen, how to choose it again, and how likely a miss is."""
        numbers = ", ".join(map(str, self.chosen))
        plural = "s" * (len(self.chosen) > 1)
        return [
            f"segment{plural} {numbers} of {self.total}, chosen by --sample-token {self.token}",
            *describe_chances(self.total, len(self.chosen)),
        ]


def check_options(
    sample: int | None, token: str | None, *, segment: int | None, validate_only: bool
) -> None:
    """Refuse options of `verify` that contradict each other, or do nothing without another."""
    if sample is None and token is not None:
        raise ConfigError("--sample-token repeats the choice of --sample N: give both")
    if sample is not None and segment is not None:
        raise ConfigError("expected --sample N or --segment K, got both")
    if sample is not None and validate_only:
        raise ConfigError("--sample executes, and --validate-only executes nothing: give one")
    if segment is not None and validate_only:
        raise ConfigError("--segment executes, and --validate-only executes nothing: give one")


def plan_sample(run: ValidatedRun, count: int, token: str | None = None) -> Sample:
    """Choose ``count`` segments of a run: by a new token, or by one to repeat a choice."""
    if run.left_out:
        raise RunError(
            f"{run.path} is a stripped run, without checkpoints, so no part of it can be executed "
            "alone: leave --sample out and execute all of it"
        )
    total = sum(not position.batch for position, _ in list_checkpoints(run.path))
    if total < 2:
        raise RunError(
            f"{run.path} has no checkpoint before its end, so no part of it can be executed alone: "
            "leave --sample out and execute all of it"
        )
    if not 1 <= count < total:
        raise RunError(
            f"{run.path} has {total} segments between checkpoints: expected a sample of 1 to "
            f"{total - 1} of them, got {count}; to execute all, leave --sample out"
        )
    drawn = draw_token() if token is None else check_token(token)
    chosen = choose_segments(drawn, run.claims["digest"], total, count)
    return Sample(drawn, chosen, total)


def execute_sample(
    run: ValidatedRun,
    preparer: Preparer,
    sample: Sample,
    *,
    observers: Sequence[Observer] = (),
    device: str | None = None,
) -> Verdict:
    """Execute a sample of a run's segments, one after another, and return the verdict.

    Args:
        run: consistent with its receipt.
        preparer: turns its configuration into a training problem, once for all segments.
        sample: the segments.
        observers: further observers of the loop.
        device: as in `execute_again`.
    """
    config = choose_device(run, device)
    if config is None:
        return Verdict("cannot judge", "the run was made on a CUDA device, and there is none here")
    began = time.perf_counter()
    try:
        # [Step 1] The data and the start: configuration, first weights, line 0 of the trail.
        prepared = prepare_again(run, config, preparer)
        compare_start(run, prepared)
        # [Step 2] The segments, in ascending order: the first one begins with the prepared state.
        for number in sample.chosen:
            train_again(run, prepared, find_segment(run, number), observers)
        # [Step 3] The final scores; the last segment has computed them already.
        if sample.chosen[-1] != sample.total:
            compare_final(run, prepared)
    except DivergenceError as error:
        verdict = explain_divergence(run, error)
        verdict = replace(verdict, details=(*verdict.details, sample.describe()[0]))
    else:
        sentence = (
            "these segments, the start, the data and the final scores are identical in every bit; "
            "the other segments were not executed"
        )
        details = (*sample.describe(), *list_notes(run, prepared))
        verdict = Verdict(PART, sentence, details, remarks=list_remarks(run, prepared))
    seconds = round(time.perf_counter() - began, 1)
    return replace(verdict, checked=sample.checked, seconds=seconds)


def compare_start(run: ValidatedRun, prepared: Prepared) -> None:
    """Compare every tensor before the first step with line 0 of the trail."""
    problem = prepared.problem
    state = fetch_state(collect_state(problem.model, problem.optimizer, problem.order))
    here, recorded = digest_each(state), run.trail[0]["state"]
    names = [name for name in sorted({*here, *recorded}) if here.get(name) != recorded.get(name)]
    if names:
        raise diverge(0, names)


def compare_final(run: ValidatedRun, prepared: Prepared) -> None:
    """Compute predictions and scores of the selected weights again and compare them."""
    results = score_again(run, prepared)
    changed = compare_values({key: run.claims[key] for key in results}, results)
    if changed:
        raise DivergenceError(map(str, changed))


def score_again(run: ValidatedRun, prepared: Prepared) -> dict[str, Any]:
    """Return what the receipt says of the selected weights, computed from them again.

    The weights are those of the last checkpoint. It is read after the validation, which is safe:
    their digest is among the results, and validation compared the receipt's with the trail.
    """
    path = list_checkpoints(run.path)[-1][1]
    best = read_checkpoint(path, run.config.digest).start.best
    model = {name: value.shape for name, value in name_tensors(prepared.problem.model).items()}
    if best is None or {name: value.shape for name, value in best.weights.items()} != model:
        raise DivergenceError([f"the selected weights of {path.name} do not fit the run's model"])
    return score_selected(prepared, best, None)
