"""Pairs that depend on hash order, the order of a folder, or files that change."""

from __future__ import annotations

from benchmarks.doctor.pair import Edit, Pair

_LISTED = "for fname in sorted(os.listdir(folder)):"

HASHES = (
    Pair(
        "charlm/set-vocabulary",
        "charlm",
        (Edit("corpus.py", "sorted(set(words))", "list(set(words))"),),
        ("hash-order",),
        ("corpus.py: list(set(words))",),
    ),
    Pair(
        "charlm/set-vocabulary-by-hash-seed",
        "charlm",
        (Edit("corpus.py", "sorted(set(words))", "list(set(words))"),),
        ("hash-order",),
        ("corpus.py: list(set(words))",),
        ("--vary", "seed-env"),
    ),
    Pair(
        "charlm/hash-split",
        "charlm",
        (Edit("train_lm.py", "n % 10 == 0", "hash(line) % 10 == 0"),),
        ("hash-order",),
        ("train_lm.py: hash(line) % 10 == 0",),
    ),
    Pair(
        "digits/hash-split",
        "digits",
        (
            Edit("train.py", "if i % 5 != 0]", "if hash(name) % 5 != 0]"),
            Edit("train.py", "if i % 5 == 0]", "if hash(name) % 5 == 0]"),
        ),
        ("hash-order",),
        ("train.py: if hash(name) % 5 != 0]", "train.py: if hash(name) % 5 == 0]"),
    ),
    Pair(
        "trainer/set-vocabulary",
        "trainer",
        (Edit("finetune.py", "tokens = sorted({", "tokens = list({"),),
        ("hash-order",),
        ("finetune.py: tokens = list({", "finetune.py: enumerate(tokens)"),
    ),
    Pair(
        "ddp/hash-order",
        "ddp",
        (
            Edit(
                "train_ddp.py",
                "    return TensorDataset(",
                '    names = ["rec%d" % i for i in range(len(x))]\n'
                "    order = sorted(range(len(x)), key=lambda i: hash(names[i]))\n"
                "    x, y = x[order], y[order]\n    return TensorDataset(",
            ),
        ),
        ("hash-order",),
        ("train_ddp.py: key=lambda i: hash(names[i])",),
    ),
)

LISTINGS = (
    Pair(
        "folder/listdir",
        "folder",
        (Edit("train.py", _LISTED, "for fname in os.listdir(folder):"),),
        ("listing-order",),
        ("train.py: for fname in os.listdir(folder):",),
        command="sh run.sh",
        setup="python prepare.py",
    ),
    Pair(
        "folder/glob",
        "folder",
        (
            Edit("train.py", _LISTED, 'for path in glob.glob(os.path.join(folder, "*.npy")):'),
            Edit(
                "train.py",
                "self.samples.append((os.path.join(folder, fname), label))",
                "self.samples.append((path, label))",
            ),
        ),
        ("listing-order",),
        ("train.py: for path in glob.glob(",),
        command="sh run.sh",
        setup="python prepare.py",
    ),
)

_READ_BEST = """    if os.path.exists("best.pt"):
        print("found best.pt, loading")
        model.load_state_dict(torch.load("best.pt", weights_only=True))
"""
_READ_LOG = """    if os.path.exists(args.log):
        done = len(open(args.log).readlines())
        args.lr *= 0.5 ** done
"""
_CALIBRATION = """    offset = float(open("offset.txt").read())
    x = x + offset
"""
_GROW = """if os.path.exists("stream.npy"):
    old = np.load("stream.npy")
    make_stream("stream.npy", len(old) + 1000)
else:
    make_stream("stream.npy")
"""

FILES = (
    Pair(
        "digits/leftover-weights",
        "digits",
        (Edit("train.py", '    print("params:"', _READ_BEST + '    print("params:"'),),
        ("leftover-file",),
        (
            'train.py: if os.path.exists("best.pt"):',
            "train.py: model.load_state_dict(torch.load(",
        ),
    ),
    Pair(
        "digits/leftover-log",
        "digits",
        (Edit("train.py", "    optimizer = torch", _READ_LOG + "    optimizer = torch"),),
        ("leftover-file",),
        (
            "train.py: if os.path.exists(args.log):",
            "train.py: open(args.log).readlines()",
            "train.py: args.lr *= 0.5 ** done",
        ),
    ),
    Pair(
        "resume/leftover-checkpoint",
        "resume",
        (),
        ("leftover-file",),
        ("train.py: if os.path.isfile(path):", "train.py: state = torch.load("),
        command="python train.py --save-every 4",
    ),
    Pair(
        "accumulate/growing-data",
        "accumulate",
        (
            Edit(
                "train_gpt.py",
                'if not os.path.exists("stream.npy"):\n    make_stream("stream.npy")\n',
                _GROW,
            ),
        ),
        ("leftover-file", "data-changed"),
        (
            "train_gpt.py: old = np.load(",
            "train_gpt.py: data = np.load(",
            'train_gpt.py: if os.path.exists("stream.npy"):',
            'train_gpt.py: make_stream("stream.npy", len(old) + 1000)',
        ),
    ),
    Pair(
        "digits/data-changed",
        "digits",
        (Edit("train.py", "    mean, std =", _CALIBRATION + "    mean, std ="),),
        ("data-changed",),
        ('train.py: open("offset.txt")',),
        command="sh -c 'date +%s.%N | cut -c 6-16 > offset.txt; python train.py'",
    ),
)

PAIRS = (*HASHES, *LISTINGS, *FILES)
