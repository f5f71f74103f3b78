"""Check runs: validate a folder, execute a run again, find where two runs begin to differ."""

from typing import TYPE_CHECKING

from seedless.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from seedless.audit.difference import Difference
    from seedless.audit.run_diff import diff
    from seedless.audit.verdict import Verdict
    from seedless.audit.verification import verify
    from seedless.runs.validation import validate

__all__ = ["Difference", "Verdict", "diff", "validate", "verify"]

__getattr__, __dir__ = lazy_names(__name__)
