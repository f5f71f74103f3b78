"""Write the committed digests of portable arithmetic: ``python -m tests.golden.write_portable``.

They hold on every machine. Should one change, every receipt of a portable run made before is void:
say so in CHANGELOG.md, with the reason. With ``--print [device]`` they are printed instead.
"""

import json
import sys
from functools import partial
from pathlib import Path

import seedless
from seedless.models import MODELS
from seedless.numerics.portable.check import compute_models, compute_ops

FILE = Path(__file__).with_name("portable.json")


def make(name):
    model = seedless.build(name, small=True)
    seedless.initialize(model)
    return model


def compute_all(device="cpu"):
    models = {name: partial(make, name) for name in MODELS}
    return {"ops": compute_ops(device), "models": compute_models(models, device)}


if __name__ == "__main__":
    if "--print" in sys.argv:
        print(json.dumps(compute_all(*sys.argv[2:])))
    else:
        FILE.write_text(json.dumps(compute_all(), indent=2, sort_keys=True) + "\n")
