"""Use finished runs: evaluate, compare, explain, test against noise, export, report."""

from typing import TYPE_CHECKING

from seedless.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from seedless.analysis.attribute import attribute_run, write_maps
    from seedless.analysis.comparison import compare
    from seedless.analysis.evaluation import evaluate
    from seedless.analysis.robustness import measure_run_robustness
    from seedless.analysis.run_churn import churn, open_predictions
    from seedless.analysis.run_export import export
    from seedless.analysis.run_report import report

__all__ = [
    "attribute_run",
    "churn",
    "compare",
    "evaluate",
    "export",
    "measure_run_robustness",
    "open_predictions",
    "report",
    "write_maps",
]

__getattr__, __dir__ = lazy_names(__name__)
