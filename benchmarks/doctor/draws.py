"""Pairs that draw from a generator nobody seeded: augmentation, workers, dropout, noise."""

from __future__ import annotations

from benchmarks.doctor.pair import Edit, Pair

AUGMENTATION = (
    Pair(
        "augment/no-python-seed",
        "augment",
        (Edit("train.py", "random.seed(SEED)\nnp.random", "np.random"),),
        ("augmentation-draws",),
        ("transforms.py: if random.random() < self.p",),
    ),
    Pair(
        "augment/no-numpy-seed",
        "augment",
        (Edit("train.py", "np.random.seed(SEED)\n"),),
        ("augmentation-draws",),
        ("transforms.py: top = np.random.randint", "transforms.py: left = np.random.randint"),
    ),
    Pair(
        "augment/unseeded-new-generator",
        "augment",
        (Edit("transforms.py", "np.random.default_rng(7)", "np.random.default_rng()"),),
        ("augmentation-draws",),
        ("transforms.py: np.random.default_rng()", "transforms.py: self.rng.normal("),
    ),
    Pair(
        "lightning/unseeded-augmentation",
        "lightning",
        (Edit("train.py", "np.random.randn(40)", "np.random.default_rng().standard_normal(40)"),),
        ("augmentation-draws",),
        ("train.py: np.random.default_rng().standard_normal(40)",),
    ),
    Pair(
        "trainer/own-random",
        "trainer",
        (
            Edit(
                "finetune.py",
                "        self.word_dropout = word_dropout\n",
                "        self.word_dropout = word_dropout\n        self.rng = random.Random()\n",
            ),
            Edit("finetune.py", "0 if random.random() <", "0 if self.rng.random() <"),
        ),
        ("augmentation-draws",),
        ("finetune.py: self.rng = random.Random()", "finetune.py: 0 if self.rng.random() <"),
    ),
)

WORKERS = (
    Pair(
        "workers/unseeded-new-generator",
        "workers",
        (
            Edit(
                "dataset.py",
                "if np.random.rand() < 0.5",
                "if np.random.default_rng().random() < 0.5",
            ),
        ),
        ("worker-draws",),
        ("dataset.py: if np.random.default_rng().random() < 0.5",),
    ),
    Pair(
        "workers/entropy-in-init",
        "workers",
        (Edit("train.py", "    np.random.seed(worker_seed)\n", "    np.random.seed()\n"),),
        ("worker-draws",),
        (
            "train.py: np.random.seed()",
            "dataset.py: if np.random.rand() < 0.5",
            "dataset.py: np.random.normal(0, 0.05",
        ),
    ),
    Pair(
        "workers/clock-in-init",
        "workers",
        (
            Edit("train.py", "import random\n", "import random\nimport time\n"),
            Edit(
                "train.py",
                "    np.random.seed(worker_seed)\n",
                "    np.random.seed(int(time.time()) + worker_id)\n",
            ),
        ),
        ("worker-draws", "time-seed"),
        (
            "train.py: np.random.seed(int(time.time()) + worker_id)",
            "dataset.py: if np.random.rand() < 0.5",
            "dataset.py: np.random.normal(0, 0.05",
        ),
    ),
)

NOISE = (
    Pair(
        "resume/dropout-after-entropy",
        "resume",
        (Edit("train.py", "    model.train()\n", "    torch.seed()\n    model.train()\n"),),
        ("dropout-draws",),
        (
            "train.py: torch.seed()",
            "train.py: nn.Dropout(0.1)",
            "train.py: nn.functional.mse_loss(model(x), y)",
        ),
    ),
    Pair(
        "vae/noise-after-entropy",
        "vae",
        (Edit("vae.py", "for epoch in range(1,", "torch.seed()\nfor epoch in range(1,"),),
        ("unseeded-draws",),
        ("vae.py: torch.seed()", "vae.py: eps = torch.randn_like(std)"),
    ),
    Pair(
        "gan/unseeded-noise",
        "gan",
        (
            Edit(
                "gan.py",
                "noise = torch.randn(real.size(0), opt.nz)",
                "noise = torch.randn(real.size(0), opt.nz, generator=noise_gen)",
            ),
            Edit(
                "gan.py",
                "for epoch in range",
                "noise_gen = torch.Generator()\nnoise_gen.seed()\nfor epoch in range",
            ),
        ),
        ("unseeded-draws",),
        (
            "gan.py: noise_gen.seed()",
            "gan.py: noise_gen = torch.Generator()",
            "gan.py: generator=noise_gen)",
        ),
    ),
    Pair(
        "dqn/no-python-seed",
        "dqn",
        (Edit("dqn.py", "    random.seed(SEED)\n"),),
        ("unseeded-draws",),
        (
            "dqn.py: if random.random() > eps",
            "dqn.py: return random.randrange(2)",
            "dqn.py: return random.sample(",
        ),
    ),
    Pair(
        "dqn/unseeded-environment",
        "dqn",
        (Edit("dqn.py", "np.random.default_rng(seed)", "np.random.default_rng()"),),
        ("unseeded-draws",),
        ("dqn.py: np.random.default_rng()", "dqn.py: self.rng.uniform(0, 4)"),
    ),
    Pair(
        "accumulate/batches-after-entropy",
        "accumulate",
        (
            Edit(
                "train_gpt.py",
                "X, Y = get_batch(data)\nt0",
                "torch.seed()\nX, Y = get_batch(data)\nt0",
            ),
        ),
        ("unseeded-draws", "unseeded-shuffle"),
        ("train_gpt.py: torch.seed()", "train_gpt.py: ix = torch.randint("),
    ),
)

PAIRS = (*AUGMENTATION, *WORKERS, *NOISE)
