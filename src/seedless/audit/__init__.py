"""Check runs: validate a folder, execute a run again, find where two runs begin to differ."""

from typing import TYPE_CHECKING

from seedless.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from seedless.audit.folder_validation import validate
    from seedless.audit.reexecution import Verdict
    from seedless.audit.run_diff import Difference, diff
    from seedless.audit.verification import verify

__all__ = ["Difference", "Verdict", "diff", "validate", "verify"]

__getattr__, __dir__ = lazy_names(__name__)
