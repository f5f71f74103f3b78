"""Compare the functions that a user gives for a run with those it was made with."""

from collections.abc import Mapping
from typing import Any

from seedless.core.errors import ConfigError
from seedless.runs.content_checks import SCORED_SPLITS
from seedless.runs.prepare import Prepared
from seedless.runs.validation import ValidatedRun


def check_functions(run: ValidatedRun, prepared: Prepared) -> None:
    """Refuse other functions than the run was made with; its metrics may be left out."""
    recorded = {item["role"]: item for item in run.claims.get("callables", [])}
    given = {item["role"]: item for item in prepared.facts.get("callables", [])}
    for role in sorted({*recorded, *given}):
        if role == "metrics" and role not in given:
            continue
        if role not in given or role not in recorded:
            found = "was made with" if role in recorded else "was made without"
            raise ConfigError(f"{run.path} {found} {role}=: pass the arguments that fit() had")
        if recorded[role]["digest"] != given[role]["digest"]:
            raise ConfigError(
                f"{run.path} was made with {role}={recorded[role]['name']}, digest "
                f"{recorded[role]['digest'][:23]}...; the {role}={given[role]['name']} given now "
                f"has {given[role]['digest'][:23]}... Pass the same function: its source text, "
                "defaults, closure values and the globals that it uses are compared"
            )


def lacks_metrics(run: ValidatedRun, prepared: Prepared) -> bool:
    """Whether a run has user-defined metrics that were not given now."""
    roles = {item["role"] for item in run.claims.get("callables", [])}
    return "metrics" in roles and prepared.metrics is None


def leave_out_metrics(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run's metrics without the values of the user's own functions."""
    return {
        name: {key: scores[key] for key in ("n", "loss")} if name in SCORED_SPLITS else scores
        for name, scores in metrics.items()
    }
