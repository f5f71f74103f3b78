"""Read files that someone else may have written, in bounded time and memory.

Such a file can be a link or a pipe, have any size, and be nested to any depth. Sizes, depths and
counts are therefore checked before a file is read or parsed; what exceeds them is an error that
says the limit. array_files.py and tensor_files.py read arrays and tensors on top of this.
"""

import errno
import json
import math
import os
import re
import stat
import tomllib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from seedless.core.errors import RunError, SeedlessError

MAX_JSON_BYTES = 16 * 2**20
MAX_JSON_DEPTH = 64
MAX_JSON_VALUES = 1_000_000
MAX_TOML_BYTES = 256 * 2**10
MAX_KEY_FILE_BYTES = 64 * 2**10

_MAX_TOML_BRACKETS = 200  # tomllib recurses once for each nested bracket
_MAX_TOML_DOTS = 2_000  # in one line: its time grows with the square of a dotted key's length
_MAX_TOML_DEPTH = 16
_MAX_NUMBER_CHARACTERS = 1_000

# Text in JSON. It matches at every quotation mark, also where the text is not closed: otherwise the
# search would begin again at each mark that follows, and take the square of the time.
_JSON_TEXT = re.compile(rb'"(?:[^"\\]++|\\.?)*+(?:"|\Z)', re.DOTALL)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_STEP = np.zeros(256, dtype=np.int8)
_STEP[list(b"[{")] = 1
_STEP[list(b"]}")] = -1
_NOT_STRUCTURE = bytes(set(range(256)) - set(b"[]{},"))


def open_plain_file(
    path: Path,
    max_bytes: int | None = None,
    *,
    follow_links: bool = False,
    error: type[SeedlessError] = RunError,
) -> IO[bytes]:
    """Open a plain file of at most ``max_bytes`` for reading.

    A link, a pipe, a device and a folder are refused, without waiting for them. A missing or
    unreadable file raises the usual OSError.

    Args:
        path: the file.
        max_bytes: the limit; None for a file of any size, which is not read at once.
        follow_links: for a file that the user named, which may be a link.
        error: the type of error that a refusal raises.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow_links else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags)
    except OSError as problem:
        kinds = {errno.ELOOP: "a link", errno.ENXIO: "a socket"}
        if problem.errno not in kinds:
            raise
        raise error(_refuse_kind(path, kinds[problem.errno])) from None
    try:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(found.st_mode):
            raise error(_refuse_kind(path, "a pipe or a device"))
        if max_bytes is not None and found.st_size > max_bytes:
            raise error(_refuse_size(str(path), found.st_size, max_bytes))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_file(
    path: Path,
    max_bytes: int,
    *,
    follow_links: bool = False,
    error: type[SeedlessError] = RunError,
) -> bytes:
    """Return the content of a plain file of at most ``max_bytes``; see `open_plain_file`.

    Example: ``read_file(run / "metrics.json", MAX_JSON_BYTES)``.
    """
    with open_plain_file(path, max_bytes, follow_links=follow_links, error=error) as file:
        content = file.read(max_bytes + 1)  # it may have grown since it was opened
    if len(content) > max_bytes:
        raise error(_refuse_size(str(path), len(content), max_bytes))
    return content


def read_lines(path: Path, max_bytes: int, max_line_bytes: int) -> Iterator[bytes]:
    """Yield the lines of a plain file, each with its line feed; the last one may have none.

    Only one line at a time is in memory. A file or a line that is too long raises RunError.
    """
    with open_plain_file(path, max_bytes) as file:
        number = size = 0
        while line := file.readline(max_line_bytes + 1):
            number, size = number + 1, size + len(line)
            if len(line) > max_line_bytes:
                raise RunError(
                    f"{path}: line {number} has more than {max_line_bytes:,} bytes, the most that "
                    "are read of one line"
                )
            if size > max_bytes:
                raise RunError(_refuse_size(str(path), size, max_bytes))
            yield line


def read_json_lines(
    path: Path, *, max_bytes: int, max_values: int, max_line_bytes: int = MAX_JSON_BYTES
) -> Iterator[tuple[bytes, Any]]:
    """Yield each line of a file of JSON lines, with its line feed, and its value.

    A last line without a line feed, as a killed process leaves it, is not parsed; its value is
    None.
    """
    known: dict[str, str] = {}
    values = 0
    lines = read_lines(path, max_bytes, max_line_bytes)
    for number, line in enumerate(lines, start=1):
        values += _count_values(line)
        if values > max_values:
            raise RunError(
                f"{path} holds more than {max_values:,} values up to line {number}, the most that "
                "are read of such a file"
            )
        where = f"{path}: line {number}"
        whole = line.endswith(b"\n")
        yield line, parse_json(line, where, known_keys=known) if whole else None


def parse_json(
    content: bytes,
    where: str,
    *,
    max_depth: int = MAX_JSON_DEPTH,
    max_values: int = MAX_JSON_VALUES,
    known_keys: dict[str, str] | None = None,
    allow_nan: bool = False,
    error: type[SeedlessError] = RunError,
) -> Any:
    """Return the value of a JSON text in UTF-8; refuse what canonical JSON cannot hold.

    Refused are deeper nesting than ``max_depth``, more than ``max_values`` values, a key that
    occurs twice in one object, NaN and infinities, numbers of over 1,000 characters, and halves of
    surrogate pairs.

    Args:
        content: the text. Its size is the caller's to bound, as `read_file` does.
        where: the name of the file, for messages.
        max_depth: how many lists and objects may lie in each other.
        max_values: how many values the text may hold in all.
        known_keys: keys of earlier texts, which are not kept in memory again.
        allow_nan: accept NaN and infinities, as other programs write them.
        error: the type of error that a refusal raises.

    Example:
        >>> parse_json(b'{"a": [1, 2.5]}', "metrics.json")
        {'a': [1, 2.5]}
    """
    # [Step 1] Bound the number of values and the depth. Most texts are within the limits even if
    # every bracket and comma counts; of the others, only those outside text do.
    if _count_values(content) > max_values or content.count(b"[") + content.count(b"{") > max_depth:
        structure = _JSON_TEXT.sub(b"", content).translate(None, _NOT_STRUCTURE)
        if (values := _count_values(structure)) > max_values:
            raise error(f"{where} holds about {values:,} values; at most {max_values:,} are read")
        steps = _STEP[np.frombuffer(structure, dtype=np.uint8)]
        if (depth := int(steps.cumsum(dtype=np.int64).max(initial=0))) > max_depth:
            raise error(f"{where} is nested {depth:,} deep; at most {max_depth} levels are read")
    # [Step 2] Parse, with refusals for what Python would accept or change silently.
    try:
        value = json.loads(
            content.decode("utf-8"),
            object_pairs_hook=partial(_make_object, {} if known_keys is None else known_keys),
            parse_constant=float if allow_nan else _refuse_constant,
            parse_float=float if allow_nan else _parse_float,
            parse_int=_parse_int,
        )
        # [Step 3] "\ud800" alone is no character, and no file can hold it.
        if _SURROGATE.search(content):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except ValueError as problem:
        raise error(f"{where} is not valid JSON: {shorten(str(problem))}") from None
    return value


def parse_toml(
    content: bytes, where: str, *, error: type[SeedlessError] = RunError
) -> dict[str, Any]:
    """Return the values of a TOML text in UTF-8 of at most `MAX_TOML_BYTES`.

    Refused are more than 200 opening brackets, keys in more than 16 tables within each other, and
    integers beyond 64 bits.

    Example:
        >>> parse_toml(b"[train]\\nepochs = 2", "config.toml")
        {'train': {'epochs': 2}}
    """
    # [Step 1] Bound what tomllib recurses over, and what it takes the square of the time for.
    if len(content) > MAX_TOML_BYTES:
        raise error(_refuse_size(where, len(content), MAX_TOML_BYTES))
    if (brackets := content.count(b"[") + content.count(b"{")) > _MAX_TOML_BRACKETS:
        raise error(
            f"{where} has {brackets:,} opening brackets; at most {_MAX_TOML_BRACKETS} are read"
        )
    if (dots := max(line.count(b".") for line in content.split(b"\n"))) > _MAX_TOML_DOTS:
        raise error(f"{where} has a line with {dots:,} dots; at most {_MAX_TOML_DOTS:,} are read")
    # [Step 2] Parse.
    try:
        values = tomllib.loads(content.decode("utf-8"))
    except ValueError as problem:
        raise error(f"{where} is not valid TOML: {shorten(str(problem))}") from None
    # [Step 3] Bound depth and integers, level by level and not by recursion.
    level: list[Any] = [values]
    for _ in range(_MAX_TOML_DEPTH):
        level = [item for value in level for item in _list_items(value)]
        if any(isinstance(item, int) and not -(2**63) <= item < 2**64 for item in level):
            raise error(f"{where} holds an integer beyond 64 bits")
    if level:
        raise error(f"{where} nests its tables and lists more than {_MAX_TOML_DEPTH} deep")
    return values


def shorten(text: str, most: int = 200) -> str:
    """Return a text with its middle left out where it is long, for a message.

    >>> shorten("a" * 500, most=12)
    'aaaa...aaaa'
    """
    if len(text) <= most:
        return text
    part = (most - 3) // 2
    return f"{text[:part]}...{text[-part:]}"


def _count_values(content: bytes) -> int:
    """Return the most values that JSON with these brackets and commas can hold."""
    return 1 + content.count(b",") + content.count(b"[") + content.count(b"{")


def _list_items(value: Any) -> list[Any]:
    """Return what a table or a list holds; nothing for a single value."""
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _make_object(known: dict[str, str], pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = {known.setdefault(key, key): value for key, value in pairs}
    if len(values) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"the key {shorten(key, 80)!r} occurs twice in one object")
            seen.add(key)
    return values


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"it holds {name}, which JSON does not have")


def _parse_float(text: str) -> float:
    if len(text) > _MAX_NUMBER_CHARACTERS or not math.isfinite(value := float(text)):
        raise ValueError(f"the number {shorten(text, 40)} is too long or beyond float64")
    return value


def _parse_int(text: str) -> int:
    if len(text) > _MAX_NUMBER_CHARACTERS:
        raise ValueError(f"the number {shorten(text, 40)} has {len(text):,} digits")
    return int(text)


def _refuse_kind(path: Path, kind: str) -> str:
    return f"{path} is {kind}; expected a plain file. Replace it by the file itself"


def _refuse_size(where: str, size: int, most: int) -> str:
    return f"{where} has {size:,} bytes; at most {most:,} are read of such a file"
