"""Read the arrays of an .npz file that someone else wrote; nothing is ever unpickled."""

import zlib
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from seedless.core.bounded_reading import open_plain_file
from seedless.core.checks import check_memory
from seedless.core.errors import DataError
from seedless.core.zip_files import LOCAL_HEADER, check_zip_directory

_MAX_DIRECTORY_BYTES = 2**20

# What numpy and zipfile raise on a damaged file.
_DAMAGE = (
    BadZipFile,
    zlib.error,
    EOFError,
    ValueError,
    NotImplementedError,  # a compression this zipfile does not know
    RuntimeError,  # an encrypted member
    MemoryError,  # a damaged header may announce an array of any size
    # numpy parses a header as Python text, and a damaged one may be any:
    OverflowError,
    TypeError,
    SyntaxError,
    TokenError,
)


def _check_sizes(handle: IO[bytes], path: Path) -> None:
    """Refuse a zip file whose arrays are larger than the memory; other files are judged later."""
    if handle.read(4) == LOCAL_HEADER:
        check_zip_directory(handle, str(path), _MAX_DIRECTORY_BYTES, error=DataError)
        with ZipFile(handle) as archive:
            needed = sum(member.file_size for member in archive.infolist())
        check_memory(f"{path}: its arrays", needed, error=DataError)
    handle.seek(0)


def list_npz(path: Path) -> list[str]:
    """Return the names of the arrays in a file; none of one that `load_npz` would refuse."""
    try:
        with open_plain_file(path, follow_links=True, error=DataError) as handle:
            _check_sizes(handle, path)
            with ZipFile(handle) as archive:
                return [member.removesuffix(".npy") for member in archive.namelist()]
    except (DataError, OSError, *_DAMAGE):
        return []


def load_npz(path: Path, required: tuple[str, ...] = ()) -> dict[str, NDArray[Any]]:
    """Return every array of the file by name, if the required ones are among them."""
    name, arrays = "the file", {}
    try:
        # Opened here and not by numpy, which leaves a damaged file open.
        with open_plain_file(path, follow_links=True, error=DataError) as handle:
            _check_sizes(handle, path)
            content = np.load(handle, allow_pickle=False)
            if isinstance(content, np.ndarray):
                raise DataError(f"{path}: one array; expected an .npz file with several by name")
            for name in content.files:
                arrays[name] = content[name]
                if not isinstance(arrays[name], np.ndarray):
                    raise ValueError("a member that is no array")
    except DataError:
        raise
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    except _DAMAGE as error:
        if "pickle" in str(error):
            raise DataError(
                f"{path}: {name} holds Python objects, which are never unpickled, or this is no "
                ".npz file; save plain numbers or text, np.array(..., dtype=str)"
            ) from error
        raise DataError(
            f"{path}: {name} is damaged, or this is no .npz file ({error}); write or fetch it again"
        ) from error
    missing = [name for name in required if name not in arrays]
    if missing:
        found = ", ".join(arrays) or "none"
        raise DataError(f"{path}: {', '.join(missing)} is missing; found {found}")
    return arrays
