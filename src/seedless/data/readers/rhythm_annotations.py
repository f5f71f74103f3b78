"""The rhythm annotations of a WFDB record, as spans of samples.

An annotation such as "(AFIB" is valid until the next one, the last until the record ends. Time
before the first is unlabelled. Annotations that do not begin with a bracket are about single beats
and are ignored.
"""

import re
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seedless.core.errors import DataError
from seedless.data.readers.wfdb_package import import_wfdb
from seedless.data.readers.wfdb_records import Header

# Codes of annot(5): a change of rhythm, the largest kind of note, an interval in four bytes, a
# text, and the number, subtype and channel of the note before them.
_RHYTHM, _LAST_KIND, _SKIP, _TEXT, _MODIFIERS = 28, 49, 59, 63, (60, 61, 62)
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class Span(NamedTuple):
    """A rhythm, without its bracket, from sample ``start`` up to ``stop``."""

    rhythm: str
    start: int
    stop: int


def read_spans(header: Header, annotator: str = "atr") -> tuple[Span, ...]:
    """Return a record's rhythm spans in time order; they do not overlap."""
    path = header.path.with_suffix(f".{annotator}")
    where = f"{path} (record {header.record})"
    if header.length == 0:
        raise DataError(f"{header.where}: no length, so the last rhythm's end is not known")
    if not path.is_file():
        raise DataError(f"{where}: no such annotation file")
    # wfdb reads a damaged file as far as it goes, without an error.
    check_annotations(path.read_bytes(), where)
    try:
        with warnings.catch_warnings():  # wfdb 4.3 uses what pandas 3 is about to drop
            warnings.simplefilter("ignore", DeprecationWarning)
            notes = import_wfdb().rdann(str(path.with_suffix("")), annotator)
    except DataError:
        raise
    except Exception as error:  # wfdb raises errors of many types
        raise DataError(f"{where}: wfdb cannot read it: {error}") from error
    marks = [
        (int(sample), text.strip("\0 ")[1:])
        for sample, text in zip(notes.sample, notes.aux_note, strict=True)
        if text.startswith("(")
    ]
    starts = [start for start, _ in marks]
    if starts != sorted(starts) or any(not 0 <= start <= header.length for start in starts):
        raise DataError(
            f"{where}: expected rhythm annotations in time order, from 0 to {header.length}, the "
            f"record's length; found {min(starts)} to {max(starts)}: header and annotations "
            "disagree"
        )
    stops = [*starts[1:], header.length]
    spans = zip(marks, stops, strict=False)
    return tuple(Span(rhythm, start, stop) for (start, rhythm), stop in spans if start < stop)


def check_annotations(content: bytes, where: str) -> None:
    """Refuse the bytes of an annotation file, by annot(5) of WFDB, that is cut short or zeroed.

    The file consists of 16-bit words, kind << 10 | interval. An interval above 1,023 follows in
    four bytes, a text in as many bytes as the word says, and zeros end the file.
    """
    if len(content) % 2 or content[-2:] != bytes(2):
        problem = "an odd number of bytes" if len(content) % 2 else "no end mark"
        raise DataError(f"{where}: truncated: {problem}; fetch the file again")
    texts: list[tuple[int, bytes]] = []  # the kind of the note, and its text
    place = kind = 0
    while place < len(content) - 2:
        word = int.from_bytes(content[place : place + 2], "little")
        code, interval, problem = word >> 10, word & 1023, ""
        size = {_SKIP: 4, _TEXT: interval + interval % 2}.get(code, 0)
        following = content[place + 2 : place + 2 + size]
        if word == 0:
            problem = "an end mark"
        elif place + 2 + size > len(content) - 2:
            problem = "the file ends within a text or an interval: a word"
        elif code == _SKIP and not any(following):
            problem = "an interval of 0"
        elif code == _TEXT:
            texts.append((kind, following[:interval]))
            if _CONTROL.search(following[:interval].removesuffix(b"\0")):
                problem = "a text that is damaged"
        elif code not in (*range(1, _LAST_KIND + 1), _SKIP, *_MODIFIERS):
            problem = f"a note of kind {code}"
        if problem:
            raise DataError(f"{where}: damaged: {problem} at byte {place}; fetch the file again")
        kind = code if 1 <= code <= _LAST_KIND else kind
        place += 2 + size
    _check_texts(texts, where)


def _check_texts(texts: Sequence[tuple[int, bytes]], where: str) -> None:
    """Refuse a change of rhythm without its name, and a text that ends unlike the others."""
    for kind, text in texts:
        if kind == _RHYTHM and not text.startswith(b"("):
            shown = text.decode("ascii", "replace")
            raise DataError(
                f"{where}: expected a rhythm such as '(AFIB' where it changes, got {shown!r}"
            )
    if len({text.endswith(b"\0") for _, text in texts}) > 1:
        raise DataError(
            f"{where}: damaged: expected a zero at the end of every text or of none; fetch the "
            "file again"
        )


def label_windows(
    spans: Sequence[Span], classes: Sequence[Sequence[str]], length: float, count: int
) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Return labels (count, K) of windows of ``length`` samples, and which are unlabelled (count,).

    A window has a class if its rhythms fill more than half of the window, so at most one; a window
    that two classes share equally has none. A window is unlabelled if no more than half of it is
    annotated.
    """
    edges = np.arange(count + 1) * length
    filled = np.zeros((count, len(classes)))
    annotated = np.zeros(count)
    for span in spans:
        overlap = np.minimum(span.stop, edges[1:]) - np.maximum(span.start, edges[:-1])
        overlap = np.maximum(overlap, 0)
        annotated += overlap
        for column, rhythms in enumerate(classes):
            if span.rhythm in rhythms:
                filled[:, column] += overlap
    return (2 * filled > length).astype(np.uint8), ~(2 * annotated > length)
