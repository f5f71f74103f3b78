"""Scripts whose author did not know the doctor: each has one fault of its own, or none.

The author chose the faults, and the lines that a good engineer would change. What the doctor said
when it first met them is in benchmarks/results/doctor-first-contact.json. Rules were then written
from the misses, so that now these are pairs like the others.
"""

from __future__ import annotations

from benchmarks.doctor.pair import Pair


def _make(
    name: str, command: str, causes: tuple[str, ...] = (), *lines: str, setup: str = ""
) -> Pair:
    return Pair(f"blind/{name}", f"blind/{name}", (), causes, lines, command=command, setup=setup)


PAIRS = (
    _make(
        "fashion_cnn",
        "python train.py --epochs 3",
        ("unseeded-weights",),
        "engine.py: set_seed(args.seed)",
        "train.py: model = SmallCNN(args.width)",
        "train.py: engine = Engine(model, Patterns(), args)",
    ),
    _make(
        "store_sales",
        "python sales_model.py",
        ("unseeded-shuffle",),
        "sales_model.py: torch.manual_seed(SEED)",
        'sales_model.py: train = df[df["day"] < 34].sample(frac=1).reset_index(drop=True)',
        setup="python make_data.py",
    ),
    _make(
        "credit_mlp",
        "python train_credit.py",
        ("unseeded-shuffle", "unseeded-draws"),
        "train_credit.py: y_va = train_test_split(X, y, test_size=0.25, stratify=y)",
        "train_credit.py: torch.manual_seed(cfg.seed)",
    ),
    _make(
        "sms_spam",
        "python train.py",
        ("hash-order",),
        "vocab.py: words = set()",
        "vocab.py: for w in words:",
    ),
    _make(
        "ctr_ads",
        "python ctr.py",
        ("hash-order",),
        'ctr.py: out[:, j] = [hash(f"{col}={value}") % N_BUCKETS for value in frame[col]]',
    ),
    _make(
        "ring_gan",
        "python gan.py --iters 25",
        ("unseeded-draws",),
        "gan.py: self.rng.seed()",
        "gan.py: return torch.randn(n, self.nz, generator=self.rng)",
    ),
    _make(
        "power_lstm",
        "python forecast.py --epochs 2",
        ("augmentation-draws",),
        "dataset.py: scale = random.uniform(0.95, 1.05)",
        "forecast.py: np.random.seed(seed)",
        "forecast.py: torch.manual_seed(seed)",
        "forecast.py: seed_all(args.seed)",
    ),
    _make(
        "simclr_toy",
        "python pretrain.py",
        ("worker-draws", "augmentation-draws"),
        "views.py: x = x + rng.normal(0.0, self.sigma, size=x.shape)",
        "views.py: keep = rng.random(x.shape) > 0.1",
        "views.py: rng = np.random.default_rng()",
    ),
    _make(
        "gridworld_pg",
        "python reinforce.py --episodes 30",
        ("unseeded-draws",),
        "env.py: self.rng = np.random.default_rng(seed)",
        "env.py: if self.rng.random() < self.slip:",
        "reinforce.py: env = SlipperyGrid()",
        "reinforce.py: state, total = env.reset(), 0.0",
    ),
    _make(
        "skipgram",
        "python w2v.py",
        ("unseeded-draws",),
        "w2v.py: torch.manual_seed(42)",
        "w2v.py: draw = np.random.choice(len(vocab), size=(batch, k), p=unigram)",
    ),
    _make(
        "ddpm_1d",
        "python train_ddpm.py",
        ("entropy", "python-value"),
        "schedule.py: return torch.tensor([secrets.randbelow(self.T) for _ in range(n)])",
    ),
    _make(
        "moe_router",
        "python -m moe.train",
        ("time-seed",),
        'moe/runtime.py: return int(os.environ.get("RANK", os.getpid()))',
        "moe/runtime.py: seed = (seed + process_index()) % 2 ** 31",
        "moe/runtime.py: torch.manual_seed(seed)",
        "moe/train.py: seed_everything(cfg.seed)",
    ),
    _make(
        "cite_graph",
        "python main.py",
        ("address-order", "python-value"),
        "graph.py: return sorted(papers, key=lambda p: (id(p) * 2654435761) % 2 ** 32)",
        "graph.py: order = scatter_order(papers)",
    ),
    _make(
        "docs_pool",
        "python train.py --workers 3",
        ("completion-order",),
        "prepare.py: for row, topic in pool.imap_unordered(tfidf_row, range(n_docs)):",
    ),
    _make(
        "lr_range",
        "python fit.py",
        ("clock",),
        "finder.py: elapsed = time.perf_counter() - start",
        "finder.py: return max(first - loss.item(), 1e-8) / elapsed",
        "finder.py: log_lr = sum(s / total",
        "fit.py: opt = torch.optim.SGD(model.parameters(), lr=max_lr, momentum=0.9)",
        "fit.py: sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=max_lr, total_steps=30)",
    ),
    _make(
        "swa_budget",
        "python swa_train.py",
        ("clock",),
        "swa_train.py: if step > 20 and time.monotonic() - t0 > C.budget_s:",
    ),
    _make(
        "ema_finetune",
        "python main.py --steps 40",
        ("leftover-file",),
        "checkpoint.py: state = torch.load(self.path)",
        'checkpoint.py: model.load_state_dict(state["model"])',
        'checkpoint.py: opt.load_state_dict(state["opt"])',
        'checkpoint.py: torch.save({"model": model.state_dict(), "opt"',
        "main.py: ckpt.restore(model, opt)",
        "main.py: ckpt.save(model, opt)",
    ),
    _make(
        "canvas_digits",
        "python train_binary.py",
        ("uninitialized-memory",),
        "render.py: canvas = np.empty((size, size), dtype=np.uint8)",
    ),
    _make(
        "vae_prefetch",
        "python vae.py",
        ("thread-order", "completion-order"),
        "loader.py: self.rng = np.random.default_rng(seed)",
        "loader.py: noise = self.rng.normal(0, 0.05, size=x.shape)",
        "loader.py: shift = self.rng.uniform(-0.1, 0.1, size=(len(x), 1))",
        "loader.py: with ThreadPoolExecutor(max_workers=self.threads) as ex:",
        "loader.py: yield from ex.map(self._prepare, starts)",
    ),
    _make(
        "distill_kd",
        "python distill.py",
        ("python-value", "entropy"),
        'cache.py: self.root = tempfile.mkdtemp(prefix="teacher_")',
        "cache.py: return sorted(files, key=lambda p: hashlib.md5(p.encode()).hexdigest())",
    ),
    _make(
        "unet_cells",
        "python train_seg.py -e 2",
        ("unseeded-draws",),
        "train_seg.py: weights = estimate_class_weights(masks)",
        "seg/data.py: rng = np.random.default_rng()",
        "seg/data.py: sample = rng.choice(flat, size=n_pixels, replace=False)",
    ),
    _make(
        "hf_reviews",
        "python run_cls.py",
        ("unseeded-weights",),
        "run_cls.py: model = BertForSequenceClassification(config)",
        "run_cls.py: seed=42,",
        "run_cls.py: trainer = Trainer(model=model, args=training_args, train_dataset=Reviews())",
    ),
    _make(
        "accel_accum",
        "python train_accel.py",
        ("time-seed",),
        "sampler.py: self.rng = random.Random(time.time())",
        "sampler.py: self.rng.shuffle(blocks)",
        "train_accel.py: loader = DataLoader(ds, batch_size=12, sampler=",
    ),
    _make(
        "active_pool",
        "python active.py",
        ("leftover-file",),
        "active.py: store = LabelStore()",
        'active.py: store.add(most_uncertain(model, x, store.indices, CONFIG["query"]))',
        "pool.py: if os.path.exists(path):",
        "pool.py: self.indices = json.load(open(path))",
        "pool.py: json.dump(self.indices, f)",
    ),
    _make("rbf_kmeans", "python rbf.py"),
    _make("kfold_wine", "python cv.py"),
    _make("pl_autoenc", "python lit.py"),
    _make("clickstream", "python fit_stream.py"),
    _make("compile_poly", "python poly.py"),
    _make("lowrank_onecycle", "python run.py"),
    _make("ngram_pool", "python -m nglm.train"),
    _make("copy_seq2seq", "python seq.py"),
    _make("bow_sentiment", "python sentiment.py"),
    _make("siamese_pairs", "python siamese.py"),
)
