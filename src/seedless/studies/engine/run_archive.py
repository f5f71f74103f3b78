"""Run archives: the finished runs of a study in one file, to continue it on another machine.

A run archive is an xz-compressed tar file whose entries are sorted and have no time, owner or mode:
the same runs give the same bytes, as long as the compressor is the same. Its runs are stripped
(`seedless.proof.stripped_run`): they consist of receipt, configuration, metrics, log and
predictions, and of the weights only on request. Digests hardly compress, so the trail would be most
of an archive; the receipt holds its last digest, with which a second execution is compared.
"""

import io
import lzma
import math
import os
import re
import shutil
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from seedless.core.archive import Rules, unpack
from seedless.core.errors import FORCE, RunError, StudyError
from seedless.core.files import hash_file, replace_when_written
from seedless.proof.receipt import FILE as RECEIPT
from seedless.proof.receipt import STRIPPED_NOTE, WEIGHTS, read_receipt
from seedless.proof.stripped_run import describe_stripped, is_stripped, read_left_out
from seedless.runs.validation import validate
from seedless.studies.engine.findings import FOLDER as FINDINGS
from seedless.studies.engine.findings import parse_finding
from seedless.studies.engine.grid import Point
from seedless.studies.engine.run_identity import KEY_DIGITS, list_keys
from seedless.studies.engine.store import Store, read_failure

MIB = 1 << 20
SLACK = 3 * MIB  # the compressor's buffer and one more run
# Receipts and metrics of many runs are alike, and are packed to a small part of their size.
RULES = Rules(StudyError, "get it again", max_bytes=1 << 33, max_ratio=200, free_bytes=64 * 2**20)
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 1 << 25}]
_NAME = re.compile(
    r"runs/[0-9a-f]{16}/[a-z]+\.[a-z]+|failed/[0-9a-f]{16}\.json|findings/[0-9a-f]{16}-[\w.-]+\.json"
)


@dataclass(frozen=True)
class RunArchive:
    """A run archive that was written: how many runs it holds, its bytes and its digest."""

    file: Path
    runs: int
    size: int
    digest: str


@dataclass(frozen=True)
class Unpacked:
    """How many runs of an archive were new to the store, were known to it, or had failed."""

    new: int
    known: int
    failed: int


def write_run_archives(
    store: Store,
    points: Sequence[Point],
    out: Path,
    *,
    weights: bool = False,
    part_size: int | None = None,
    force: bool = False,
) -> list[RunArchive]:
    """Write the finished runs of some points; return the archives.

    Args:
        weights: include the weights.
        part_size: MiB; write several archives, FILE-1, FILE-2 and so on, none of them larger. Each
            holds whole runs and can be unpacked alone.
        force: replace files that exist.
    """
    if part_size is not None and part_size * MIB <= 2 * SLACK:
        raise StudyError(f"expected parts of more than {2 * SLACK // MIB} MiB, got {part_size}")
    done = {p.key: p for p in points if store.state(p) in ("done", "failed")}
    if not done:
        raise StudyError(f"{store.folder} holds no finished run of this study: nothing to archive")
    written: list[RunArchive] = []
    waiting = [list_files(store, done[key], weights=weights) for key in sorted(done)]
    while waiting:
        name = out if part_size is None else _number_file(out, len(written) + 1)
        if os.path.lexists(name) and not force:
            raise StudyError(
                f"{name} exists already; choose another name, or replace it with {FORCE}"
            )
        limit = math.inf if part_size is None else part_size * MIB - SLACK
        try:
            with replace_when_written(name) as temporary:
                count = _write_tar_xz(temporary, waiting, limit)
        except OSError as error:
            raise StudyError(f"cannot write {name}: {error.strerror or error}") from None
        waiting = waiting[count:]
        size = name.stat().st_size
        if part_size is not None and size > part_size * MIB:
            raise StudyError(
                f"{name} has {size:,} bytes, more than {part_size} MiB: choose a larger --part-size"
            )
        written.append(RunArchive(name, count, size, hash_file(name)))
    return written


def list_files(store: Store, point: Point, *, weights: bool) -> dict[str, Path | bytes]:
    """Return the files of a run by their names in the archive: paths, or contents as bytes.

    A run that is not what its receipt or its point says is not archived.
    """
    run = store.run_folder(point)
    if not store.check(point):
        name = f"failed/{point.key}.json"
        return {name: store.folder / name}
    receipt = read_receipt(run)
    if weights and WEIGHTS in read_left_out(run, receipt):
        raise StudyError(f"{run} is a stripped run without its weights: leave --weights out")
    covered = receipt["predicate"]["files"]
    dropped = [name for name in covered if is_stripped(name, weights=weights)]
    files: dict[str, Path | bytes] = {f"runs/{run.name}/{RECEIPT}": run / RECEIPT}
    for name in (name for name in covered if name not in dropped):
        files[f"runs/{run.name}/{name}"] = run / name
    files[f"runs/{run.name}/{STRIPPED_NOTE}"] = describe_stripped(receipt, dropped)
    for path in sorted((store.folder / FINDINGS).glob(f"{run.name}-*.json")):
        if parse_finding(path)[0] == receipt["predicate"]["digest"]:
            files[f"{FINDINGS}/{path.name}"] = path
    return files


def unpack_run_archive(file: Path, store: Store) -> Unpacked:
    """Put the runs of an archive into a store.

    A run that the store has already is not replaced, and must have the same weights.
    """
    new = known = failed = 0
    # [Step 1] Unpack into a temporary folder, within the limits of `RULES`.
    with unpack(file, "tar.xz", store.folder, RULES) as inside:
        # [Step 2] Refuse any file that `write_run_archives` would not write.
        for path in sorted(inside.rglob("*")):
            name = path.relative_to(inside).as_posix()
            if path.is_file() and not _NAME.fullmatch(name):
                raise StudyError(f"{file} holds {name!r}, which no archive of runs holds; refused")
        # [Step 3] Check everything before anything is moved, so that a refused archive leaves the
        # store as it was.
        runs = sorted((inside / "runs").glob("*"))
        for run in runs:
            _check_run(run, file)
        failures = sorted((inside / "failed").glob("*.json"))
        for path in failures:
            read_failure(path)
        findings = {path: parse_finding(path)[0] for path in (inside / FINDINGS).glob("*.json")}
        if not (runs or failures or findings):
            raise StudyError(f"{file} holds no runs; expected a file of `seedless study archive`")
        # [Step 4] Move the runs, then failures of runs that are not finished here, then findings
        # about exactly the runs that the store has now. The store's own findings are kept.
        for run in runs:
            moved = _move_run(run, store, file)
            new, known = new + moved, known + (not moved)
        for path in failures:
            if not (store.folder / "runs" / path.stem / RECEIPT).exists():
                shutil.move(path, store.folder / "failed" / path.name)
                failed += 1
        for path, receipt in findings.items():
            place = store.folder / FINDINGS / path.name
            if receipt == _digest_receipt(store, path) and not place.exists():
                place.parent.mkdir(exist_ok=True)
                shutil.move(path, place)
    return Unpacked(new, known, failed)


def _check_run(run: Path, file: Path) -> None:
    """Refuse a run that is not valid, or does not have the key of its configuration."""
    try:
        validated = validate(run)
    except RunError as error:
        raise StudyError(f"{file}: the run {run.name} cannot be read: {error}") from None
    if validated.problems:
        raise StudyError(
            f"{file}: the run {run.name} does not match its receipt: {validated.problems[0]}"
        )
    if run.name not in list_keys(validated.config):
        raise StudyError(
            f"{file}: the run {run.name} has the configuration of another run "
            f"({validated.config.digest[:23]}...): the archive was changed; get it again"
        )


def _digest_receipt(store: Store, finding: Path) -> str | None:
    """Return the digest of the receipt of the run that a finding's name names, if it is there."""
    run = store.folder / "runs" / finding.name[:KEY_DIGITS]
    return str(read_receipt(run)["predicate"]["digest"]) if (run / RECEIPT).exists() else None


def _move_run(run: Path, store: Store, file: Path) -> bool:
    """Move a run into the store; return False where the store has it, with the same weights."""
    place = store.folder / "runs" / run.name
    if (place / RECEIPT).exists():
        ours, theirs = (read_receipt(one)["predicate"] for one in (place, run))
        if ours["weights"] != theirs["weights"]:
            raise StudyError(
                f"{place} and the run of this name in {file} have the same configuration and "
                f"different weights, {ours['weights']['digest'][:23]}... and "
                f"{theirs['weights']['digest'][:23]}...: were they made on different machines? "
                "Unpack into another store"
            )
        return False
    if place.exists():
        raise StudyError(f"{place} is not finished yet; finish or remove it, then unpack")
    shutil.move(run, place)
    (store.folder / "failed" / f"{run.name}.json").unlink(missing_ok=True)
    return True


def _number_file(out: Path, number: int) -> Path:
    first, dot, rest = out.name.partition(".")
    return out.with_name(f"{first}-{number}{dot}{rest}")


def _write_tar_xz(
    path: Path, groups: Iterable[Mapping[str, Path | bytes]], max_bytes: float = math.inf
) -> int:
    """Write groups of files (paths, or contents) as one .tar.xz file; return how many it holds.

    At least one group is written, and then as many as are sure to fit into ``max_bytes`` before
    the compressor's buffer is added. Bytes repeat where the version of liblzma is the same.
    """
    count = 0
    with (
        path.open("wb") as raw,
        lzma.open(raw, "wb", check=lzma.CHECK_SHA256, filters=_FILTERS) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for files in groups:
            contents = {
                name: source if isinstance(source, bytes) else source.read_bytes()
                for name, source in files.items()
            }
            if count and raw.tell() + sum(map(len, contents.values())) > max_bytes:
                break
            for name in sorted(contents):
                info = tarfile.TarInfo(name)
                info.size = len(contents[name])
                archive.addfile(info, io.BytesIO(contents[name]))
            count += 1
    return count
