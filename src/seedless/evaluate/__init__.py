"""Scores of predictions: pure functions of arrays, on the CPU in float64.

`seedless.evaluate(run)` scores a finished run: see `help(seedless.analysis.evaluate)`.
"""

from typing import TYPE_CHECKING

from seedless.core.callable_package import make_callable
from seedless.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from seedless.evaluate.attention import explain_attention
    from seedless.evaluate.auc import area_under_curve, macro_auc
    from seedless.evaluate.bootstrap import bootstrap_areas
    from seedless.evaluate.calibration import bin_reliability, calibration_error
    from seedless.evaluate.churn import compare_decisions
    from seedless.evaluate.decisions import choose_thresholds
    from seedless.evaluate.gradcam import explain_classes
    from seedless.evaluate.intervals import compare_areas, delong_interval, wilson_interval
    from seedless.evaluate.predictions import Predictions, SplitPredictions, read_predictions
    from seedless.evaluate.robustness import measure_robustness, perturb
    from seedless.evaluate.roc_curve import draw_roc
    from seedless.evaluate.scores import effective_rank, score_predictions
    from seedless.evaluate.subgroup import score_subgroups

__all__ = [
    "Predictions",
    "SplitPredictions",
    "area_under_curve",
    "bin_reliability",
    "bootstrap_areas",
    "calibration_error",
    "choose_thresholds",
    "compare_areas",
    "compare_decisions",
    "delong_interval",
    "draw_roc",
    "effective_rank",
    "explain_attention",
    "explain_classes",
    "macro_auc",
    "measure_robustness",
    "perturb",
    "read_predictions",
    "score_predictions",
    "score_subgroups",
    "wilson_interval",
]

__getattr__, __dir__ = lazy_names(__name__)
make_callable(__name__, "seedless.analysis.evaluation", "evaluate")
