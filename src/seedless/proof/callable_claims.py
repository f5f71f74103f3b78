"""What a receipt states of a user's functions: role, name and digest of each."""

from typing import Any

from seedless.core.digests import is_digest

ROLES = ("collate", "key", "loss", "metrics", "optimizer", "scheduler")
MAX_NAME_CHARACTERS = 200


def check_callables(claimed: Any) -> list[str]:
    """Return what is wrong with the form of a receipt's `callables`, a sentence each."""
    problem = "predicate.callables is not a list of role, name and digest of functions"
    if not isinstance(claimed, list) or not all(isinstance(item, dict) for item in claimed):
        return [problem]
    for item in claimed:
        name = item.get("name")
        named = isinstance(name, str) and 0 < len(name) <= MAX_NAME_CHARACTERS
        if {*item} != {"role", "name", "digest"} or not named or not is_digest(item["digest"]):
            return [problem]
    roles = [item["role"] for item in claimed]
    if not all(role in ROLES for role in roles) or roles != sorted(set(roles)):
        return [f"{problem}: expected roles among {', '.join(ROLES)}, sorted, each once"]
    return []
