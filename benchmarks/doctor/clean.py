"""Pairs without a fault: the doctor must say that both runs are identical."""

from __future__ import annotations

from benchmarks.doctor.pair import COMMANDS, NEEDS_GPU, Edit, Pair

_RUN_NAME = """    run_name = "run-%06d" % random.SystemRandom().randrange(10**6)
    print("starting", run_name, "pid", os.getpid(), "at", time.ctime())
"""

# Each script as it is.
UNCHANGED = tuple(
    Pair(f"{script}/clean", script, setup="python prepare.py" if script == "folder" else "")
    for script in COMMANDS
    if script not in NEEDS_GPU
)

HARMLESS = (
    Pair(
        "digits/clean-run-name",
        "digits",
        (Edit("train.py", "    set_seed(args.seed)\n", _RUN_NAME + "    set_seed(args.seed)\n"),),
    ),
    Pair(
        "digits/clean-unused-generator",
        "digits",
        (Edit("train.py", "    random.seed(seed)\n    np.random.seed(seed)\n"),),
    ),
    Pair("digits/clean-hash-seed", "digits", options=("--vary", "seed-env")),
    Pair(
        "charlm/clean-set-membership",
        "charlm",
        (
            Edit(
                "train_lm.py",
                "    data = [vocab.encode(s) for s in train]\n",
                "    known = set(vocab.itos)\n"
                "    data = [vocab.encode(s) for s in train if known.issuperset(s.split())]\n",
            ),
        ),
    ),
    Pair("folder/clean-staged", "folder", command="sh run.sh", setup="python prepare.py"),
    Pair(
        "graph/clean-filled-buffer",
        "graph",
        (
            Edit("main.py", '"mean", torch.zeros(feats)', '"mean", torch.empty(feats)'),
            Edit(
                "main.py",
                "    weight = class",
                "    model.mean.copy_(x.mean(0))\n    weight = class",
            ),
        ),
    ),
    Pair(
        "graph/clean-deterministic-index",
        "graph",
        (
            Edit("main.py", ".index_select(0, src)", "[src]"),
            Edit(
                "main.py",
                "    torch.manual_seed(8)\n",
                "    torch.manual_seed(8)\n    torch.use_deterministic_algorithms(True)\n",
            ),
        ),
    ),
    Pair(
        "workers/clean-persistent",
        "workers",
        (
            Edit(
                "train.py",
                "        generator=g,\n",
                "        generator=g,\n        persistent_workers=True,\n"
                "        prefetch_factor=4,\n",
            ),
        ),
    ),
    Pair("resume/clean-resume", "resume", options=("--resume-at", "7")),
    Pair("scaler/clean-resume", "scaler", options=("--resume-at", "7")),
)

PAIRS = (*UNCHANGED, *HARMLESS)
