"""All attacks, by family, generated from the victims in a fixed order."""

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
)

# Each family, and in how many parts its attacks are made: a part takes some ten seconds.
FAMILIES = {
    added_files: 3,
    attestations: 1,
    bombs: 6,
    bundles: 6,
    byte_changes: 4,
    commands: 1,
    contradictions: 1,
    escapes: 2,
    forged_runs: 6,
    packed_data: 4,
    receipt_fields: 6,
    scripts: 2,
    signatures: 1,
    study_stores: 2,
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
            return family.list_attacks(victims)[part::count]
    raise LookupError(name)


def list_all(victims):
    """Return all attacks; no two have the same name."""
    attacks = [attack for family in FAMILIES for attack in family.list_attacks(victims)]
    assert len({attack.name for attack in attacks}) == len(attacks)
    return attacks
