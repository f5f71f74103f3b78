"""The parts of a session, in the order of their importance."""

from __future__ import annotations

from dataclasses import dataclass

SELF_TEST = (
    "import torch; from seedless.portable import self_test; "
    "device = torch.device('DEVICE'); found = self_test.find_differing(device); "
    "print('differing:', found); raise SystemExit(bool(found))"
)
SANITIZER = "compute-sanitizer"


@dataclass(frozen=True)
class Part:
    """One measurement: a program that writes its records into a folder.

    Attributes:
        command: its arguments, after Python's name; OUT stands for the folder of the records, DATA
            for the folder of data. Where the first is no option, it is another program.
        trial: the same, small and on a CPU: it shows that the program starts, runs and writes.
        limit: seconds after which it is ended.
        least: seconds without which it is not worth starting.
        data: a file in DATA that it needs.
        program: another program that it needs.
    """

    name: str
    command: tuple[str, ...]
    trial: tuple[str, ...]
    limit: float
    least: float = 60.0
    data: str | None = None
    program: str | None = None


def _run(
    module: str, options: str, small: str, to: str = "--out OUT"
) -> tuple[tuple[str, ...], ...]:
    """Return the command of a module of the benchmarks and its trial."""
    start = ("-m", module)
    return tuple((*start, *words.split(), *to.split()) for words in (options, small))


def _bench(model: str, name: str) -> tuple[tuple[str, ...], ...]:
    small = f"bench --model {model} --device cpu --batch 2 --steps 1 --rounds 1 --only eager"
    small += " --set model.small=true"
    return _run("seedless", f"bench --model {model} --limit 200", small, f"--out OUT/{name}.json")


def _sanitize(tool: str) -> tuple[tuple[str, ...], ...]:
    run, trial = (SELF_TEST.replace("DEVICE", device) for device in ("cuda", "cpu"))
    checked = (SANITIZER, "--tool", tool, "--error-exitcode", "9", "PYTHON", "-c", run)
    return checked, ("-c", trial)


PARTS = (
    # Are the bits right?
    Part(
        "portable-check",
        *_run("benchmarks.portable_check", "--device cuda --full", "--device cpu --few"),
        limit=150,
    ),
    Part("gpu-check", *_run("benchmarks.gpu_check", "--limit 270", "--limit 240 --cpu"), limit=300),
    Part("memcheck", *_sanitize("memcheck"), limit=180, program=SANITIZER),
    Part("racecheck", *_sanitize("racecheck"), limit=180, program=SANITIZER),
    # How fast is a step, against the strongest rival and in portable arithmetic?
    Part(
        "portable-steps",
        *_run(
            "benchmarks.portable_steps",
            "steps",
            "steps --device cpu --models baseline --batch 2",
            "--out OUT/portable-steps-cuda-steps.json",
        ),
        limit=200,
    ),
    Part(
        "portable",
        *_run(
            "benchmarks.portable",
            "--device cuda --batch 128 --rounds 5 --parts",
            "--device cpu --batch 2 --rounds 1 --models baseline",
        ),
        limit=300,
    ),
    Part("bench", *_bench("conformer", "bench-gpu"), limit=560, least=240),
    Part("bench-resnet18", *_bench("resnet18", "bench-gpu-resnet18"), limit=480, least=200),
    Part(
        "engines",
        *_run(
            "benchmarks.engines",
            "--device cuda --batch 128",
            "--device cpu --batch 1 --rounds 1 --models baseline --few",
        ),
        limit=240,
    ),
    Part(
        "fused-block",
        *_run(
            "benchmarks.fused_block",
            "--device cuda --limit 400",
            "--help",
            "--out OUT/fused-block.json",
        ),
        limit=480,
        least=200,
    ),
    # Whole runs.
    Part("full", *_run("benchmarks.gpu_runs", "full", "full --small"), limit=520, least=260),
    Part("together", *_run("benchmarks.gpu_runs", "together", "together --small"), limit=240),
    Part(
        "together-service",
        *_run("benchmarks.gpu_runs", "together --service", "together --service --small"),
        limit=240,
    ),
    Part("resume", *_run("benchmarks.gpu_runs", "resume", "resume --small"), limit=240),
    Part("trail", *_run("benchmarks.training", "", ""), limit=240),
    Part(
        "micro-batches",
        *_run("benchmarks.split", "--device cuda", "--device cpu --small --batch 16 --rounds 1"),
        limit=150,
    ),
    Part("world", *_run("benchmarks.world", "devices", "devices"), limit=240),
    # What bounds a step.
    Part(
        "products",
        *_run(
            "benchmarks.portable_steps",
            "products",
            "products --device cpu --small",
            "--out OUT/portable-steps-cuda-products.json",
        ),
        limit=120,
    ),
    Part("profile", *_run("benchmarks.profile_step", "--precision tf32", "--help"), limit=150),
    Part("profile-fp32", *_run("benchmarks.profile_step", "--precision fp32", "--help"), limit=150),
    Part("pooling", *_run("benchmarks.pooling", "", ""), limit=90, least=30),
    Part(
        "images",
        *_run("benchmarks.gpu_runs", "images --data DATA/breastmnist.npz", "--help"),
        limit=200,
        data="breastmnist.npz",
    ),
    Part(
        "images-tf32",
        *_run(
            "benchmarks.gpu_runs", "images --precision tf32 --data DATA/breastmnist.npz", "--help"
        ),
        limit=150,
        data="breastmnist.npz",
    ),
)
