"""Published experiments as grids of runs, with tables and figures.

plan = open_study("basis").plan(StudyOptions(scale="smoke"))
print(plan.grid)
run_study(plan, "studies")
"""

from typing import TYPE_CHECKING

from seedless.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from seedless.studies.catalog import list_studies, open_study
    from seedless.studies.engine.options import StudyOptions
    from seedless.studies.engine.runner import run_study

__all__ = ["StudyOptions", "list_studies", "open_study", "run_study"]
__getattr__, __dir__ = lazy_names(__name__)
