"""Pages, plots and model cards of finished runs.

`seedless.report(run)` writes the page of a run: see `help(seedless.analysis.report)`.
"""

from typing import TYPE_CHECKING

from seedless.core.callable_package import make_callable
from seedless.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from seedless.report.card import make_card
    from seedless.report.ecg_paper import draw_ecg
    from seedless.report.ml_bom import make_ml_bom
    from seedless.report.page import render_page, write_page
    from seedless.report.record_picture import draw_image, save_png
    from seedless.report.run_view import RunView, make_view

__all__ = [
    "RunView",
    "draw_ecg",
    "draw_image",
    "make_card",
    "make_ml_bom",
    "make_view",
    "render_page",
    "save_png",
    "write_page",
]

__getattr__, __dir__ = lazy_names(__name__)
make_callable(__name__, "seedless.analysis.run_report", "report")
