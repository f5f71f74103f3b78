"""The page of `seedless doctor`: two runs of a script side by side, and why they differ.

One HTML file that loads nothing from elsewhere and runs no script; equal inputs give equal bytes.
Everything in it comes from records, and is shown as text. The tables are computed in
recorded_steps.py and recorded_sources.py.
"""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seedless.core.bounded_reading import shorten
from seedless.report.page import Headline
from seedless.report.recorded_sources import (
    compare_draws,
    compare_files,
    compare_seeds,
    compare_settings,
    list_generators,
    list_sources,
)
from seedless.report.recorded_steps import (
    VALUE_NAMES,
    DoctorRun,
    Record,
    StepTable,
    compare_ops,
    find_main,
    name_process,
    tabulate_steps,
    take_kind,
)
from seedless.report.render import render
from seedless.report.source_excerpt import read_excerpt

CONFIDENCE = {
    "certain": "certain: an experiment or the record itself shows it",
    "likely": "likely: the record fits, no experiment confirmed it",
    "possible": "possible: other causes would fit the record too",
}
_MAX_SENTENCES = 40


def render_doctor_page(
    diagnosis: Mapping[str, Any],
    runs: tuple[DoctorRun, DoctorRun],
    *,
    command: Sequence[str],
    folder: Path,
    experiments: Sequence[tuple[str, str]] = (),
    ops: Sequence[tuple[Record | None, Record | None]] = (),
    ops_step: int | None = None,
) -> str:
    """Return the page of two recorded runs and their diagnosis as text.

    Args:
        diagnosis: what ``seedless doctor --json`` prints: ``identical`` (None: could not tell),
            ``step``, ``what``, ``line``, ``cause``, ``title``, ``remedy``, ``confidence``,
            ``evidence``, ``op``, ``module``, ``ranks``, ``intermittent``, ``reason``. What is
            missing is left out.
        runs: the two runs.
        command: the command that both executed.
        folder: where the script ran; source lines are read there.
        experiments: what was tried to confirm the cause, and what came of it.
        ops: the operations of step ``ops_step``, recorded in a second pair of runs and paired; None
            for one that a run does not perform.
        ops_step: the step of ``ops``.

    Example:
        ``write_page(out, render_doctor_page(found, (a, b), command=["python", "train.py"],
        folder=Path.cwd()))``
    """
    step = _take_number(diagnosis, "step")
    rank = next(iter(_list_ranks(diagnosis)), None)  # of the ranks that differ, the first is shown
    line = str(diagnosis.get("line") or "")
    steps = tabulate_steps(runs, rank, step)
    differ, equal = compare_settings(runs, rank, step)
    return render(
        "doctor.html",
        title="Why do the runs differ?",
        headline=choose_headline(diagnosis, steps),
        command=shorten(shlex.join(command), 2_000),
        labels=[run.label for run in runs],
        ends=[_describe_end(run, rank) for run in runs],
        identical=diagnosis.get("identical"),
        facts=_list_facts(diagnosis),
        excerpt=read_excerpt(line, folder, list_sources(runs)),
        evidence=_list_sentences(diagnosis.get("evidence")),
        experiments=[(shorten(str(a), 400), shorten(str(b), 400)) for a, b in experiments],
        steps=steps,
        is_resumed=runs[1].steps_before > 0,
        process=name_process(find_main(runs[0], rank)),
        ops=compare_ops(ops) if ops else None,
        ops_step=ops_step,
        generators=list_generators(runs, rank),
        seeds=compare_seeds(runs),
        draws=compare_draws(runs, step),
        settings_differ=differ,
        settings_equal=equal,
        files=compare_files(runs),
    )


def choose_headline(diagnosis: Mapping[str, Any], steps: StepTable) -> Headline:
    """Return the headline: identical, what differs first and in which step, or undecided.

    It never claims more than the steps on the page show.
    """
    if diagnosis.get("identical") is True and steps.changed:
        return Headline("bad", "!", "Called identical, but the values recorded differ")
    if diagnosis.get("identical") is True and steps.differing:
        sentence = "Every loss, gradient and weight agrees; what was evaluated differs"
        return Headline("good", "=", sentence)
    if diagnosis.get("identical") is True and steps.total:
        return Headline("good", "=", "The two runs are identical in every value recorded")
    if diagnosis.get("identical") is not False:
        return Headline("unsure", "?", "It could not be told whether the two runs differ")
    what, step = _name_value(diagnosis.get("what")), _take_number(diagnosis, "step")
    where = f"at step {step}: " if step else "in "
    return Headline("bad", "≠", f"The runs differ first {where}{what}")


def _name_value(what: Any) -> str:
    """Return what differs in the words of the page."""
    return VALUE_NAMES.get(str(what), shorten(str(what or "something not recorded"), 120))


def _list_facts(diagnosis: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return the answer as (name, value, kind): why, where, what to change, how sure."""
    code = diagnosis.get("cause")
    title = diagnosis.get("title") or code
    sure = str(diagnosis.get("confidence") or "")
    ranks = _list_ranks(diagnosis)
    facts = [
        ("Why", _capitalize(title or diagnosis.get("reason")), "text"),
        ("Line", diagnosis.get("line"), "code"),
        ("Change", _capitalize(diagnosis.get("remedy")), "text"),
        ("Operation", diagnosis.get("op"), "code"),
        ("Module", diagnosis.get("module"), "code"),
        (
            "Ranks",
            ", ".join(map(str, ranks)) if isinstance(ranks, list | tuple) and any(ranks) else "",
            "text",
        ),
        ("When", "not in every pair of runs" if diagnosis.get("intermittent") else "", "text"),
        ("How sure", CONFIDENCE.get(sure, sure), "text"),
        ("Code", code, "code"),
    ]
    return [(name, shorten(str(value), 1_000), kind) for name, value, kind in facts if value]


def _capitalize(sentence: Any) -> str:
    """Return a sentence that begins with a capital, unless it begins with code."""
    text = str(sentence or "")
    is_word = text.split(" ", 1)[0].isalpha()
    return text[:1].upper() + text[1:] if is_word else text


def _list_sentences(evidence: Any) -> list[str]:
    items = evidence if isinstance(evidence, list | tuple) else []
    return [shorten(_capitalize(item), 1_000) for item in items[:_MAX_SENTENCES]]


def _take_number(diagnosis: Mapping[str, Any], name: str) -> int | None:
    value = diagnosis.get(name)
    return value if isinstance(value, int) else None


def _list_ranks(diagnosis: Mapping[str, Any]) -> list[int]:
    ranks = diagnosis.get("ranks")
    items = ranks if isinstance(ranks, list | tuple) else ()
    return [rank for rank in items if isinstance(rank, int)]


def _describe_end(run: DoctorRun, rank: int | None) -> str:
    """Return how many steps a run made and how it ended."""
    ends = take_kind(find_main(run, rank), "end")
    if not ends:
        return "its record has no end: the process was killed"
    end = ends[-1]
    reason = {
        "exit": "then the script ended",
        "end_after": "then it was ended as asked",
        "exception": f"then it failed: {shorten(str(end.get('error')), 300)}",
    }.get(str(end.get("reason")), "")
    steps = end.get("steps")
    return ", ".join(part for part in (f"{steps} step{'s' * (steps != 1)}", reason) if part)
