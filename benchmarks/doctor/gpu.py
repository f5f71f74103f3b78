"""Pairs for a GPU: atomic adds, cuDNN, TF32, CUDA graphs, a kernel of the script's own."""

from __future__ import annotations

from benchmarks.doctor.pair import Edit, Pair

_DETERMINISTIC = (
    Edit("main.py", "import numpy as np\n", "import os\n\nimport numpy as np\n"),
    Edit(
        "main.py",
        "    torch.manual_seed(8)\n",
        '    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"\n'
        "    torch.manual_seed(8)\n    torch.use_deterministic_algorithms(True)\n",
    ),
)


def _seg(name: str, old: str, new: str, *lines: str) -> Pair:
    """Return a pair of the script ``seg`` with an op whose gradient is added atomically."""
    return Pair(
        f"seg/{name}",
        "seg",
        (Edit("train_seg.py", old, new),),
        ("nondeterministic-op",),
        (*lines, "train_seg.py: loss.backward()"),
        device="cuda",
    )


def _graph(name: str, new: str, line: str) -> Pair:
    """Return a pair of the script ``graph`` that sums its messages in another way."""
    return Pair(
        f"graph/{name}",
        "graph",
        (Edit("main.py", "        out.index_add_(0, dst, msg)\n", new),) if new else (),
        ("nondeterministic-op",),
        (f"main.py: {line}",),
        device="cuda",
    )


_LAYERS = (
    "train_seg.py: e1 = self.enc1(x)",
    "train_seg.py: e2 = self.enc2(F.max_pool2d(e1, 2))",
    "train_seg.py: e3 = self.enc3(F.max_pool2d(e2, 2))",
    "train_seg.py: d2 = self.dec2(",
    "train_seg.py: d1 = self.dec1(",
)

# Each adds in any order where many values meet: two adds to zero give the same sum in both orders.
ATOMIC_ADDS = (
    _seg(
        "bilinear",
        'mode="nearest")',
        'mode="bilinear", align_corners=False)',
        "train_seg.py: return F.interpolate(",
    ),
    _seg(
        "bicubic",
        'mode="nearest")',
        'mode="bicubic", align_corners=False)',
        "train_seg.py: return F.interpolate(",
    ),
    _seg(
        "adaptive-pooling",
        "pooled = e3.mean(dim=(2, 3))",
        "pooled = F.adaptive_avg_pool2d(e3, 7).logsumexp(dim=(2, 3))",
        "train_seg.py: pooled = F.adaptive_avg_pool2d(",
    ),
    _seg(
        "grid-sample",
        '        return F.interpolate(x, size=like.shape[-2:], mode="nearest")',
        "        theta = torch.eye(2, 3, device=x.device).repeat(len(x), 1, 1)\n"
        "        grid = F.affine_grid(theta, like[:, :1].shape, align_corners=False)\n"
        "        return F.grid_sample(x, grid, align_corners=False)",
        "train_seg.py: return F.grid_sample(",
    ),
    _seg(
        "replicate-padding",
        "nn.Conv2d(cin, cout, 3, padding=1, bias=False)",
        'nn.Conv2d(cin, cout, 7, padding=3, padding_mode="replicate", bias=False)',
        *_LAYERS,
    ),
    _seg(
        "class-weights",
        "            loss = F.binary_cross_entropy_with_logits(logits, mask) +",
        "            both = torch.cat([-logits, logits], 1)\n"
        "            balance = torch.tensor([0.3, 1.7], device=device)\n"
        "            loss = F.cross_entropy(both, mask[:, 0].long(), weight=balance) +",
        "train_seg.py: loss = F.cross_entropy(both",
    ),
    _graph("index-add", "", "out.index_add_(0, dst, msg)"),
    _graph(
        "scatter-add",
        "        out.scatter_add_(0, dst[:, None].expand_as(msg), msg)\n",
        "out.scatter_add_(0, dst",
    ),
    _graph(
        "scatter-reduce",
        "        rows = dst[:, None].expand_as(msg)\n"
        '        out = out.scatter_reduce(0, rows, msg, "mean", include_self=False)\n',
        "out = out.scatter_reduce(0, rows",
    ),
    _graph(
        "put-accumulate",
        "        cols = torch.arange(msg.size(1), device=x.device)\n"
        "        out.put_(dst[:, None] * msg.size(1) + cols, msg, accumulate=True)\n",
        "out.put_(dst[:, None]",
    ),
    Pair(
        "amp/long-attention",
        "amp",
        (
            Edit("main.py", "torch.zeros(1, 16, dim)", "torch.zeros(1, 1024, dim)"),
            Edit("main.py", "torch.randn(args.batch, 16, 16", "torch.randn(args.batch, 1024, 16"),
        ),
        ("nondeterministic-op",),
        ("main.py: x = x + self.attn(h, h, h", "main.py: loss.backward()"),
        device="cuda",
    ),
    Pair(
        "speech/ctc",
        "speech",
        (),
        ("nondeterministic-op",),
        ("train_ctc.py: loss = criterion(logp", "train_ctc.py: loss.backward()"),
        device="cuda",
    ),
    Pair(
        "cox/cumsum",
        "cox",
        (),
        ("nondeterministic-op",),
        ("survival.py: log_cum = torch.cumsum(",),
        device="cuda",
    ),
)

OTHERS = (
    Pair(
        "seg/cudnn-benchmark",
        "seg",
        (
            Edit("train_seg.py", "torch.backends.cudnn.deterministic = True\n"),
            Edit("train_seg.py", "cudnn.benchmark = False", "cudnn.benchmark = True"),
        ),
        ("cudnn-autotune", "nondeterministic-op"),
        (
            "train_seg.py: torch.backends.cudnn.benchmark = True",
            *_LAYERS,
            "train_seg.py: loss.backward()",
        ),
        device="cuda",
    ),
    Pair(
        "graph/compiled-atomics",
        "graph",
        (
            Edit(
                "main.py",
                "    weight = class",
                "    net = torch.compile(model)\n    weight = class",
            ),
            Edit("main.py", "out = model(x, edge_index)", "out = net(x, edge_index)"),
        ),
        ("atomics", "nondeterministic-op"),
        (
            "main.py: net = torch.compile(model)",
            "main.py: out = net(x, edge_index)",
            "main.py: out.index_add_(0, dst, msg)",
        ),
        device="cuda",
    ),
    Pair(
        "fused/atomic-kernel",
        "fused",
        (Edit("kernels.py", "return grad, sum_rows(grad)", "return grad, sum_rows_fast(grad)"),),
        ("atomics",),
        (
            "kernels.py: return grad, sum_rows_fast(grad)",
            "kernels.py: _row_sum_atomic_kernel[(x.shape[0],)]",
            "kernels.py: tl.atomic_add(",
            "main.py: loss.backward()",
        ),
        device="cuda",
    ),
    Pair(
        "cudagraph/no-seed",
        "cudagraph",
        (Edit("train.py", "torch.manual_seed(4)\n"),),
        ("unseeded-weights",),
        ("train.py: self.fc1 = nn.Linear", "train.py: model = Net()"),
        device="cuda",
    ),
    Pair(
        "cudagraph/atomics-in-replay",
        "cudagraph",
        (
            Edit(
                "train.py",
                "        one_hot = nn.functional.one_hot(group, self.groups).to(x.dtype)\n"
                "        return one_hot.t() @ x / N",
                "        out = torch.zeros(self.groups, x.size(1), device=x.device)\n"
                "        return out.index_add(0, group, x) / N",
            ),
        ),
        ("nondeterministic-op", "atomics"),
        ("train.py: return out.index_add(0, group, x) / N", "train.py: g.replay()"),
        device="cuda",
    ),
    Pair(
        "amp/tf32-by-script",
        "amp",
        (
            Edit(
                "main.py",
                "    torch.manual_seed(1337)\n",
                "    torch.manual_seed(1337)\n"
                '    torch.backends.cuda.matmul.allow_tf32 = os.environ.get("TF32") == "1"\n',
            ),
        ),
        ("tf32",),
        (
            "main.py: torch.backends.cuda.matmul.allow_tf32",
            "main.py: logits = model(x)",
            "main.py: x = self.embed(x) + self.pos",
        ),
        ("--vary", "TF32=0,1"),
        command="python main.py --no-amp",
        device="cuda",
    ),
    Pair(
        "amp/tf32-by-variable",
        "amp",
        (
            Edit(
                "main.py",
                "    torch.manual_seed(1337)\n",
                '    torch.manual_seed(1337)\n    torch.set_float32_matmul_precision("high")\n',
            ),
        ),
        ("tf32",),
        (
            "main.py: torch.set_float32_matmul_precision(",
            "main.py: logits = model(x)",
            "main.py: x = self.embed(x) + self.pos",
        ),
        ("--vary", "NVIDIA_TF32_OVERRIDE=0,1"),
        command="python main.py --no-amp",
        device="cuda",
    ),
    Pair(
        "accumulate/unseeded-device-generator",
        "accumulate",
        (
            Edit(
                "train_gpt.py",
                "X, Y = get_batch(data)\nt0",
                "torch.cuda.seed()\nX, Y = get_batch(data)\nt0",
            ),
        ),
        ("dropout-draws",),
        ("train_gpt.py: torch.cuda.seed()", "train_gpt.py: att = F.dropout("),
        device="cuda",
    ),
)

CLEAN = (
    Pair("seg/clean", "seg", device="cuda"),
    Pair("amp/clean", "amp", device="cuda"),
    Pair("accumulate/clean", "accumulate", device="cuda"),
    Pair("scaler/clean", "scaler", device="cuda"),
    Pair("fused/clean", "fused", device="cuda"),
    Pair("cudagraph/clean", "cudagraph", device="cuda"),
    Pair("graph/clean-deterministic", "graph", _DETERMINISTIC, device="cuda"),
)

PAIRS = (*ATOMIC_ADDS, *OTHERS, *CLEAN)
