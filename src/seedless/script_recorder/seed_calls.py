"""Record every call that seeds a generator; for experiments, replace what comes from entropy.

Wrappers are set on the modules before the user's code imports them. Generators of the standard
library, as for the names of temporary files, and those that a package makes when it is imported are
neither recorded nor replaced.
"""

from __future__ import annotations

import functools
import sys
from numbers import Integral
from types import FrameType, ModuleType
from typing import Any

from .import_hooks import name_wrapper
from .recorder import Recorder
from .user_lines import find_user_line, is_for_itself, is_standard_library

MAX_SEED_LINES = 1000  # of one process; a script that seeds for each sample would write too many
MAX_GENERATORS = 16
COMPILER_WRAPPERS = ("/torch/_dynamo/", "/torch/_compile.py")
LONGEST_VALUE = 80


class SeedRecorder:
    """Writes a line for each seed; knows what an experiment puts in its place.

    Attributes:
        generators: those that `default_rng` made, and those of DataLoaders, by name. They are kept
            alive: numpy's have no weak references.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.seeds = recorder.settings.seeds
        self.generators: dict[str, Any] = {}
        self._lines = 0
        self._depth = 0

    def choose(self, key: str, given: Any) -> Any:
        """Return the seed to use where the script gives ``given``; None means from entropy."""
        if key in self.seeds and (given is None or self.seeds.get("values")):
            return self.seeds[key]
        return given

    def write(self, generator: str, call: str, value: Any, frame: FrameType | None = None) -> None:
        """Write the line of a seed."""
        frame = frame or _find_caller(__file__)
        self._lines += 1
        if self._lines > MAX_SEED_LINES or is_for_itself(frame):
            return
        by_loader = frame is not None and frame.f_code.co_name == "_worker_loop"
        line = "" if by_loader else find_user_line(frame)
        text = None if value is None else str(value)[:LONGEST_VALUE]
        record = {"kind": "seed", "generator": generator, "call": call, "value": text, "line": line}
        self.recorder.file.write(record)

    def see_torch_generator(self, generator: Any) -> None:
        """Record the seed of a DataLoader's generator, the first time it is met."""
        if any(generator is each for each in self.generators.values()):
            return
        self.write("torch-generator", "torch.Generator.manual_seed", generator.initial_seed())
        if "torch" in self.seeds:
            generator.manual_seed(self.seeds["torch"])
        self._keep("torch-generator", generator)

    def _keep(self, kind: str, generator: Any) -> None:
        if len(self.generators) < MAX_GENERATORS:
            self.generators[f"{kind}:{len(self.generators)}"] = generator

    def watch_python(self, module: ModuleType) -> None:
        """Record `random.seed` and `random.Random()`."""
        random: Any = module
        seed = random.Random.seed

        @functools.wraps(seed)
        def recorded_seed(self: Any, a: Any = None, version: int = 2) -> Any:
            frame = _find_caller(random.__file__) or sys._getframe()
            if is_standard_library(frame.f_code.co_filename) or is_for_itself(frame):
                return seed(self, a, version)
            is_global = self is getattr(random, "_inst", None)
            recorded.write(
                "python" if is_global else "python-generator",
                "random.seed" if is_global else "random.Random",
                a,
                frame,
            )
            return seed(self, recorded.choose("python", a), version)

        recorded = self
        random.Random.seed = recorded_seed
        random.seed = random._inst.seed
        if "python" in self.seeds:
            seed(random._inst, self.seeds["python"])

    def watch_numpy(self, module: ModuleType) -> None:
        """Record numpy's seeds; all its entropy comes from one function."""
        numpy_random: Any = module
        entropy: Any = sys.modules["numpy.random.bit_generator"]
        random_bits = entropy.randbits
        seed, default_rng = numpy_random.seed, numpy_random.default_rng
        if "numpy" in self.seeds:
            seed(self.seeds["numpy"])

        @functools.wraps(random_bits)
        def recorded_bits(bits: int) -> int:
            value = self.choose("numpy", None)
            if not self._depth:
                self.write("numpy-generator", "numpy.random.SeedSequence", None)
            return random_bits(bits) if value is None else int(value)

        @functools.wraps(seed)
        def recorded_seed(seed_value: Any = None) -> Any:
            self.write("numpy", "np.random.seed", seed_value)
            self._depth += 1
            try:
                return seed(self.choose("numpy", seed_value))
            finally:
                self._depth -= 1

        @functools.wraps(default_rng)
        def recorded_default_rng(seed: Any = None) -> Any:
            plain = seed is None or isinstance(seed, (Integral, list, tuple))
            if plain:
                self.write("numpy-generator", "np.random.default_rng", seed)
            self._depth += 1
            try:
                generator = default_rng(self.choose("numpy", seed) if plain else seed)
            finally:
                self._depth -= 1
            if not is_for_itself(_find_caller(__file__)):
                self._keep("numpy-generator", generator)
            return generator

        entropy.randbits = recorded_bits
        numpy_random.RandomState = self._record_random_state(numpy_random.RandomState)
        numpy_random.seed = name_wrapper(recorded_seed, "numpy.random", "seed")
        numpy_random.default_rng = name_wrapper(recorded_default_rng, "numpy.random", "default_rng")

    def _record_random_state(self, made: Any) -> Any:
        """Return the class `RandomState`, recorded.

        It takes entropy before it is seeded: without this class, every RandomState(0) would be
        recorded as unseeded. All generators of numpy's own class count as instances of this one.
        """
        recorded = self

        class SameInstances(type):
            def __instancecheck__(cls, instance: Any) -> bool:
                return issubclass(type(instance), cls)

            def __subclasscheck__(cls, other: Any) -> bool:
                return issubclass(other, made) if cls is random_state else cls in other.__mro__

        class RandomState(made, metaclass=SameInstances):  # type: ignore[misc]
            __doc__ = made.__doc__

            def __init__(self, seed: Any = None) -> None:
                plain = seed is None or isinstance(seed, (Integral, list, tuple))
                if plain:
                    recorded.write("numpy-generator", "np.random.RandomState", seed)
                recorded._depth += 1
                try:
                    super().__init__(recorded.choose("numpy", seed) if plain else seed)
                finally:
                    recorded._depth -= 1

        random_state = name_wrapper(RandomState, made.__module__, "RandomState")
        return random_state

    def watch_torch(self, module: ModuleType) -> None:
        """Record torch's seeds of the CPU and of the GPU."""
        torch: Any = module
        if "torch" in self.seeds:
            torch.manual_seed(self.seeds["torch"])
        for owners, prefix, generator, names in (
            ((torch, torch.random), "torch", "torch", ("manual_seed", "seed")),
            (
                (torch.cuda, torch.cuda.random),
                "torch.cuda",
                "cuda",
                ("manual_seed", "manual_seed_all", "seed", "seed_all"),
            ),
        ):
            for name in names:
                recorded = self._record_torch_seed(getattr(owners[0], name), generator, prefix)
                for owner in owners:
                    setattr(owner, name, recorded)

    def _record_torch_seed(self, function: Any, generator: str, prefix: str) -> Any:
        """Return the function, recorded; `manual_seed` calls the GPU's, which writes no line."""
        name = function.__name__
        explicit = name.startswith("manual_seed")
        manual_seed = function

        @functools.wraps(function)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            given = (args or tuple(kwargs.values()) or (None,))[0] if explicit else None
            if not self._depth:
                self.write(generator, f"{prefix}.{name}", given)
            self._depth += 1
            try:
                value = self.choose("torch", given)
                if value is given or value == given:
                    return manual_seed(*args, **kwargs)
                return self._seed_torch(generator, name, value)
            finally:
                self._depth -= 1

        return recorded

    def _seed_torch(self, generator: str, name: str, value: int) -> Any:
        """Seed with ``value``; return what the replaced function would: a seed or a generator."""
        torch: Any = sys.modules["torch"]
        seeded = torch.manual_seed if generator == "torch" else torch.cuda.manual_seed_all
        result = seeded.__wrapped__(value)
        return result if name.startswith("manual_seed") else value


def _find_caller(file: str) -> FrameType | None:
    """Return the innermost frame outside this file, the given one and torch's compiler.

    The compiler, once imported, puts a wrapper of its own around `torch.manual_seed`.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (
        frame.f_code.co_filename in (__file__, file)
        or any(part in frame.f_code.co_filename for part in COMPILER_WRAPPERS)
    ):
        frame = frame.f_back
    return frame
