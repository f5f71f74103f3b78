"""The phases of the measurement, in the order of their importance."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.fused_block.checks import check_shape
from benchmarks.fused_block.choices import KERNELS, choose_variants, list_variants
from benchmarks.fused_block.estimate import estimate_shape
from benchmarks.fused_block.images import list_image_rivals, prepare_images
from benchmarks.fused_block.record import Record
from benchmarks.fused_block.settings import PHASES, Settings
from benchmarks.fused_block.steps import (
    FUSED,
    Choose,
    find_batches,
    list_step_rivals,
    prepare_conformer,
)
from benchmarks.fused_block.tiles import BlockShape, Variant
from benchmarks.fused_block.timings import time_shape, time_variant
from benchmarks.fused_block.warm_up import (
    Kernel,
    OtherProcess,
    compile_kernels,
    count_digest_steps,
    train_beside,
    train_steps,
)
from seedless.bench.flags import run_with_flags
from seedless.bench.measure import describe_error, time_steps
from seedless.bench.rivals import Rival
from seedless.numerics.environment import capture_environment


class Measurement:
    """A record and the settings of its phases."""

    def __init__(self, settings: Settings, record: Record) -> None:
        self.settings, self.record = settings, record
        self.device = torch.device(settings.device)
        self.fastest: dict[tuple[str, str, str], tuple[float, Variant]] = {}
        self.spilling: set[Kernel] = set()

    def estimate(self) -> None:
        """Write the floors of every shape, counted beforehand."""
        for shape, precision in self.settings.each_shape():
            variants = choose_variants(shape, precision)
            row = estimate_shape(shape, self.settings.samples, variants, precision)
            self.record.add("estimate", row)

    def check(self) -> None:
        """Compare every shape in every precision with the model's own block in float64."""
        kernels = [
            (kernel, shape, choose_variants(shape, precision)[number], precision)
            for shape, precision in self.settings.each_shape(more=True)
            for number, kernel in enumerate(KERNELS)
        ]
        self.compile("check", kernels)
        for shape, precision in self.settings.each_shape(more=True):
            variants = choose_variants(shape, precision)
            key = {
                "shape": shape.name,
                "precision": precision,
                "variants": [variant.as_values() for variant in variants],
            }
            work = partial(
                check_shape, shape, precision, variants, self.settings.samples, self.device
            )
            self.record.measure("check", key, work)

    def compile(self, phase: str, kernels: Sequence[Kernel]) -> set[Kernel]:
        """Compile kernels in several processes; return those that run without spilling."""

        def work() -> dict[str, Any]:
            rows = compile_kernels(kernels, self.settings.device)
            self.spilling |= {
                kernel
                for kernel, row in zip(kernels, rows, strict=False)  # no rows on a CPU
                if row.get("spills") or "error" in row
            }
            return {"kernels": rows}

        self.record.measure("compile", {"phase": phase}, work)
        return set(kernels) - self.spilling

    def steps(self, others: dict[str, OtherProcess]) -> None:
        """Time whole steps in turns, and compare their digest with that of another process."""
        problem = prepare_conformer(
            self.settings.device, self.settings.samples, self.settings.small
        )
        batches = find_batches(problem)
        # All are waited for before anything is timed: they compute on the same device.
        stop = time.perf_counter() + min(self.record.seconds_left, self.settings.wait_seconds)
        found = {name: other.finish(stop - time.perf_counter()) for name, other in others.items()}
        for precision in self.settings.precisions:
            rivals = list_step_rivals(problem, precision)
            digests = self.take_turns("steps", rivals, batches, digests=True)
            for name, digest in digests.items():
                other = found[precision]["digests"].get(name)
                row = {"name": name, "digest": digest, "other_process": other}
                row["steps"] = count_digest_steps(self.settings.device)
                row["other_errors"] = found[precision]["errors"]
                self.record.add("digests", {**row, "equal": digest == other})

    def take_turns(
        self,
        phase: str,
        rivals: Sequence[Rival],
        batches: Sequence[torch.Tensor],
        digests: bool = False,
    ) -> dict[str, str]:
        """Time the steps of some rivals, round by round; return digests of the fused ones."""
        rounds, steps = self.settings.rounds
        runners, times, taken = {}, {}, {}
        for rival in rivals:
            if self.record.seconds_left <= 0:
                self.record.leave_out(phase, {"name": rival.name})
                continue
            began = time.perf_counter()
            try:
                with run_with_flags(rival.set_flags):
                    runner = rival.make()
                    if digests and rival.name.startswith(FUSED):
                        count = count_digest_steps(self.settings.device)
                        taken[rival.name] = train_steps(runner, batches, count)
                    time_steps(runner, batches, 1, self.device)
                runners[rival], times[rival] = runner, list[float]()
            except Exception as error:  # one rival that does not run leaves the others to measure
                self.record.add(phase, {"name": rival.name, "error": describe_error(error)})
            print(f"{rival.name}: ready after {time.perf_counter() - began:.0f} s", flush=True)
        for turn in range(rounds):
            for rival in runners if turn % 2 == 0 else reversed(runners):
                with run_with_flags(rival.set_flags):
                    times[rival].append(time_steps(runners[rival], batches, steps, self.device))
        for rival, seconds in times.items():
            row = {"name": rival.name, "precision": rival.precision}
            row["ms_per_step"] = 1e3 * statistics.median(seconds)
            self.record.add(phase, {**row, "rounds_ms": [1e3 * second for second in seconds]})
        return taken

    def blocks(self) -> None:
        """Time one block of every shape against the compiled twin."""
        for shape, precision in self.settings.each_shape(more=True):
            key = {"shape": shape.name, "precision": precision, "blocks": shape.count}
            variants = choose_variants(shape, precision)
            work = partial(
                time_shape, shape, precision, variants, self.settings.samples, self.device
            )
            self.record.measure("blocks", key, work)

    def variants(self) -> None:
        """Time the candidates of every kernel, shape by shape; remember the fastest."""
        for shape in self.settings.list_shapes():
            if self.record.seconds_left < self.settings.reserved_seconds:
                self.record.leave_out("variants", {"shape": shape.name})
            elif shape.stride == 1:  # the others are two of the thirty blocks
                self.time_candidates(shape)

    def time_candidates(self, shape: BlockShape) -> None:
        """Compile and time the candidates of one shape; those that spill only if they are fixed."""
        tried = [
            (kernel, shape, variant, precision)
            for precision in self.settings.precisions
            for kernel in KERNELS
            for variant in list_variants(shape, precision, kernel)
        ]
        usable = self.compile(f"variants {shape.name}", tried)
        for candidate in tried:
            kernel, _, variant, precision = candidate
            fixed = choose_variants(shape, precision)
            is_fixed = variant == fixed[KERNELS.index(kernel)]
            if candidate not in usable and not is_fixed:
                continue
            key = {"kernel": kernel, "shape": shape.name, "precision": precision}
            row = {**key, "variant": variant.as_values(), "fixed": is_fixed}
            arguments = (kernel, shape, precision, variant, fixed, self.settings.samples)
            work = partial(self.time_candidate, *arguments, self.device)
            self.record.measure("variants", row, work)

    def time_candidate(self, *arguments: Any) -> dict[str, Any]:
        """Time one variant, and remember it if it is the fastest."""
        kernel, shape, precision, variant = arguments[:4]
        found = time_variant(*arguments)
        place = (kernel, shape.name, precision)
        if place not in self.fastest or found["ms"] < self.fastest[place][0]:
            self.fastest[place] = (found["ms"], variant)
        return found

    def steps_fastest(self) -> None:
        """Time whole steps with the fastest variants where they are not the fixed ones."""
        problem = prepare_conformer(
            self.settings.device, self.settings.samples, self.settings.small
        )
        batches = find_batches(problem)
        for precision in self.settings.precisions:
            rivals = list_step_rivals(problem, precision, self.choose_fastest)
            self.take_turns("steps_fastest", rivals[1:2], batches)

    @property
    def choose_fastest(self) -> Choose:
        """Return the fastest variants of a shape, the fixed ones where none was timed."""

        def choose(shape: BlockShape, precision: str) -> tuple[Variant, Variant]:
            fixed = choose_variants(shape, precision)
            first, second = (
                self.fastest.get((kernel, shape.name, precision), (0.0, fixed[number]))[1]
                for number, kernel in enumerate(KERNELS)
            )
            return first, second

        return choose

    def images(self) -> None:
        """Time ResNet-18 in fp32: ours, plain compiled, and the candidates."""
        problem = prepare_images(self.settings.device, self.settings.samples, self.settings.small)
        for rival in list_image_rivals(problem):
            # One at a time: each that was timed is in the record before the next is compiled.
            self.take_turns("images", [rival], find_batches(problem))


def run_phases(settings: Settings, phases: Sequence[str], out: Path) -> None:
    """Run some phases in their order, and write the record after every row."""
    facts = {
        "command": "python -m benchmarks.fused_block" + " --small" * settings.small,
        "environment": capture_environment(),
        "interpreted": os.environ.get("TRITON_INTERPRET") == "1",
        "samples": settings.samples,
    }
    record = Record(out, settings.limit, facts)
    measurement = Measurement(settings, record)
    work: dict[str, Callable[..., None]] = {name: getattr(measurement, name) for name in PHASES}
    with record.finish(), train_beside(settings, phases, out.parent) as others:
        measurement.estimate()
        for name in PHASES:
            if name not in phases:
                continue
            try:
                work[name](*([others] if name == "steps" else []))
            except Exception as error:  # the other phases still have something to say
                record.add("failed", {"phase": name, "error": describe_error(error)})
