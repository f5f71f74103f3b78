"""Count the draws from Python's and numpy's global generators, by the user's line.

torch's draws are operations, and are recorded as such. A wrapper calls what it wraps with the same
arguments and returns the same result: it never touches the generator.
"""

from __future__ import annotations

import functools
import sys
from types import ModuleType
from typing import Any, Callable

from .import_hooks import name_wrapper
from .numpy_global import make_recorded
from .recorder import Recorder
from .user_lines import find_user_frame, is_for_itself, show_frame

PYTHON_DRAWS = (
    *("random", "uniform", "randint", "randrange", "choice", "choices", "sample", "shuffle"),
    *("gauss", "normalvariate", "betavariate", "expovariate", "gammavariate", "lognormvariate"),
    *("paretovariate", "triangular", "vonmisesvariate", "weibullvariate", "binomialvariate"),
    *("getrandbits", "randbytes"),
)
NOT_DRAWS = ("seed", "get_state", "set_state")
MAX_LINES = 200  # between two steps


def _is_never_compiling() -> bool:
    return False


class DrawRecorder:
    """Counts draws since the last step."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._counts: dict[tuple[Any, ...], int] = {}
        self._is_compiling: Callable[[], bool] = _is_never_compiling
        recorder.before_line.append(self.write)
        recorder.after_fork.append(self._forget)

    def skip_while(self, is_compiling: Callable[[], bool]) -> None:
        """Count nothing while torch's compiler traces a call."""
        self._is_compiling = is_compiling

    def watch_python(self, module: ModuleType) -> None:
        """Count what `random.random` and the like draw."""
        for name in PYTHON_DRAWS:
            if hasattr(module, name):
                function = getattr(module, name)
                wrapper = self._count("python", f"random.{name}", function, module.getstate)
                setattr(module, name, name_wrapper(wrapper, "random", name))

    def watch_numpy(self, module: ModuleType) -> None:
        """Count what `np.random.rand` and the like draw; all are methods of one generator."""
        mtrand: Any = sys.modules["numpy.random.mtrand"]
        generator = mtrand._rand
        for name in dir(module):
            function = getattr(module, name)
            if getattr(function, "__self__", None) is generator and name not in NOT_DRAWS:
                wrapper = self._count("numpy", f"np.random.{name}", function, module.get_state)
                setattr(module, name, name_wrapper(wrapper, "numpy.random", name))

        def record(name: str, method: Any) -> Any:
            if name in NOT_DRAWS:
                return method
            return self._count("numpy", f"np.random.{name}", method, module.get_state)

        mtrand._rand = make_recorded(generator, record)

    def write(self) -> None:
        """Write a line for each place that has drawn since the last call."""
        counts, self._counts = self._counts, {}
        for (generator, call, code, number), count in list(counts.items())[:MAX_LINES]:
            line = "" if code is None else show_frame(code, number)
            self.recorder.file.write(
                {
                    "kind": "draws",
                    "generator": generator,
                    "call": call,
                    "line": line,
                    "count": count,
                }
            )

    def _forget(self) -> None:
        self._counts = {}

    def _count(self, generator: str, call: str, function: Any, read_state: Any) -> Any:
        """Return the function, counted."""

        @functools.wraps(function)
        def counted(*args: Any, **kwargs: Any) -> Any:
            if self._is_compiling():
                return function(*args, **kwargs)
            result = function(*args, **kwargs)
            self._note(generator, call, sys._getframe(1), read_state)
            return result

        return counted

    def _note(self, generator: str, call: str, caller: Any, read_state: Any) -> None:
        recorder = self.recorder
        if recorder.is_busy or recorder.ended:
            return
        if is_for_itself(caller):
            return
        frame = find_user_frame(caller)
        code, number = (None, 0) if frame is None else (frame.f_code, frame.f_lineno)
        key = (generator, call, code, number)
        self._counts[key] = self._counts.get(key, 0) + 1
        for listener in recorder.on_draw:
            # What a draw returns depends on its arguments too, as the list that `shuffle` is given;
            # the state that it leaves does not.
            line = "" if code is None else show_frame(code, number)
            listener(generator, call, line, read_state())
