"""Write the committed digests: ``python -m tests.golden.write``.

They hold on every machine. Should one change, every receipt made before it is void: say so in
CHANGELOG.md, with the reason.
"""

import json
from pathlib import Path

import seedless
from seedless.init import INITIALIZATIONS
from seedless.models import MODELS

FILE = Path(__file__).with_name("init.json")


def compute(name: str, basis: str) -> dict[str, str]:
    """Digests of one model with one basis: of the plan, of the weights, and the published MD5."""
    model = seedless.build(name)
    plan = seedless.initialize(model, basis)
    return {"plan": plan.digest, "weights": seedless.digest(model), "md5": seedless.md5(model)}


def compute_all() -> dict[str, dict[str, dict[str, str]]]:
    """Digests of every model with every basis."""
    return {
        name: {basis: compute(name, basis) for basis in sorted(INITIALIZATIONS)} for name in MODELS
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(compute_all(), indent=2, sort_keys=True) + "\n")
