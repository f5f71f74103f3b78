"""PTB-XL's label tables: which record has which classes; no signal is read."""

import ast
import csv
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seedless.core.dataset import TEN_FOLDS
from seedless.core.errors import DataError
from seedless.core.registry import choose
from seedless.data.class_names import RHYTHMS

SUPERCLASSES = ("NORM", "MI", "STTC", "CD", "HYP")
PTBXL_TASKS: dict[str, tuple[str, ...]] = {"rhythm": RHYTHMS, "superclass": SUPERCLASSES}
TABLE, STATEMENTS = "ptbxl_database.csv", "scp_statements.csv"
FILES = {100: "filename_lr", 500: "filename_hr"}  # samples a second -> column of record paths
_SEX = {"0": "M", "1": "F", "": ""}
_OVER_89 = 300.0  # how the source writes any age above 89


@dataclass(frozen=True, eq=False, kw_only=True)
class Labels:
    """PTB-XL's table without its signals; fields as in `Dataset`.

    ``files`` maps 100 and 500 Hz to each record's path in the folder, without suffix, if the table
    has that column.
    """

    name: str
    Y: NDArray[np.uint8]
    classes: tuple[str, ...]
    folds: NDArray[np.int64]
    ids: NDArray[np.str_]
    patients: NDArray[np.str_]
    sex: NDArray[np.str_] | None
    age: NDArray[np.float32] | None
    files: Mapping[int, tuple[str, ...]]
    warnings: tuple[str, ...] = ()
    protocol: Mapping[str, tuple[int, ...]] = field(default_factory=lambda: TEN_FOLDS)


def read_labels(
    csv_path: str | Path, scp_path: str | Path | None = None, task: str = "rhythm"
) -> Labels:
    """Return the labels in ``ptbxl_database.csv``.

    A code counts if it is present, whatever its likelihood: for rhythms the likelihood is always 0
    (unknown), and for superclasses PTB-XL's own example code does the same. The superclass of a
    code is `diagnostic_class` in ``scp_statements.csv``, by default in the folder of the table; the
    rhythm task does not need it.
    """
    classes = choose("PTB-XL task", task, PTBXL_TASKS)
    path = Path(csv_path)
    default = path.parent / STATEMENTS
    if scp_path is None and (task == "superclass" or default.exists()):
        scp_path = default
    statements = None if scp_path is None else _read_statements(Path(scp_path))
    meaning = statements or {} if task == "superclass" else dict(zip(RHYTHMS, RHYTHMS, strict=True))
    labels, strange = [], Counter[str]()
    columns: dict[str, list[Any]] = {name: [] for name in _PARSERS}
    files: dict[int, list[str]] = {fs: [] for fs in FILES}
    for row in _read_table(path, ("ecg_id", "patient_id", "scp_codes", "strat_fold")):
        where = f"{path}: ecg_id {row['ecg_id']}"
        for name, parse in _PARSERS.items():
            if name in row:
                columns[name].append(parse(row[name], f"{where}: {name}"))
        for fs, name in FILES.items():
            if name in row:
                files[fs].append(row[name])
        codes = _parse_codes(row["scp_codes"], where)
        present = {meaning.get(code) for code in codes}
        labels.append([name in present for name in classes])
        strange.update(code for code in codes if statements and code not in statements)
    if not labels:
        raise DataError(f"{path}: the table holds no records")
    name, count = Counter(columns["ecg_id"]).most_common(1)[0]
    if count > 1:
        raise DataError(f"{path}: ecg_id {name} occurs {count} times")
    return Labels(
        name="ptb-xl",
        Y=np.array(labels, dtype=np.uint8),
        classes=classes,
        folds=np.array(columns["strat_fold"], dtype=np.int64),
        ids=np.array(columns["ecg_id"]),
        patients=np.array(columns["patient_id"]),
        sex=np.array(columns["sex"]) if columns["sex"] else None,
        age=np.array(columns["age"], dtype=np.float32) if columns["age"] else None,
        files={fs: tuple(names) for fs, names in files.items() if names},
        warnings=tuple(
            f"records with the code {code}, which {STATEMENTS} does not list: {count}"
            for code, count in strange.items()
        ),
    )


def _read_table(path: Path, required: tuple[str, ...]) -> Iterator[dict[str, str]]:
    """Yield each row of a CSV file as column -> text; every row must have every column."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            missing = [name for name in required if name not in (reader.fieldnames or ())]
            if missing:
                found = ", ".join(reader.fieldnames or ()) or "an empty file"
                raise DataError(f"{path}: column {', '.join(missing)} is missing; found {found}")
            for row in reader:
                if None in row or None in row.values():
                    raise DataError(
                        f"{path}, line {reader.line_num}: expected {len(reader.fieldnames or ())} "
                        "columns as in the first line; the file is damaged: fetch it again"
                    )
                yield row
    except FileNotFoundError:
        raise DataError(
            f"{path}: no such file; a PTB-XL folder holds {TABLE}, {STATEMENTS}, records100/ and "
            "records500/: name that folder, or run `seedless data fetch ptb-xl`"
        ) from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: the table cannot be read: {error}") from error


def _read_statements(path: Path) -> dict[str, str]:
    """Return {code: diagnostic superclass}, with "" for a code that is not diagnostic."""
    rows = list(_read_table(path, ("", "diagnostic", "diagnostic_class")))
    return {
        row[""]: row["diagnostic_class"] if row["diagnostic"] in ("1", "1.0") else ""
        for row in rows
    }


@lru_cache(maxsize=4096)  # most rows have one of a few hundred texts
def _parse_literal(text: str) -> Any:
    return ast.literal_eval(text)


def _parse_codes(text: str, where: str) -> dict[str, float]:
    """Return {code: likelihood} from a text such as "{'NORM': 100.0, 'SR': 0.0}"."""
    try:
        codes = _parse_literal(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        codes = None
    if not isinstance(codes, dict) or not all(
        isinstance(code, str) and type(value) in (int, float) for code, value in codes.items()
    ):
        raise DataError(
            f"{where}: expected scp_codes such as \"{{'NORM': 100.0, 'SR': 0.0}}\", "
            f"found {text[:80]!r}"
        )
    return codes


def _parse_integer(text: str, where: str) -> str:
    """Return an integer as text; the tables also write it as "15709.0"."""
    try:
        value = float(text)
        if value == int(value):
            return str(int(value))
    except (ValueError, OverflowError):
        pass
    raise DataError(f"{where}: expected a whole number, found {text!r}")


def _parse_fold(text: str, where: str) -> int:
    fold = int(_parse_integer(text, where))
    if not 1 <= fold <= 10:
        raise DataError(f"{where}: expected a fold from 1 to 10, found {text!r}")
    return fold


def _parse_sex(text: str, where: str) -> str:
    code = text.strip() and _parse_integer(text, where)
    if code not in _SEX:
        raise DataError(f"{where}: expected 0 (male), 1 (female) or nothing, found {text!r}")
    return _SEX[code]


def _parse_age(text: str, where: str) -> float:
    try:
        age = float(text or "nan")
    except ValueError:
        raise DataError(f"{where}: expected years, found {text!r}") from None
    return 90.0 if age == _OVER_89 else age


_PARSERS: dict[str, Callable[[str, str], Any]] = {
    "ecg_id": _parse_integer,
    "patient_id": _parse_integer,
    "strat_fold": _parse_fold,
    "sex": _parse_sex,
    "age": _parse_age,
}
