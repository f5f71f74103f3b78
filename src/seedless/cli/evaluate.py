"""`seedless evaluate RUN`: the scores of a finished run, or of its weights on other data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from seedless.cli.options import AsJson, RunFolder, Settings, print_json, print_line

if TYPE_CHECKING:
    from seedless.analysis.evaluation import Evaluation
    from seedless.evaluate.subgroup import Rate, Subgroups


def evaluate(
    run: RunFolder,
    data: Annotated[
        str | None, typer.Option(help="Another dataset; default: the run's own predictions.")
    ] = None,
    split: Annotated[
        str, typer.Option(help="test, validation or train; for other data also all.")
    ] = "test",
    by: Annotated[str | None, typer.Option(help="Score groups separately: sex or age.")] = None,
    resamples: Annotated[int, typer.Option(help="Resamples for the macro AUC's interval.")] = 400,
    as_json: AsJson = False,
    settings: Settings = None,
) -> None:
    """Print the scores of a run by class, with intervals.

    With --data the weights of the run predict on other records, with the
    normalization and the thresholds of the run.
    """
    from seedless.analysis.evaluation import evaluate as evaluate_run

    result = evaluate_run(
        run, data=data, settings=settings or [], split=split, by=by, resamples=resamples
    )
    if as_json:
        print_json(result.as_dict())
        return
    _print(result)
    if result.subgroups is not None:
        _print_groups(result.subgroups)


def _print(result: Evaluation) -> None:
    scores = result.scores
    print_line(f"{result.run} on {result.data}, {result.split}: n = {scores['n']}")
    wide = max(len("class"), *(len(name) for name in scores["classes"]))
    heads = f"{'sens.':>6} {'spec.':>6} {'F1':>6} {'ECE':>6} {'thresh.':>7}"
    print_line(f"{'class':<{wide}} {'pos.':>6} {'AUC':>6} {'95 % interval':<14} {heads}")
    for name, row in scores["classes"].items():
        rates = " ".join(
            f"{_show(row[key]):>6}" for key in ("sensitivity", "specificity", "f1", "ece")
        )
        print_line(
            f"{name:<{wide}} {row['positives']:>6} {_show(row['auc']):>6} "
            f"{_span(row['auc_interval']):<14} {rates} {_show(row['threshold']):>7}"
        )
    macro = f"{_show(scores['macro_auc'])} {_span(scores['macro_auc_interval'])}"
    print_line(f"{'macro AUC':<22} {macro}")
    print_line(f"{'calibration error':<22} {_show(scores['ece'])}")
    for key, name in (
        ("exact_match", "exact match"),
        ("hamming", "Hamming loss"),
        ("accuracy", "accuracy"),
    ):
        if key in scores:
            print_line(f"{name:<22} {_show(scores[key])}")
    rank = scores["effective_rank"]
    print_line(f"{'effective rank':<22} {'no features' if rank is None else f'{rank:.1f}'}")
    print_line(f"{'thresholds chosen on':<22} {scores['thresholds_from'] or 'nothing: 0.5'}")
    if result.trained:
        print_line(
            f"TRAINED ON             {result.trained} of these {scores['n']} records: "
            "the scores say little of new ones"
        )
    for side, names in result.left_out.items():
        if names:
            print_line(f"left out, only in the {side}: {', '.join(names)}")


def _print_groups(result: Subgroups) -> None:
    print_line()
    print_line(f"by {result.attribute}, against {result.reference} ({result.unknown} unknown)")
    for name, group in result.groups.items():
        print_line(f"{name}: n = {group.n}, macro AUC {_rate(group.macro_auc)}")
        if group.macro_auc_difference.value is not None:
            print_line(f"  difference {_rate(group.macro_auc_difference)}")
        for label, row in group.classes.items():
            difference = row.auc_difference
            against = "" if difference.value is None else f", difference {_rate(difference)}"
            print_line(f"  {label}: {row.positives} positives, AUC {_rate(row.auc)}{against}")


def _rate(rate: Rate) -> str:
    return f"{_show(rate.value)} {_span(rate.interval and rate.interval.as_list())}".rstrip()


def _show(value: float | None) -> str:
    return "undef." if value is None else f"{value:.3f}"


def _span(interval: Any) -> str:
    return "" if interval is None else f"{interval[0]:.3f}-{interval[1]:.3f}"
