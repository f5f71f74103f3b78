"""What a verdict says beside its outcome: on which machine, with which code, on whose data."""

from collections.abc import Mapping
from typing import Any

from seedless.audit.function_checks import lacks_metrics
from seedless.audit.trail_comparison import DivergenceError, has_same_safetensors
from seedless.audit.verdict import Verdict
from seedless.core.config import Config
from seedless.core.mismatch import Mismatch, compare_values
from seedless.data.splits import describe_repeated
from seedless.numerics.environment import capture_environment
from seedless.numerics.environment_difference import compare_environments
from seedless.proof.receipt import list_unknown
from seedless.proof.source_digest import describe_source
from seedless.runs.prepare import Prepared
from seedless.runs.validation import ValidatedRun
from seedless.train.process_group import describe_processes


def list_remarks(run: ValidatedRun, prepared: Prepared) -> tuple[str, ...]:
    """Return whose data the run was executed on, and how many records are in two splits."""
    repeated = describe_repeated(prepared.facts["data"]["repeated"], run.config.data)
    metrics = ""
    if lacks_metrics(run, prepared):
        metrics = "the values of its own metrics were not compared, because metrics= was not given"
    return tuple(remark for remark in (prepared.data_source, repeated, metrics) if remark)


def list_notes(run: ValidatedRun, prepared: Prepared) -> list[str]:
    """Return what a verdict of identity should be read with."""
    environment, notes = capture_environment(), []
    if run.config.is_portable:
        made = name_processor(run.claims["environment"], run.config)
        here = name_processor(environment, prepared.config)
        notes.append(f"made {made}{name_processes(run.claims.get('processes', {}))}")
        notes.append(f"executed {here}{name_processes(describe_processes(prepared.problem.group))}")
    notes += [f"identical although {item}" for item in list_decisive(run, environment)]
    if run.left_out and not has_same_safetensors(run.claims):
        notes.append(
            "the digests of the files left out, but for the trail, were not compared: another "
            "version of safetensors may write the same tensors as other bytes"
        )
    if unknown := list_unknown({"predicate": run.claims}):
        notes.append(f"this version does not know, and did not check, {', '.join(unknown)}")
    return notes


def explain_divergence(run: ValidatedRun, error: DivergenceError) -> Verdict:
    """Return the verdict on a difference: it is the run's, unless this machine can explain it."""
    if decisive := list_decisive(run, capture_environment()):
        return Verdict(
            "cannot judge",
            "executed again, it differs; but this machine is not like the one it was made on",
            (*error.details, *map(str, decisive)),
            error.difference,
        )
    details = error.details
    if not run.claims["promise"]["same_bits"]:
        moved = ", ".join(run.claims["promise"]["generators_moved"])
        details = (*details, f"the run used {moved}; its receipt promises no repetition")
    return Verdict(
        "differs", "executed again, the run differs from its receipt", details, error.difference
    )


def list_decisive(run: ValidatedRun, environment: Mapping[str, Any]) -> list[Mismatch]:
    """Return what differs between the run's machine and code and these, and can change bits."""
    recorded = run.claims["environment"]
    decisive, _ = compare_environments(recorded, environment, run.config.execution)
    sources = {"source": run.claims["source"]}, {"source": describe_source()}
    return decisive + compare_values(*sources)


def name_processes(processes: Mapping[str, Any]) -> str:
    """Return how many processes a receipt names, in words; "" for one."""
    count = processes.get("count", 1)
    return "" if count == 1 else f", in {count} processes"


def name_processor(environment: Mapping[str, Any], config: Config) -> str:
    """Return "on " and the name of the GPU, or of the CPU with its number of threads."""
    if config.execution.device == "cuda":
        return f"on {environment['devices'][0]['name']}"
    count = config.execution.threads
    return f"on {environment['cpu']['model']}, {count} thread{'s' * (count != 1)}"
