"""Write docs/speed.md from the recorded results, so that no figure there is typed by hand:

    python -m benchmarks.speed

A result that is not recorded leaves its section out.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.measure import RESULTS

PAGE = RESULTS.parent.parent / "docs" / "speed.md"

Found = Mapping[str, Any]

OPENING = """\
# How fast it is

Deterministic training has a name for being slow. Most of that is how convolutions are written:
cuDNN falls back to slow algorithms when it may not add in any order. Here a 1-D convolution is a
matrix product over windows, pooling has an explicit gradient, the optimizer is fused, and the whole
step, from gathering the batch to the update, is one CUDA graph. For signals nothing is left that
would have to be switched off. Images go through cuDNN's convolutions, whose deterministic
algorithms cost something in fp32 (below).

| `execution.mode` | what it is | bits |
|---|---|---|
| `eager` | one kernel after another | |
| `graph` (the default on a GPU) | the same kernels, launched as one CUDA graph | eager's |
| `compiled` | kernels fused by torch.compile, in one CUDA graph | its own, said in the receipt |

`execution.precision` is `fp32` (the default), `tf32` or `bf16`; each repeats bit for bit and none
shares its bits with another. Compiled runs must also repeat when each process compiles for itself.
With torch's own deterministic mode alone they were seen not to: it still times the shapes of
pointwise kernels. That is off here too (`seedless.train.step_modes.configure_compiler`), and a
test trains with a cold, a warm and another cold cache (`tests/gpu/test_forms.py`). Full
batches alone are compiled for; the short one at the end of an epoch takes the eager kernels, as
evaluation does.

`seedless bench` measures the step of any of the four models against the step most people write
(torch's own layers and default settings, autotuned, TF32 where torch has it on; and with TF32 off:
the faster counts) and against the same in deterministic mode. Rivals take turns in one process.
"""


def read_results(name: str) -> Found | None:
    """Return a recorded result with its command and environment, or None."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def describe(found: Found) -> str:
    """Return the machine and the command in one line."""
    environment = found["environment"]
    devices = environment["devices"]
    place = devices[0]["name"] if devices else environment["cpu"]["model"]
    threads = environment["threads"]["intraop"]
    torch = environment["packages"]["torch"]
    return f"{place}, {threads} threads, torch {torch}; `{found['command']}`"


def tell_bench(found: Found) -> str:
    """Return the table of rivals."""
    results = found["results"]
    lines = [
        f"## One step of the {results['model']}, batches of {results['batch']}, on "
        f"{'a GPU' if results['device'] == 'cuda' else 'a CPU'}",
        "",
        "| | ms a step | samples a second | times plain | times plain deterministic | repeats |",
        "|---|--:|--:|--:|--:|---|",
    ]
    for row in results["rows"]:
        if row["error"]:
            lines.append(f"| {row['name']} | does not run: {row['error']} | | | | |")
            continue
        lines.append(
            f"| {row['name']} | {row['ms_per_step']:.2f} | {row['samples_per_second']:,.0f} | "
            f"{row['to_plain']:.2f} | {row['to_deterministic']:.2f} | "
            f"{'yes' if row['repeats'] else 'no'} |"
        )
    lines += [
        "",
        f"Medians of {results['rounds']} rounds of {results['steps']} steps. {describe(found)}.",
    ]
    return "\n".join(lines)


def tell_profile(found: Found) -> str:
    """Return what bounds a step."""
    results = found["results"]
    step, floor, work = results["step"], results["floor_ms"], results["work"]
    kinds = sorted(step["kinds"].items(), key=lambda item: -item[1]["microseconds"])
    lines = [
        "## What bounds it",
        "",
        f"A compiled step of {step['ms_per_step']:.2f} ms launches {step['kernels']:,.0f} kernels, "
        f"which are busy for {step['kernel_microseconds'] / 1e3:.2f} ms. Its products need "
        f"{work['operations'] / 1e9:.0f} GFLOP, {floor['arithmetic']:.2f} ms at the rate this "
        "device reaches on large matrices; the tensors it keeps for the backward "
        f"({work['kept_bytes'] / 2**30:.2f} GiB, in eager form) and the weights need "
        f"{floor['memory']:.2f} ms at the rate of a large copy. The rest is size: a kernel takes "
        f"{step['kernel_microseconds'] / step['kernels']:.1f} µs on average, too short to fill the "
        "card. Fewer, larger kernels would help; faster arithmetic would not.",
        "",
        "| kernels | a step | ms |",
        "|---|--:|--:|",
        *(
            f"| {name} | {kind['kernels']:.0f} | {kind['microseconds'] / 1e3:.2f} |"
            for name, kind in kinds
        ),
        "",
        f"{describe(found)}.",
    ]
    return "\n".join(lines)


def tell_training(found: Found) -> str:
    """Return what proof costs."""
    results = found["results"]["gpu"]
    return (
        "## What the trail costs\n\n"
        "Trail, log and checkpoints are written by a thread while the device computes. They add "
        f"{results['share_of_85_epochs']:.2%} to the published run of 85 epochs, and "
        f"{results['share']:.2%} to one of {results['epochs']}, whose last hash and checkpoint "
        f"are waited for all the same. {describe(found)}."
    )


def tell_full(found: Found) -> str:
    """Return the whole run, twice."""
    results = found["results"]
    seconds = " and ".join(f"{value:.0f} s" for value in results["epochs_seconds"])
    processes = " and ".join(f"{value:.0f} s" for value in results["process_seconds"])
    first = " and ".join(f"{value:.0f} s" for value in results["first_epoch_seconds"])
    later = statistics.median(results["later_epoch_seconds"])
    same = "equal" if results["states_equal"] else "NOT EQUAL"
    return (
        "## A whole run\n\n"
        f"The conformer on simulated records of 12 x 1000, {results['records']['train']:,} in "
        "training folds, of which those with a label are trained on, "
        f"{results['config']['train']['epochs']} epochs ({results['steps']:,} steps), "
        f"compiled, {results['config']['execution']['precision']}, validated every "
        f"{results['config']['train']['evaluate_every']} epochs, in two processes that share no "
        f"compile cache: {seconds} of training, {processes} from start to receipt. The first "
        f"epoch, which compiles, takes {first}, a later one {later:.2f} s. All "
        f"{results['states_compared']} states are {same}; weights "
        f"`{results['digests'][0][:23]}` and `{results['digests'][1][:23]}`. {describe(found)}."
    )


def tell_images(found: Found) -> str:
    """Return the image run beside the plain loop."""
    results = found["results"]
    ours, plain = results["ours"], results["plain_seconds"]
    same = "equal" if ours["states_equal"] else "NOT EQUAL"
    precision = ours["config"]["execution"]["precision"]
    return (
        f"## Images, {precision}\n\n"
        f"ResNet-18 on BreastMNIST, {ours['config']['train']['epochs']} epochs "
        f"({ours['steps']:,} steps) of the published protocol: "
        f"{min(ours['epochs_seconds']):.1f} s, augmentation, validation, trail and checkpoints "
        f"included; the plain loop, without any of these, once took {plain['plain']:.1f} s with "
        f"TF32, torch's default for convolutions, and {plain['plain, TF32 off']:.1f} s without. "
        f"Ours is {results['times_as_fast']:.2f} times as fast as the faster. Two processes: all "
        f"{ours['states_compared']} states {same}. {describe(found)}."
    )


def tell_together(found: Found) -> str:
    """Return runs at once."""
    results = found["results"]
    same = "each has the bits it has alone" if results["same"] else "THE BITS DIFFER"
    return (
        "## Runs at once\n\n"
        f"{results['runs']} runs on one device: {same}. One after the other they train "
        f"{results['alone_samples_per_second']:,.0f} samples a second, at once "
        f"{results['together_samples_per_second']:,.0f} ({results['gain']:.2f} times as many), "
        f"the start of the processes included. {describe(found)}."
    )


def tell_pooling(found: Found) -> str:
    """Return the share of pooling."""
    results = found["results"]
    place = "GPU" if found["environment"]["devices"] else "CPU"
    return (
        f"## Pooling with an explicit gradient, on a {place}\n\n"
        f"The {results['pools']} adaptive averages of the conformer, forward and backward, take "
        f"{results['share']:.2%} of a step ({results['pools_ms']:.2f} of "
        f"{results['step_ms']:.1f} ms, batches of {results['batch']}). {describe(found)}."
    )


SECTIONS: tuple[tuple[str, Callable[[Found], str]], ...] = (
    ("bench-gpu", tell_bench),
    ("profile-tf32", tell_profile),
    ("gpu-full", tell_full),
    ("bench-gpu-resnet18", tell_bench),
    ("gpu-images", tell_images),
    ("gpu-images-tf32", tell_images),
    ("gpu-together", tell_together),
    ("training-gpu", tell_training),
    ("bench-cpu", tell_bench),
    ("pooling-cuda", tell_pooling),
    ("pooling-cpu", tell_pooling),
)


def make_page() -> str:
    """Return the page."""
    told = [tell(found) for name, tell in SECTIONS if (found := read_results(name)) is not None]
    return "\n\n".join([OPENING.rstrip(), *told]) + "\n"


def main() -> None:
    """Write the page and print where."""
    PAGE.write_text(make_page(), encoding="utf-8")
    print(PAGE.relative_to(Path.cwd()) if PAGE.is_relative_to(Path.cwd()) else PAGE)


if __name__ == "__main__":
    main()
