"""Train a network twice and get the same bits, without a seed, and hand anyone the proof.

Importing this package does no work: each name below is loaded when it is first used.
"""

from typing import TYPE_CHECKING

from seedless.core.lazy_names import lazy_names
from seedless.core.version import __version__

if TYPE_CHECKING:
    from seedless.analysis.comparison import compare
    from seedless.analysis.evaluation import evaluate
    from seedless.analysis.run_churn import churn
    from seedless.analysis.run_export import export
    from seedless.analysis.run_report import report
    from seedless.audit.run_diff import diff
    from seedless.audit.verification import verify
    from seedless.core.digests import digest, md5, sample_keys
    from seedless.core.errors import SeedlessError
    from seedless.core.marks import mark
    from seedless.data.augment_generators import augment
    from seedless.init import basis, initialize
    from seedless.models import build, convert
    from seedless.numerics.active_keys import dropout_keys
    from seedless.numerics.determinism import make_deterministic
    from seedless.numerics.dropout import Dropout
    from seedless.ordering import Sampler
    from seedless.ordering import make_order as order
    from seedless.portable.block import portable
    from seedless.proof.recorded_loop import record
    from seedless.runs.bundled_run import bundle
    from seedless.runs.fit_model import fit
    from seedless.runs.opened_run import load

__all__ = [
    "Dropout",
    "Sampler",
    "SeedlessError",
    "__version__",
    "augment",
    "basis",
    "build",
    "bundle",
    "churn",
    "compare",
    "convert",
    "diff",
    "digest",
    "dropout_keys",
    "evaluate",
    "export",
    "fit",
    "initialize",
    "load",
    "make_deterministic",
    "mark",
    "md5",
    "order",
    "portable",
    "record",
    "report",
    "sample_keys",
    "verify",
]

__getattr__, __dir__ = lazy_names(__name__)
