"""Our training step and plain PyTorch, measured in turns; and runs at the same time."""

from typing import TYPE_CHECKING

from seedless.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from seedless.bench.comparison import compare, make_config
    from seedless.bench.concurrent_runs import make_job_config, run_concurrently

__all__ = ["compare", "make_config", "make_job_config", "run_concurrently"]
__getattr__, __dir__ = lazy_names(__name__)
