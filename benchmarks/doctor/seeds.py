"""Pairs whose generators are not seeded, seeded late, or seeded by the clock."""

from __future__ import annotations

from benchmarks.doctor.pair import Edit, Pair

WEIGHTS = (
    Pair(
        "digits/no-seed",
        "digits",
        (Edit("train.py", "    torch.manual_seed(seed)\n"),),
        ("unseeded-weights",),
        ("train.py: self.fc1 = nn.Linear", "train.py: model = Net("),
    ),
    Pair(
        "digits/seed-after-model",
        "digits",
        (
            Edit("train.py", "    set_seed(args.seed)\n"),
            Edit("train.py", '    print("params:"', '    set_seed(args.seed)\n    print("params:"'),
        ),
        ("unseeded-weights",),
        ("train.py: self.fc1 = nn.Linear", "train.py: model = Net("),
    ),
    Pair(
        "digits/time-seed",
        "digits",
        (Edit("train.py", "type=int, default=42", "type=int, default=int(time.time())"),),
        ("time-seed",),
        (
            "train.py: default=int(time.time())",
            "train.py: set_seed(args.seed)",
            "train.py: torch.manual_seed(seed)",
        ),
    ),
    Pair(
        "gan/seed-drawn",
        "gan",
        (Edit("gan.py", "default=999", "default=None"),),
        ("time-seed", "unseeded-draws"),
        (
            "gan.py: opt.manualSeed = random.randint",
            "gan.py: random.seed(opt.manualSeed)",
            "gan.py: torch.manual_seed(opt.manualSeed)",
        ),
    ),
    Pair(
        "accumulate/no-seed",
        "accumulate",
        (Edit("train_gpt.py", "torch.manual_seed(seed)\n"),),
        ("unseeded-weights",),
        (
            "train_gpt.py: self.wte = nn.Embedding",
            "train_gpt.py: self.wpe = nn.Embedding",
            "train_gpt.py: self.c_attn = nn.Linear",
            "train_gpt.py: self.apply(self._init_weights)",
            "train_gpt.py: torch.nn.init.normal_",
            "train_gpt.py: model = GPT()",
        ),
    ),
    Pair(
        "vae/no-seed",
        "vae",
        (Edit("vae.py", "torch.manual_seed(args.seed)\n"),),
        ("unseeded-weights",),
        ("vae.py: self.fc1 = nn.Linear", "vae.py: model = VAE()"),
    ),
    Pair(
        "manual/no-seed",
        "manual",
        (Edit("train.py", "torch.manual_seed(0)\n"),),
        ("unseeded-weights", "unseeded-draws"),
        ("train.py: X = torch.randn(N, D)", 'train.py: "w1": torch.randn(D, H)'),
    ),
    Pair(
        "lightning/no-seed",
        "lightning",
        (Edit("train.py", "    L.seed_everything(args.seed)\n"),),
        ("unseeded-weights",),
        ("train.py: self.l1 = nn.Linear", "train.py: model = LitClassifier()"),
    ),
    Pair(
        "trainer/model-before-seed",
        "trainer",
        (Edit("finetune.py", "    set_seed(args.seed)\n"),),
        ("unseeded-weights",),
        ("finetune.py: model = BertForSequenceClassification(config)",),
    ),
    Pair(
        "compile/no-seed",
        "compile",
        (Edit("train.py", "torch.manual_seed(2024)\n"),),
        ("unseeded-weights",),
        ("train.py: self.l1 = nn.Linear", "train.py: model = Regressor()"),
    ),
)

SHUFFLES = (
    Pair(
        "digits/unseeded-shuffle",
        "digits",
        (
            Edit(
                "train.py",
                "batch_size=args.batch_size, shuffle=True)",
                "batch_size=args.batch_size, shuffle=True, generator=g)",
            ),
            Edit("train.py", "    best = 0.0\n", "    best = 0.0\n    g.seed()\n"),
            Edit("train.py", "    train_loader =", "    g = torch.Generator()\n    train_loader ="),
        ),
        ("unseeded-shuffle",),
        (
            "train.py: g.seed()",
            "train.py: g = torch.Generator()",
            "train.py: train_loader = DataLoader",
            "train.py: enumerate(train_loader)",
        ),
    ),
    Pair(
        "workers/unseeded-generator",
        "workers",
        (Edit("train.py", "    g.manual_seed(args.seed)\n", "    g.seed()\n"),),
        ("unseeded-shuffle",),
        ("train.py: g.seed()", "train.py: loader = DataLoader(", "train.py: enumerate(loader)"),
    ),
    Pair(
        "charlm/no-python-seed",
        "charlm",
        (Edit("train_lm.py", "    random.seed(a.seed)\n"),),
        ("unseeded-shuffle", "unseeded-draws"),
        ("train_lm.py: random.shuffle(data)",),
    ),
    Pair(
        "resume/time-seeded-sampler",
        "resume",
        (
            Edit("train.py", "import random\n", "import random\nimport time\n"),
            Edit(
                "train.py",
                "EpochSampler(len(dataset), args.seed)",
                "EpochSampler(len(dataset), int(time.time()))",
            ),
        ),
        ("time-seed", "unseeded-shuffle"),
        (
            "train.py: sampler = EpochSampler(",
            "train.py: np.random.RandomState(self.seed + self.epoch)",
        ),
    ),
    Pair(
        "lightning/unseeded-generator",
        "lightning",
        (
            Edit(
                "train.py",
                "        return DataLoader(self.train, batch_size=self.batch_size, shuffle=True)",
                "        g = torch.Generator()\n        g.seed()\n"
                "        return DataLoader(self.train, batch_size=self.batch_size, shuffle=True,"
                " generator=g)",
            ),
        ),
        ("unseeded-shuffle",),
        (
            "train.py: g.seed()",
            "train.py: g = torch.Generator()",
            "train.py: DataLoader(self.train",
            "train.py: trainer.fit(",
        ),
    ),
)

RANKS = (
    Pair(
        "ddp/no-seed",
        "ddp",
        (Edit("train_ddp.py", "    torch.manual_seed(args.seed)\n"),),
        ("unseeded-weights",),
        ("train_ddp.py: self.inp = nn.Linear", "train_ddp.py: model = MLP()"),
    ),
    Pair(
        "ddp/one-rank-seeded",
        "ddp",
        (
            Edit(
                "train_ddp.py",
                "    torch.manual_seed(args.seed)\n",
                "    if rank == 0:\n        torch.manual_seed(args.seed)\n",
            ),
        ),
        ("rank-differs", "dropout-draws"),
        (
            "train_ddp.py: torch.manual_seed(args.seed)",
            "train_ddp.py: self.drop = nn.Dropout",
            "train_ddp.py: self.out(self.drop(h))",
        ),
    ),
    Pair(
        "ddp/no-broadcast",
        "ddp",
        (
            Edit(
                "train_ddp.py",
                "    torch.manual_seed(args.seed)\n",
                "    if rank == 0:\n        torch.manual_seed(args.seed)\n",
            ),
        ),
        ("rank-differs", "unseeded-weights"),
        (
            "train_ddp.py: torch.manual_seed(args.seed)",
            "train_ddp.py: self.inp = nn.Linear",
            "train_ddp.py: model = MLP()",
        ),
        command="torchrun --nproc_per_node=2 train_ddp.py --no-ddp",
    ),
    Pair(
        "ddp/rank-seeded-by-clock",
        "ddp",
        (
            Edit("train_ddp.py", "import os\n", "import os\nimport time\n"),
            Edit(
                "train_ddp.py",
                "    torch.manual_seed(args.seed)\n",
                "    torch.manual_seed(args.seed + rank * int(time.time()))\n",
            ),
        ),
        ("time-seed", "rank-differs"),
        (
            "train_ddp.py: torch.manual_seed(args.seed + rank * int(time.time()))",
            "train_ddp.py: self.out(self.drop(h))",
        ),
    ),
)

PAIRS = (*WEIGHTS, *SHUFFLES, *RANKS)
