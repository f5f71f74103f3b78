"""A party to a dispute as a process: requests on its standard input, answers on its output.

The command is the user's own choice. Its answers are not: they are read in bounded time and size,
and every one that does not have the form of an answer ends the questions to this party.
"""

import json
import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol, Self

from seedless.core.bounded_reading import MAX_JSON_BYTES, parse_json, shorten
from seedless.core.errors import SeedlessError

_CHUNK_BYTES = 2**20


class PartyError(SeedlessError):
    """A party gave no answer, or one that contradicts itself."""


class Party(Protocol):
    """Whoever answers the requests of a referee.

    Attributes:
        exchanged: bytes that went to and came from it so far.
    """

    exchanged: int

    def ask(self, request: Mapping[str, Any], max_bytes: int = MAX_JSON_BYTES) -> Any:
        """Return the answer to a request; raise `PartyError` where there is none."""


class PartyProcess:
    """A command that answers requests, one line of JSON for each.

    Args:
        command: the program and its arguments.
        environment: its variables; by default this process's.
        seconds: how long it may take for one answer.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
        seconds: float = 600.0,
    ) -> None:
        self.exchanged = 0
        self._seconds = seconds
        self._rest = b""
        try:
            self._process = subprocess.Popen(
                command,
                env=None if environment is None else dict(environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # what it prints could draw on the terminal
            )
        except (OSError, ValueError) as error:
            raise PartyError(f"the command cannot be started: {error}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()

    def ask(self, request: Mapping[str, Any], max_bytes: int = MAX_JSON_BYTES) -> Any:
        """Return the answer to a request; raise `PartyError` where there is none."""
        assert self._process.stdin is not None
        line = json.dumps(request).encode() + b"\n"
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
        except OSError:
            raise PartyError("it ended before it was asked") from None
        answer = self._read_line(max_bytes)
        self.exchanged += len(line) + len(answer)
        found = parse_json(answer, "its answer", error=PartyError)
        if not isinstance(found, dict) or len(found) != 1:
            raise PartyError("expected an answer with one name and its value")
        if "error" in found:
            raise PartyError(f"it answers: {shorten(str(found['error']))}")
        if request["ask"] not in found:
            raise PartyError(f"expected an answer to {request['ask']!r}, got another one")
        return found[request["ask"]]

    def _read_line(self, max_bytes: int) -> bytes:
        """Return the next line of its output, without the line feed."""
        assert self._process.stdout is not None
        descriptor, until = self._process.stdout.fileno(), time.monotonic() + self._seconds
        parts, size = [self._rest], len(self._rest)
        while b"\n" not in parts[-1]:
            if size > max_bytes:
                raise PartyError(f"its answer has more than {max_bytes:,} bytes")
            ready, _, _ = select.select([descriptor], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise PartyError(f"it gave no answer within {self._seconds:g} seconds")
            part = os.read(descriptor, _CHUNK_BYTES)
            if not part:
                raise PartyError("it ended without an answer")
            parts.append(part)
            size += len(part)
        line, _, self._rest = b"".join(parts).partition(b"\n")
        return line
