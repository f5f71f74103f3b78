"""Pairs whose arithmetic differs: threads, dtypes, compiled code, ops in no fixed order, memory."""

from __future__ import annotations

from benchmarks.doctor.pair import Edit, Pair

_DTYPE = 'torch.set_default_dtype(getattr(torch, os.environ.get("DTYPE", "float32")))\n'

PAIRS = (
    Pair(
        "digits/threads",
        "digits",
        (
            Edit(
                "train.py",
                "        x = self.drop(x)\n",
                "        x = (x - x.mean()) / x.std()\n        x = self.drop(x)\n",
            ),
        ),
        ("threads",),
        (
            "train.py: x = F.relu(self.fc1(x))",
            "train.py: x = F.relu(self.fc2(x))",
            "train.py: x = (x - x.mean()) / x.std()",
            "train.py: return self.out(x)",
            "train.py: loss.backward()",
        ),
        ("--vary", "threads=1,2"),
        command="python train.py --hidden 700",
    ),
    Pair(
        "workers/threads",
        "workers",
        (),
        ("threads",),
        ("train.py: logits = model(images)", "train.py: loss.backward()"),
        ("--vary", "threads=1,2"),
    ),
    Pair(
        "amp/autocast-dtype",
        "amp",
        (),
        ("autocast", "dtype"),
        (
            'main.py: os.environ.get("AMP_DTYPE"',
            "main.py: with torch.autocast(",
            "main.py: logits = model(x)",
            "main.py: x = self.embed(x) + self.pos",
        ),
        ("--vary", "AMP_DTYPE=bfloat16,float16"),
    ),
    Pair(
        "amp/autocast-off",
        "amp",
        (
            Edit(
                "main.py",
                "enabled=args.amp)",
                'enabled=os.environ.get("AMP", "1") == "1")',
            ),
        ),
        ("autocast",),
        (
            "main.py: with torch.autocast(",
            "main.py: logits = model(x)",
            "main.py: x = self.embed(x) + self.pos",
        ),
        ("--vary", "AMP=0,1"),
    ),
    Pair(
        "manual/default-dtype",
        "manual",
        (
            Edit("train.py", "import torch\n\ntorch", "import os\n\nimport torch\n\ntorch"),
            Edit("train.py", "torch.set_default_dtype(torch.float32)\n", _DTYPE),
        ),
        ("dtype",),
        (
            "train.py: torch.set_default_dtype(",
            "train.py: true_w = torch.linspace",
            "train.py: X = torch.randn(N, D)",
        ),
        ("--vary", "DTYPE=float32,float64"),
    ),
    Pair(
        "compile/against-eager",
        "compile",
        (),
        ("compiled",),
        (
            "train.py: net = torch.compile(model)",
            "train.py: pred = net(x[idx])",
            "train.py: USE_COMPILE",
            "train.py: loss.backward()",
        ),
        ("--vary", "USE_COMPILE=0,1"),
    ),
    Pair(
        "graph/accumulating-index",
        "graph",
        (Edit("main.py", ".index_select(0, src)", "[src]"),),
        ("nondeterministic-op",),
        ("main.py: msg = self.lin(x)[src]", "main.py: loss.backward()"),
    ),
    Pair(
        "graph/uninitialized-accumulator",
        "graph",
        (Edit("main.py", "out = torch.zeros(x.size(0)", "out = torch.empty(x.size(0)"),),
        ("uninitialized-memory",),
        ("main.py: out = torch.empty(x.size(0)", "main.py: out.index_add_(0, dst, msg)"),
    ),
)
