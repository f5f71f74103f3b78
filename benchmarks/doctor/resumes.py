"""Pairs of an unbroken run and one that ended and went on from the script's own checkpoint."""

from __future__ import annotations

from benchmarks.doctor.pair import Edit, Pair

_RESUME_LINES = (
    "train.py: torch.save(state, tmp)",
    "train.py: if step % args.save_every == 0:",
    "train.py: model=model.state_dict(),",
    "train.py: if os.path.isfile(",
    "train.py: state = torch.load(",
    "train.py: model.load_state_dict(state[",
)
_SCALER_LINES = (
    "train.py: torch.save(",
    "train.py: save(ckpt_path, step, model",
    'train.py: "model": model.state_dict(),',
    "train.py: if os.path.exists(ckpt_path):",
    "train.py: step = load(ckpt_path",
    "train.py: ckpt = torch.load(",
    "train.py: model.load_state_dict(ckpt[",
)


def _leave_out(name: str, cause: str, saved: str, loaded: str, *lines: str) -> Pair:
    """Return a pair of the script ``resume`` that neither saves nor loads one thing."""
    edits = (
        Edit("train.py", f"                    {saved}\n"),
        Edit("train.py", f"        {loaded}\n"),
    )
    return Pair(
        f"resume/{name}",
        "resume",
        edits,
        (cause,),
        (*_RESUME_LINES, *lines),
        ("--resume-at", "7"),
    )


PAIRS = (
    _leave_out(
        "no-scheduler",
        "resume-scheduler",
        "scheduler=scheduler.state_dict(),",
        'scheduler.load_state_dict(state["scheduler"])',
        "train.py: scheduler.step()",
        "train.py: scheduler = torch.optim.lr_scheduler.LambdaLR",
    ),
    _leave_out(
        "no-optimizer",
        "resume-optimizer",
        "optimizer=optimizer.state_dict(),",
        'optimizer.load_state_dict(state["optimizer"])',
        "train.py: optimizer.step()",
        "train.py: optimizer = torch.optim.Adam",
    ),
    _leave_out(
        "no-torch-generator",
        "resume-generator",
        "torch_rng=torch.get_rng_state(),",
        'torch.set_rng_state(state["torch_rng"])',
        "train.py: torch.manual_seed(args.seed)",
        "train.py: nn.functional.mse_loss(model(x), y)",
        "train.py: nn.Dropout(0.1)",
    ),
    _leave_out(
        "no-python-generator",
        "resume-generator",
        "python_rng=random.getstate(),",
        'random.setstate(state["python_rng"])',
        "train.py: if random.random() < 0.3",
    ),
    Pair(
        "resume/no-position",
        "resume",
        (Edit("train.py", "epoch, batch * args.batch_size", "epoch, 0"),),
        ("resume-sampler",),
        (
            *_RESUME_LINES,
            "train.py: sampler.epoch, sampler.start = epoch, 0",
            "train.py: for x, y in loader:",
            "train.py: loader = DataLoader(",
            "train.py: yield from order[self.start :]",
        ),
        ("--resume-at", "7"),
    ),
    Pair(
        "resume/silently-not-loaded",
        "resume",
        (
            Edit(
                "train.py",
                "model=model.state_dict(),",
                'model={"module." + k: v for k, v in model.state_dict().items()},',
            ),
            Edit(
                "train.py",
                'model.load_state_dict(state["model"])',
                'model.load_state_dict(state["model"], strict=False)',
            ),
        ),
        ("resume-not-loaded",),
        (*_RESUME_LINES[:2], 'train.py: model={"module." + k', *_RESUME_LINES[3:]),
        ("--resume-at", "7"),
    ),
    Pair(
        "scaler/no-scaler",
        "scaler",
        (
            Edit("train.py", '            "scaler": scaler.state_dict(),\n'),
            Edit("train.py", '    scaler.load_state_dict(ckpt["scaler"])\n'),
        ),
        ("resume-scaler",),
        (*_SCALER_LINES, "train.py: scaler = torch.amp.GradScaler", "train.py: scaler.update()"),
        ("--resume-at", "7"),
    ),
    Pair(
        "scaler/no-loader-generator",
        "scaler",
        (
            Edit("train.py", '            "gen": sampler_gen.get_state(),\n'),
            Edit("train.py", '    sampler_gen.set_state(ckpt["gen"].cpu())\n'),
        ),
        ("resume-sampler", "resume-generator"),
        (
            *_SCALER_LINES,
            "train.py: gen = torch.Generator()",
            "train.py: for x, y in loader:",
            "train.py: loader = DataLoader(",
        ),
        ("--resume-at", "7"),
    ),
)
