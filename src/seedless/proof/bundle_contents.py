"""What a bundle may hold: exactly what its receipt implies, whoever made the bundle.

    config.toml, weights.safetensors, ...   every file that the receipt covers, and no other
    receipt.json                            the receipt itself
    receipt.dsse.json, model.sig, ...       attestations about it, which `validate` checks
    source/seedless/...                     the files of the receipt's source digest, all of them
    data/...                                where packed: one dataset with the receipt's digest

No list of files is needed beside the receipt, and so there is none to forge. A page for people,
report.html, is not in a bundle: nothing could tell a planted page from the run's own.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seedless.core.errors import DataError, RunError
from seedless.data.dataset_folder import list_packed_files, read_packed
from seedless.proof import script_claims, source_digest
from seedless.proof.receipt import ATTESTATIONS, SIGNATURE, get_content_digest
from seedless.proof.receipt import FILE as RECEIPT
from seedless.proof.run_files import check_listed_names

SOURCE, DATA = "source/", "data/"
_PACKAGE = f"{SOURCE}{source_digest.PACKAGE.name}/"
_TYPED = f"{_PACKAGE}py.typed"  # an empty file, which the source digest does not cover


def list_source_files() -> dict[str, Path]:
    """Return every file of the installed package by its name in a bundle, sorted.

    These are the files of the receipt's source digest, and ``py.typed``.
    """
    package = source_digest.PACKAGE
    files = {**source_digest.list_source(package), "py.typed": package / "py.typed"}
    return {f"{_PACKAGE}{name}": files[name] for name in sorted(files)}


def check_contents(files: Mapping[str, Path], claims: Mapping[str, Any], where: Path) -> None:
    """Refuse files of a bundle that its receipt does not imply, or that are missing.

    Whether a file has the digest that the receipt names is not checked here.

    Args:
        files: every file of the bundle by its name in it.
        claims: the receipt's predicate.
        where: the bundle, for messages.
    """
    # [Step 1] The files of the run, and what is said about them.
    covered = claims["files"]
    if problems := check_listed_names(covered, claims.get("kind")):
        raise RunError(f"{where}: {problems[0]}; refused")
    if missing := {*covered, RECEIPT} - {*files}:
        raise RunError(f"{where} lacks {min(missing)!r}, which its receipt covers; bundle it again")
    known = {*covered, RECEIPT, SIGNATURE, *ATTESTATIONS}
    rest = {name: path for name, path in files.items() if name not in known}
    # [Step 2] The source code that made the run.
    source = {name: path for name, path in rest.items() if name.startswith(SOURCE)}
    _check_source(source, claims["source"]["digest"], where)
    # [Step 3] The data, if there are any, and nothing more.
    data = {name: path for name, path in rest.items() if name.startswith(DATA)}
    if data and claims.get("kind") == script_claims.KIND:
        raise RunError(f"{where} holds {min(data)!r}, and is of a script, which packs no data")
    if data:
        _check_data(data, claims, where)
    if others := {*rest} - {*source} - {*data}:
        raise RunError(
            f"{where} holds {min(others)!r}, which its receipt does not cover; refused. Get the "
            "bundle again, made with `seedless bundle`"
        )


def _check_source(files: Mapping[str, Path], expected: str, where: Path) -> None:
    """Refuse source files that are not, all together, those of the receipt's source digest."""
    if not files:
        raise RunError(f"{where} lacks {SOURCE}, the source code that made the run; refused")
    covered = {}
    for name, path in files.items():
        if name == _TYPED and path.stat().st_size == 0:
            continue
        if not name.startswith(_PACKAGE) or not source_digest.is_source(name):
            raise RunError(
                f"{where} holds {name!r}, which is no source file that its receipt covers; refused"
            )
        covered[name.removeprefix(_PACKAGE)] = path
    if (found := source_digest.digest_files(covered)) != expected:
        raise RunError(
            f"the source in {where} is not the source its receipt names: expected {expected}, "
            f"found {found}; a file of it was changed, added or removed"
        )


def _check_data(files: Mapping[str, Path], claims: Mapping[str, Any], where: Path) -> None:
    """Refuse data that are not, all together, one packed dataset with the receipt's digest."""
    name, path = min(files.items())
    folder = path.parents[name.count("/") - 1]
    try:
        expected = {f"{DATA}{name}" for name in list_packed_files(folder)}
        if odd := expected ^ {*files}:
            state = "lacks" if odd & expected else "holds"
            raise RunError(f"{where} {state} {min(odd)!r}, as no packed dataset does; refused")
        found = read_packed(folder).digest
    except DataError as error:
        reason = str(error).replace(str(folder), DATA)  # not the place it was unpacked to
        raise RunError(f"{where}: {reason}; refused") from None
    if found != get_content_digest(claims):
        raise RunError(
            f"the data in {where} are not those its receipt names: expected "
            f"{get_content_digest(claims)}, found {found}"
        )
