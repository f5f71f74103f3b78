"""The recorder of one process: its settings, its file, and the guard around everything it does."""

from __future__ import annotations

import functools
import os
import sys
import threading
from typing import Any, Callable  # Python 3.9 runs this file too

from .record_file import RecordFile, show_error
from .settings import Settings

STEPS_UNTIL_HARD_EXIT = 3


class Recorder:
    """What all parts of the recorder share.

    Attributes:
        settings: what to record.
        file: the record of this process.
        step: the number of optimizer steps that have ended.
        before_step: functions called with the optimizer that is about to make a step.
        before_line: functions called before the line of a step is written, to write theirs.
        after_step: functions called with the number of the step that has just been written.
        before_end: functions called before the last line is written.
        after_fork: functions called in a forked process.
        on_draw: functions called with generator, name, line and the generator's state after each
            draw.
        ended: whether the last line is written.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.file = RecordFile(settings.folder)
        self.step = 0
        self.before_line: list[Callable[[], None]] = []
        self.before_end: list[Callable[[], None]] = []
        self.after_step: list[Callable[[int], None]] = []
        self.before_step: list[Callable[[Any], None]] = []
        self.after_fork: list[Callable[[], None]] = []
        self.on_draw: list[Callable[[str, str, str, Any], None]] = []
        self.ended = False
        self._attempts = 0
        self._local = threading.local()
        os.register_at_fork(after_in_child=self._start_in_fork)

    @property
    def is_busy(self) -> bool:
        """Whether this thread is inside the recorder: what it does there is not the script's."""
        return getattr(self._local, "busy", False)

    def guard(self, function: Callable[..., None], nested: bool = False) -> Callable[..., None]:
        """Return the function, made harmless: its failure ends the record and not the script.

        It does nothing once recording has ended, nor, unless ``nested``, inside the recorder.
        """

        @functools.wraps(function)
        def guarded(*args: Any, **kwargs: Any) -> None:
            busy = self.is_busy
            if self.ended or self.file.failed or (busy and not nested):
                return
            self._local.busy = True
            try:
                function(*args, **kwargs)
            except Exception as error:  # the script goes on, whatever we did wrong
                self._fail(getattr(function, "__name__", "start"), error)
            finally:
                self._local.busy = busy

        return guarded

    def finish_step(self) -> None:
        """Count a step, and end the process where the settings say so."""
        self.step += 1
        for function in self.after_step:
            function(self.step)

    def end_if_asked(self) -> None:
        """End the process after the last wanted step; the script may catch the first attempts."""
        last = self.settings.end_after
        if last is None or self.step < last:
            return
        self.end("end_after")
        self._attempts += 1
        in_main = threading.current_thread() is threading.main_thread()
        if not in_main or self._attempts > STEPS_UNTIL_HARD_EXIT:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)
        raise SystemExit(0)

    def end(self, reason: str | None = None) -> None:
        """Write the last lines, once."""
        if self.ended or self.file.failed:
            return
        error = getattr(sys, "last_value", None)
        self._local.busy = True
        try:
            self.file.open()
            for function in self.before_end:
                function()
            self.file.write(
                {
                    "kind": "end",
                    "steps": self.step,
                    "reason": reason or ("exit" if error is None else "exception"),
                    "error": None if error is None else show_error(error),
                }
            )
            self.file.flush()
        except Exception as failure:  # nothing of ours may change how the script ends
            self._fail("end", failure)
        finally:
            self._local.busy = False
            self.ended = True

    def _fail(self, where: str, error: Exception) -> None:
        try:
            self.file.fail(where, error)
        except Exception:  # not even the file can be written
            self.file.failed = True

    def _start_in_fork(self) -> None:
        """Begin a new record in a forked process."""
        self.file.forget()
        self.step = 0
        self.ended = False
        self._local = threading.local()
        for function in self.after_fork:
            function()
