"""No attack executes code, writes where it may not, takes too much, or passes."""

import pytest

from tests.attack.attack import PASSED
from tests.attack.catalog import PARTS, list_all, list_part
from tests.attack.runner import make_attack


@pytest.mark.parametrize(("family", "part"), PARTS)
def test_attacks_are_found(family, part, victims, server, tmp_path):
    failed = []
    for number, attack in enumerate(list_part(victims, family, part)):
        outcome = make_attack(attack, victims, server, tmp_path / str(number))
        if outcome.problems:
            failed.append(f"{attack.name}: {'; '.join(outcome.problems)}\n{outcome.output[:500]}")
    assert not failed, "\n\n".join(failed)


def test_the_suite_is_as_large_as_it_says_and_repeats(victims):
    """At least 600 attacks, in the same order each time; few may pass, each with its reason."""
    attacks = list_all(victims)
    assert len(attacks) >= 600
    assert [attack.name for attack in attacks] == [attack.name for attack in list_all(victims)]
    passing = [attack for attack in attacks if attack.allowed & {*PASSED}]
    assert all(attack.reason for attack in passing)
    assert len(passing) < len(attacks) / 20
