"""Which rhythm holds when: the rhythm annotations of a WFDB record, as spans of samples.

An annotation such as "(AFIB" holds until the next one, the last until the record ends. Time before
the first is unlabelled. Notes that do not begin with a bracket are about beats and are passed by.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seedless.core.errors import DataError
from seedless.data.readers.wfdb_records import Header


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
    # wfdb reads a cut file as far as it goes and says nothing; a whole one ends with a zero word.
    if path.read_bytes()[-2:] != b"\0\0":
        raise DataError(f"{where}: truncated: no end mark; fetch the file again")
    try:
        with warnings.catch_warnings():  # wfdb 4.3 uses what pandas 3 is about to drop
            warnings.simplefilter("ignore", DeprecationWarning)
            import wfdb

            notes = wfdb.rdann(str(path.with_suffix("")), annotator)
    except Exception as error:  # wfdb raises whatever its parsing runs into
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


def label_windows(
    spans: Sequence[Span], classes: Sequence[Sequence[str]], length: float, count: int
) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Label ``count`` windows of ``length`` samples; say which of them are unlabelled.

    A class, given by its rhythms, is present where they hold for more than half of the window: at
    most one class is, and a window shared half and half has none. A window is unlabelled where
    annotated time does not make up more than half of it.
    """
    edges = np.arange(count + 1) * length
    held = np.zeros((count, len(classes)))
    annotated = np.zeros(count)
    for span in spans:
        overlap = np.minimum(span.stop, edges[1:]) - np.maximum(span.start, edges[:-1])
        overlap = np.maximum(overlap, 0)
        annotated += overlap
        for column, rhythms in enumerate(classes):
            if span.rhythm in rhythms:
                held[:, column] += overlap
    return (2 * held > length).astype(np.uint8), ~(2 * annotated > length)
