"""Write the shipped digests of portable arithmetic: ``python -m tests.golden.write_portable``.

They hold on every machine. Should one change, every receipt of a portable run made before is void:
say so in CHANGELOG.md, with the reason. With ``--print STEPS [device]`` the ops and so many steps
of the small models are printed instead. Full-size models take minutes; without ``--full`` those
shipped before are kept.
"""

import json
import sys

from seedless.audit.portable_check import compute_models, pack
from seedless.portable.check.compute import FILE, STEPS, compute_ops, read_committed


def compute(device="cpu", steps=STEPS):
    return {"ops": compute_ops(device), "models": pack(compute_models(device, steps))}


if __name__ == "__main__":
    if "--print" in sys.argv:
        steps, *device = sys.argv[sys.argv.index("--print") + 1 :]
        print(json.dumps(compute(*device, steps=int(steps))))
    else:
        kept = {} if "--full" in sys.argv else read_committed()["full"]
        found = compute() | {"full": kept or pack(compute_models(full=True))}
        FILE.write_text(json.dumps({"steps": STEPS, **found}, indent=1, sort_keys=True) + "\n")
