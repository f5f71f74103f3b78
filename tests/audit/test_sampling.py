"""The choice of a sample: repeatable, equally likely, and missed as often as the formula says."""

import itertools
import math

import pytest

from seedless.audit.sampling import (
    check_token,
    choose_segments,
    describe_chances,
    draw_below,
    draw_token,
    miss_probability,
)
from seedless.core.errors import ConfigError

RECEIPT = "sha256:" + 64 * "5"
TOKENS = [f"{number:032x}" for number in range(20_000)]


def test_a_token_repeats_its_choice_and_another_receipt_or_token_changes_it():
    token = draw_token()
    chosen = choose_segments(token, RECEIPT, 40, 12)
    assert chosen == choose_segments(token.upper().lower(), RECEIPT, 40, 12)
    assert chosen == tuple(sorted({*chosen}))
    assert len(chosen) == 12
    assert {*chosen} <= {*range(1, 41)}
    assert chosen != choose_segments(token, RECEIPT.replace("5", "6"), 40, 12)
    assert chosen != choose_segments(draw_token(), RECEIPT, 40, 12)


def test_tokens_are_drawn_anew():
    assert len({draw_token() for _ in range(50)}) == 50


@pytest.mark.parametrize(("segments", "count"), [(3, 1), (5, 2), (6, 3)])
def test_every_choice_is_equally_likely_over_the_tokens(segments, count):
    """A chi-squared test of all sets; the tokens are fixed, so the result is too."""
    sets = dict.fromkeys(itertools.combinations(range(1, segments + 1), count), 0)
    for token in TOKENS:
        sets[choose_segments(token, RECEIPT, segments, count)] += 1
    expected = len(TOKENS) / len(sets)
    squared = sum((found - expected) ** 2 / expected for found in sets.values())
    freedom = len(sets) - 1
    assert squared < freedom + 4 * math.sqrt(2 * freedom)  # four standard deviations


@pytest.mark.parametrize("forged", [(2,), (1, 5), (1, 2, 4)])
def test_forged_segments_are_missed_as_often_as_the_formula_says(forged):
    segments, count = 6, 2
    missed = sum(not {*forged} & {*choose_segments(t, RECEIPT, segments, count)} for t in TOKENS)
    chance = miss_probability(segments, count, len(forged))
    spread = math.sqrt(chance * (1 - chance) / len(TOKENS))
    assert abs(missed / len(TOKENS) - chance) < 4 * spread


def test_the_formula_counts_the_sets_without_a_forged_segment():
    for segments, count in [(5, 1), (5, 3), (8, 3)]:
        sets = list(itertools.combinations(range(segments), count))
        for forged in range(1, segments + 1):
            missing = sum(min(chosen) >= forged for chosen in sets)
            assert miss_probability(segments, count, forged) == missing / len(sets)


def test_words_that_would_favour_small_numbers_are_skipped():
    top = (1 << 64) - 1  # 2^64 is 1 more than a multiple of 3 and of 5
    assert draw_below(iter([top, 7]), 3) == 1
    assert draw_below(iter([top, top, 9]), 5) == 4
    assert draw_below(iter([top - 1]), 3) == (top - 1) % 3  # the last word that is used
    assert draw_below(iter([top]), 4) == 3  # 4 divides 2^64: nothing is skipped


@pytest.mark.parametrize(
    "token", ["", "0x12", "g" * 32, "0" * 31, "0" * 33, " " + "0" * 31, "e" * 31 + "\u00e9"]
)
def test_what_is_no_token_is_refused(token):
    with pytest.raises(ConfigError, match="expected --sample-token as 32 hex digits"):
        check_token(token)


def test_a_token_may_be_in_capitals():
    assert check_token("AB" * 16) == "ab" * 16


def test_the_chances_are_said_from_one_forged_segment_on():
    first, second = describe_chances(8, 3)
    assert first.endswith(": 1 forged: 0.625, 2 forged: 0.357, 4 forged: 0.0714")
    assert second.startswith("one false segment is enough to forge a run")
    assert describe_chances(2, 1)[0].endswith(": 1 forged: 0.5")
