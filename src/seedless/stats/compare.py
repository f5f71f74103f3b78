"""All statistics of two samples in one record: means, t tests, Cohen's d, power, equivalence."""

from dataclasses import dataclass

from seedless.core.errors import StatsError
from seedless.stats.answer import Answer, format_number
from seedless.stats.effect import Effect, cohens_d
from seedless.stats.equivalence import Equivalence, paired_tost, tost
from seedless.stats.power import Power, RunsNeeded, find_power, find_runs_needed
from seedless.stats.samples import Values, find_moments, read_sample
from seedless.stats.t_tests import Difference, paired_t_test, welch_t_test


@dataclass(frozen=True)
class Arm:
    """The size, mean, SD (ddof 1), minimum, maximum and range of one sample."""

    name: str
    n: int
    mean: float
    sd: float
    low: float
    high: float
    range: float


@dataclass(frozen=True, kw_only=True)
class Row(Answer):
    """A comparison of two arms, first minus second.

    What cannot be computed is None, and ``undefined`` says why. ``power`` is that of a new
    experiment of this size if the true effect were the observed d; it adds nothing to p.
    """

    a: Arm
    b: Arm
    welch: Difference | None
    effect: Effect | None
    paired: Difference | None
    equivalence: Equivalence | None
    paired_equivalence: Equivalence | None
    power: Power | None
    runs_needed: RunsNeeded | None
    undefined: tuple[str, ...]


def describe_arm(name: str, values: Values) -> Arm:
    """Return the description of one sample."""
    array = read_sample(values, name)
    moments = find_moments(array)
    low, high = float(array.min()), float(array.max())
    return Arm(name, moments.n, moments.mean, moments.sd, low, high, high - low)


def compare_samples(
    a: Values,
    b: Values,
    *,
    names: tuple[str, str] = ("A", "B"),
    pairs: tuple[Values, Values] | None = None,
    margin: float | None = None,
    degrees: str = "welch",
    level: float = 0.95,
) -> Row:
    """Return all statistics of two samples of scores.

    Args:
        a: the first arm's scores.
        b: the second arm's.
        names: names of the arms.
        pairs: the scores of runs that were matched one to one, if any.
        margin: test equivalence within this difference.
        degrees: of freedom for that test, "welch" or "published".
        level: confidence level of the intervals.

    >>> print(compare_samples([0.95, 0.96, 0.97], [0.94, 0.95, 0.93]).sentence)
    A 0.96 (n = 3), B 0.94 (n = 3): the means are not shown to differ, p = 0.07048, d = 2.
    """
    first, second = read_sample(a, names[0]), read_sample(b, names[1])
    one, two = describe_arm(names[0], first), describe_arm(names[1], second)
    undefined = []
    test = effect = equal = matched = equal_pairs = power = needed = None
    try:
        test = welch_t_test(first, second, level)
        effect = cohens_d(first, second, level)
        power = find_power(effect.d, one.n, two.n)
        needed = find_runs_needed(effect.d)
    except StatsError as error:
        if one.sd + two.sd > 0:
            raise
        undefined.append(str(error))
    if margin is not None and test is not None:
        equal = tost(first, second, margin, degrees=degrees)
    if pairs is not None:
        try:
            matched = paired_t_test(*pairs, level)
            if margin is not None:
                equal_pairs = paired_tost(*pairs, margin)
        except StatsError as error:
            undefined.append(str(error))
    return Row(
        a=one,
        b=two,
        welch=test,
        effect=effect,
        paired=matched,
        equivalence=equal,
        paired_equivalence=equal_pairs,
        power=power,
        runs_needed=needed,
        undefined=tuple(undefined),
        n=(one.n, two.n),
        assumption="independent runs that differ in the factor compared and in nothing else",
        sentence=_write_sentence(one, two, test, effect, equal),
    )


def _write_sentence(
    one: Arm, two: Arm, test: Difference | None, effect: Effect | None, equal: Equivalence | None
) -> str:
    means = ", ".join(f"{arm.name} {format_number(arm.mean)} (n = {arm.n})" for arm in (one, two))
    if test is None or effect is None:
        return f"{means}: neither arm varies, so nothing can be tested."
    answer = "differ" if test.p < 1 - test.level else "are not shown to differ"
    text = (
        f"{means}: the means {answer}, p = {format_number(test.p)}, d = {format_number(effect.d)}"
    )
    if equal is not None:
        text += f"; {'' if equal.equivalent else 'not shown to be '}equivalent within "
        text += f"{format_number(equal.margin)}, p = {format_number(equal.p)}"
    return text + "."
