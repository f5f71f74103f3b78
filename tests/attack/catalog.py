"""All attacks, by family, generated from the victims in a fixed order."""

import os

from tests.attack import (
    added_files,
    attestations,
    bombs,
    bundles,
    byte_changes,
    commands,
    contradictions,
    escapes,
    forged_runs,
    packed_data,
    receipt_fields,
    scripts,
    signatures,
    study_stores,
    weights_files,
)

# The attacks of a large family are alike, so a test makes one in three of them. All are made by
# `SEEDLESS_ATTACKS=all pytest tests/attack`, and by `python -m benchmarks.attacks`, which records
# them.
SMALL_FAMILY = 50
ONE_IN = 3

# Each family, and in how many parts its attacks are made: a part takes some ten seconds.
FAMILIES = {
    added_files: 1,
    attestations: 1,
    bombs: 2,
    bundles: 2,
    byte_changes: 2,
    commands: 1,
    contradictions: 1,
    escapes: 1,
    forged_runs: 6,
    packed_data: 4,
    receipt_fields: 2,
    scripts: 1,
    signatures: 1,
    study_stores: 2,
    weights_files: 3,
}
PARTS = [
    (family.__name__.rpartition(".")[2], part)
    for family, count in FAMILIES.items()
    for part in range(count)
]


def list_part(victims, name, part):
    """Return one part of a family's attacks."""
    for family, count in FAMILIES.items():
        if family.__name__.endswith(f".{name}"):
            return choose(family.list_attacks(victims))[part::count]
    raise LookupError(name)


def choose(attacks):
    """Return the attacks that a test makes: all, or every `ONE_IN` of a large family."""
    if os.environ.get("SEEDLESS_ATTACKS") == "all" or len(attacks) <= SMALL_FAMILY:
        return attacks
    return attacks[::ONE_IN]


def list_all(victims):
    """Return all attacks; no two have the same name."""
    attacks = [attack for family in FAMILIES for attack in family.list_attacks(victims)]
    assert len({attack.name for attack in attacks}) == len(attacks)
    return attacks
