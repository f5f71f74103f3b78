"""The package wfdb, which is installed with the extra `data`."""

from typing import Any

from seedless.core.errors import DataError


def import_wfdb() -> Any:
    """Return the module wfdb, or say how to install it.

    Annotations are read with it, and signals in any other format than 16.
    """
    try:
        import wfdb
    except ModuleNotFoundError as error:
        raise DataError(
            "this file is read with the package wfdb, which is not installed: "
            "pip install 'seedless[data]'"
        ) from error
    return wfdb
