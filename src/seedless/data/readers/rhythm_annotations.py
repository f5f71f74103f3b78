"""The rhythm annotations of a WFDB record, as spans of samples.

An annotation such as "(AFIB" is valid until the next one, the last until the record ends. Time
before the first is unlabelled. Annotations that do not begin with a bracket are about single beats
and are ignored.
"""

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
    # wfdb reads a truncated file as far as it goes, without an error; a whole one ends with zeros.
    if path.read_bytes()[-2:] != b"\0\0":
        raise DataError(f"{where}: truncated: no end mark; fetch the file again")
    try:
        with warnings.catch_warnings():  # wfdb 4.3 uses what pandas 3 is about to drop
            warnings.simplefilter("ignore", DeprecationWarning)
            import wfdb

            notes = wfdb.rdann(str(path.with_suffix("")), annotator)
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
