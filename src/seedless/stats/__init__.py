"""Statistics of scores: one question, one function, one record with n, assumptions and a sentence.

It needs numpy and scipy alone.
"""

from typing import TYPE_CHECKING

from seedless.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from seedless.stats.compare import compare_samples
    from seedless.stats.effect import cohens_d
    from seedless.stats.equivalence import paired_tost, tost
    from seedless.stats.group_tests import friedman, levene
    from seedless.stats.holm_correction import holm
    from seedless.stats.permutation import flip_signs
    from seedless.stats.power import find_power, find_runs_needed
    from seedless.stats.samples import split_converged
    from seedless.stats.spread import find_range
    from seedless.stats.t_tests import paired_t_test, welch_t_test
    from seedless.stats.variance_components import decompose_crossed, separate_sources

__all__ = [
    "cohens_d",
    "compare_samples",
    "decompose_crossed",
    "find_power",
    "find_range",
    "find_runs_needed",
    "flip_signs",
    "friedman",
    "holm",
    "levene",
    "paired_t_test",
    "paired_tost",
    "separate_sources",
    "split_converged",
    "tost",
    "welch_t_test",
]

__getattr__, __dir__ = lazy_names(__name__)
