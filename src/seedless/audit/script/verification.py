"""Judge the run of a script: what its folder says, and, if asked for, what executing it gives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from seedless.audit.script.reexecution import (
    ExecutionRequest,
    execute_script,
    show_on_standard_error,
)
from seedless.audit.verdict import NOT_EXECUTED, Verdict
from seedless.core.errors import ConfigError
from seedless.core.files import AnyPath
from seedless.runs.script_run import ScriptRun


def check_execution_options(
    execute: bool, validate_only: bool, sources: AnyPath | None, python: str | None
) -> None:
    """Refuse options that contradict each other, before anything is read."""
    if execute and validate_only:
        raise ConfigError("--execute and --validate-only contradict each other: give one of them")
    if not execute and (sources is not None or python is not None):
        raise ConfigError("--sources and --python are about --execute: give that, too")


def check_script_options(run: AnyPath, **options: Any) -> None:
    """Refuse options of `verify` that are about models and data of this package."""
    given = sorted(name for name, value in options.items() if value and name != "progress")
    if given:
        raise ConfigError(
            f"{run} is the run of a script, and {', '.join(given)} of `verify` is about runs of "
            "this package's own: leave it out"
        )


def judge_script(
    run: AnyPath,
    validated: ScriptRun,
    *,
    validate_only: bool = False,
    request: ExecutionRequest | None = None,
) -> Verdict:
    """Return the verdict on the run of a script that agrees with its receipt.

    Args:
        run: the folder or bundle, as the user named it.
        validated: consistent with its receipt.
        validate_only: whether the user asked to execute nothing.
        request: how to execute it; None executes nothing.
    """
    if request is not None:
        verdict = execute_script(validated, request, show_on_standard_error)
        return replace(verdict, details=(*verdict.details, *describe_limits(validated)))
    if validate_only:
        sentence = f"{run} agrees with its receipt; nothing was executed"
        return Verdict("consistent", sentence, tuple(describe_limits(validated)))
    sentence = (
        f"{run} agrees with its receipt, and nothing was executed: it is the run of a script. "
        "--execute runs its command with your rights"
    )
    return Verdict(NOT_EXECUTED, sentence, tuple(describe_limits(validated)))


def describe_limits(run: ScriptRun) -> list[str]:
    """Return what the recorder of a script could not see, a sentence each."""
    limits, script = [], run.script
    if script["unobserved"]:
        names = ", ".join(script["unobserved"])
        limits.append(f"not observed: files that these packages opened themselves: {names}")
    if script["changed"]:
        names = ", ".join(script["changed"])
        limits.append(f"not known: what these files held before it changed them: {names}")
    return limits
