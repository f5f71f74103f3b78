"""Without the extra `data`, files that need it are refused with the command that installs it."""

import sys

import pytest

from seedless.core.errors import DataError
from seedless.data.download.transfer import open_session
from seedless.data.readers.wfdb_package import import_wfdb


def test_wfdb_is_imported_where_it_is_installed():
    assert import_wfdb().__name__ == "wfdb"


@pytest.mark.parametrize(
    ("package", "use"), [("wfdb", import_wfdb), ("requests", lambda: open_session(1))]
)
def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch, package, use):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(DataError, match=rf"{package}.*pip install 'seedless\[data\]'"):
        use()
